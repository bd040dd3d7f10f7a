// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	_ "embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

//go:embed theirs.sh
var theirs string

// units are members that are units of systemd.
type units struct{ membersOf }

var _ component.EtcdUnits = units{}

// UnitName is that of the unit, ours as well as that of others.
func (units) UnitName() string { return service }

// AskTheirs asks a host.
func (units) AskTheirs(address string) host.Command { return theirsCommand(address) }

// Theirs is what it has said.
func (units) Theirs(said host.Result) (component.TheirEtcd, error) { return TheirsIn(said) }

// FlagsOf are those of our unit.
func (units) FlagsOf(unit string) []string { return flagsOfUnit(unit) }

// Theirs is a member of etcd that others have made as the unit etcd.service of a host, as it runs: KubeKey, kubexm before this one, or an
// administrator.
type Theirs struct {
	// State is what systemd says of the unit, such as "active". Pod is the manifest of a static pod of etcd, "" if there is none.
	State, Pod string
	// Version is that of the program which runs, such as 3.6.14.
	Version string
	// Settings are its flags by name, wherever they are set: on its command line, in its environment, or in a file.
	Settings map[string]string
	// ClientCA, ClientCert and ClientKey are the files by which the host's API server reaches it.
	ClientCA, ClientCert, ClientKey string
	answer                          host.Result
	// made are the files that its settings are in.
	made []string
}

// theirsCommand asks a host with this address. It changes nothing, and prints no secret.
func theirsCommand(address string) host.Command {
	return host.Command{Title: "ask " + service, Timeout: 4 * host.QueryTimeout, Argv: []string{
		"/usr/bin/env", "host=" + host.InURL(address), "manifests=" + path.Dir(manifest), "proc=/proc", "/bin/sh", "-uc", theirs, "etcd",
	}}
}

// TheirsIn is what a host has said that was asked.
func TheirsIn(said host.Result) (Theirs, error) {
	t := Theirs{Settings: map[string]string{}}
	if said.ExitCode != 0 || said.Stopped > 0 {
		return t, fmt.Errorf("how %s runs is not known: %s", service, host.Word(string(said.Stderr), 300))
	}
	var arguments, clients []string
	var config strings.Builder
	for line := range strings.Lines(string(said.Stdout)) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "pod":
			t.Pod = rest
		case "state":
			t.State = rest
		case "version":
			t.Version = rest
		case "environment", "config":
			t.made = append(t.made, rest)
		case "variable":
			name, value, _ := strings.Cut(rest, "=")
			t.Settings[strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "ETCD_"), "_", "-"))] = value
		case "argument":
			arguments = append(arguments, rest)
		case "line":
			config.WriteString(rest + "\n")
		case "client":
			clients = append(clients, rest)
		case "why":
			t.answer = host.Result{ExitCode: 1, Stderr: []byte(rest)}
		case "asked", "members", "alarms":
			t.answer.Stdout = append(t.answer.Stdout, line...)
		}
	}
	if len(clients) == 3 {
		t.ClientCA, t.ClientCert, t.ClientKey = clients[0], clients[1], clients[2]
	}
	maps.Copy(t.Settings, flagsOf(arguments))
	if t.Settings["config-file"] == "" {
		return t, nil
	}
	var err error // etcd reads nothing else then
	t.Settings, err = settingsIn(config.String())
	return t, err
}

// Runs reports whether the unit is active, and there is no static pod of etcd.
func (t Theirs) Runs() bool { return t.State == "active" && t.Pod == "" }

// Answer is what it says of its members and alarms.
func (t Theirs) Answer() host.Result { return t.answer }

// flagsOf are the flags of a command line by name.
func flagsOf(arguments []string) map[string]string {
	all := map[string]string{}
	for i, a := range arguments {
		name, value, given := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch {
		case !strings.HasPrefix(a, "-"):
			continue
		case given:
		case i+1 < len(arguments) && !strings.HasPrefix(arguments[i+1], "-"):
			value = arguments[i+1]
		default:
			value = "true"
		}
		all[name] = value
	}
	return all
}

// settingsIn are those of a configuration file of etcd, by the names of its flags.
func settingsIn(config string) (map[string]string, error) {
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(config), &values); err != nil || len(values) == 0 {
		return nil, fmt.Errorf("the configuration file of %s cannot be read, or is no configuration of etcd", service)
	}
	all := map[string]string{}
	for name, value := range values {
		prefix := map[string]string{"client-transport-security": "", "peer-transport-security": "peer-"}
		if of, is := value.(map[string]any); is {
			before, known := prefix[name]
			for n, v := range of {
				if known {
					all[before+n] = text(v)
				}
			}
			continue
		}
		all[name] = text(value)
	}
	return all, nil
}

// text is a setting as a flag has it.
func text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, text(one))
		}
		return strings.Join(all, ",")
	case float64: // all numbers of YAML are, here
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprint(value)
}

// Flags are its settings as a command line has them, sorted, but for those that say nothing to a member with data.
func (t Theirs) Flags() []string {
	var all []string
	for name, value := range t.Settings {
		if !strings.HasPrefix(name, "initial-cluster") {
			all = append(all, "--"+name+"="+value)
		}
	}
	slices.Sort(all)
	return all
}

// flagsOfUnit are those with which our unit runs etcd, sorted.
func flagsOfUnit(unit string) []string {
	var all []string
	for line := range strings.Lines(unit) {
		word := strings.TrimSuffix(strings.TrimSpace(line), ` \`)
		if inner, is := strings.CutPrefix(word, `"--`); is {
			all = append(all, "--"+strings.NewReplacer(`\\`, `\`, `\"`, `"`, `%%`, `%`, `$$`, `$`).Replace(strings.TrimSuffix(inner, `"`)))
		}
	}
	slices.Sort(all)
	return all
}

// theirDirs are what KubeKey, and kubexm before this one, have for etcd alone: its certificates, their authority and key, and its settings.
var theirDirs = []string{"/etc/ssl/etcd", "/etc/etcd", "/etc/etcd.env"}

// Own are the paths that are etcd's as a whole on the host, and Elsewhere what it reads besides, which may be anybody's. What is below
// /etc/kubernetes is Kubernetes' own.
func (t Theirs) Own() (own, elsewhere []string) {
	read := slices.Clone(t.made)
	for _, name := range []string{
		"trusted-ca-file", "cert-file", "key-file", "peer-trusted-ca-file", "peer-cert-file", "peer-key-file",
	} {
		read = append(read, t.Settings[name])
	}
	for _, file := range append(read, t.ClientCA, t.ClientCert, t.ClientKey) {
		at := slices.IndexFunc(theirDirs, func(dir string) bool { return file == dir || strings.HasPrefix(file, dir+"/") })
		switch {
		case at >= 0:
			own = append(own, theirDirs[at])
		case file != "" && !strings.HasPrefix(file, "/etc/kubernetes/"):
			elsewhere = append(elsewhere, file)
		}
	}
	slices.Sort(own)
	slices.Sort(elsewhere)
	return slices.Compact(own), slices.Compact(elsewhere)
}
