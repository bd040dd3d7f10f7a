// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// settle is how long a component that was started must stay up: one that does not understand its flags or its
// configuration has ended by then.
const settle = step.Duration(time.Second)

// again is for a unit that is not waited for: one that has ended when it is observed is started once more, and seen to stay up or not.
var again = step.Retry{Attempts: 2, Delay: settle}

// Steady waits for units that nothing asks whether they are well.
func Steady(units []string) step.Step {
	return step.New(step.Meta{Name: "kubernetes/steady", Description: "see Kubernetes' components stay up"}, step.Steady{Units: units, For: settle})
}

const unitsDir = "/etc/systemd/system"

// unit is a component as a systemd unit.
type unit struct {
	about, program string
	// after is the unit that is there first, where both are to be started.
	after string
	// waited: something waits for it next, so that it may as well be seen to stay up first. Steady waits for the others.
	waited bool
	// oomScore is 0 for components that set their own.
	oomScore int
	args     []spec.Arg
}

// service writes the unit and runs it; it is restarted when its program, the unit or one of watches is newer than it.
func service(u unit, watches ...string) []step.Step {
	s := step.Service{Name: u.name(), Watches: append([]string{path.Join(bin, u.program), u.file()}, watches...)}
	if u.waited {
		s.Settle = settle
	}
	return []step.Step{step.File{Path: u.file(), Mode: 0o600, Content: step.Literal(u.String())}, s}
}

func (u unit) name() string { return u.program + ".service" }
func (u unit) file() string { return path.Join(unitsDir, u.name()) }

// String is the unit file.
func (u unit) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, `[Unit]
Description=%s
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=%s
StartLimitIntervalSec=0

[Service]
ExecStart=%s`, u.about, strings.Join(slices.Compact([]string{"network-online.target", u.after}), " "), path.Join(bin, u.program))
	for _, a := range u.args {
		b.WriteString(" \\\n    " + quote("--"+a.Name+"="+a.Value))
	}
	// The kubelet gives kubeadm's static pods as long to end. An API server whose etcd is gone does not end by itself.
	b.WriteString("\nRestart=always\nRestartSec=5\nTimeoutStopSec=30\nLimitNOFILE=1048576\n")
	if u.oomScore != 0 {
		fmt.Fprintf(&b, "OOMScoreAdjust=%d\n", u.oomScore)
	}
	if u.program != kubeletName { // which starts what pods ask for
		b.WriteString("NoNewPrivileges=yes\nLockPersonality=yes\nRestrictRealtime=yes\nRestrictSUIDSGID=yes\n")
	}
	b.WriteString("\n[Install]\nWantedBy=multi-user.target\n")
	return b.String()
}

// escapes are what systemd would take for something else, in quotes too.
var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`)

// quote is an argument as systemd reads it from a command line.
func quote(arg string) string {
	escaped := escapes.Replace(arg)
	if strings.ContainsAny(arg, " \t'\"\\;") {
		return `"` + escaped + `"`
	}
	return escaped
}

// args are ours and the user's, by their names; where both name one, the user's count. (Of one name, the user's order is
// kept: the first service-account-issuer is that of new tokens.)
func args(users, ours []spec.Arg) []spec.Arg {
	all := slices.DeleteFunc(ours, func(a spec.Arg) bool {
		return slices.ContainsFunc(users, func(u spec.Arg) bool { return u.Name == a.Name })
	})
	all = append(all, users...)
	slices.SortStableFunc(all, func(a, b spec.Arg) int { return strings.Compare(a.Name, b.Name) })
	return all
}

type object map[string]any

func document(o object) step.Text { return step.Literal(yamlOf(o)) }

func yamlOf(o object) string {
	// A map of strings, numbers, lists and maps always marshals.
	text, _ := yaml.Marshal(o)
	return string(text)
}
