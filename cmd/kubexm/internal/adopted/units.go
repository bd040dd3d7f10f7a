// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package adopted

import (
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

const (
	kubeletUnit = kubelet.UnitName
	// UnitDir is where the first converge writes units.
	UnitDir = "/etc/systemd/system"
)

// UnitNames are the units that the first converge writes.
func UnitNames(runtime kubelet.Runtime) []string { return []string{kubeletUnit, runtime.Unit} }

//go:embed units.sh
var unitScript string

// madeOf is the ID of the command that says what systemd makes units of.
const madeOf = "what units are made of"

func unitsQuery(units []string) host.CommandQuery {
	return host.CommandQuery{
		ID: madeOf, Argv: append([]string{"/bin/sh", "-uc", unitScript, "sh"}, units...), Timeout: 4 * host.QueryTimeout,
	}
}

// Units are those that the first converge writes on the host.
func (h Host) Units() []string { return slices.Concat(UnitNames(h.Runtime), h.Also) }

// unit is one as systemd has it.
type unit struct {
	// files are its own, and its drop-ins, in the order in which systemd reads them.
	files []unitFile
	// variables are "NAME of FILE".
	variables []string
	// arguments are its process's.
	arguments []string
}

type unitFile struct {
	path  string
	lines []string
}

// isDropIn tells a drop-in from the unit's own file.
func (f unitFile) isDropIn() bool { return strings.HasSuffix(path.Dir(f.path), ".d") }

// madeBy are the units of a host that was asked, by name.
func madeBy(seen *host.Facts) map[string]unit {
	all := map[string]unit{}
	name, u := "", unit{}
	for line := range strings.Lines(string(seen.Commands[madeOf].Stdout)) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "unit":
			name, u = rest, unit{}
		case "file":
			u.files = append(u.files, unitFile{path: rest})
		case "line":
			if at := len(u.files) - 1; at >= 0 {
				u.files[at].lines = append(u.files[at].lines, rest)
			}
		case "variable":
			name, file, _ := strings.Cut(rest, " ")
			u.variables = append(u.variables, name+" of "+file)
		case "argument":
			u.arguments = append(u.arguments, rest)
		}
		if name != "" {
			all[name] = u
		}
	}
	return all
}

// setting is a line of a unit's file that sets something.
type setting struct{ key, value string }

func (f unitFile) settings() []setting {
	var all []setting
	for _, line := range f.lines {
		line = strings.TrimSpace(line)
		key, value, found := strings.Cut(line, "=")
		if found && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
			all = append(all, setting{strings.TrimSpace(key), strings.TrimSpace(value)})
		}
	}
	return all
}

// adds reports whether the setting, in a drop-in, goes well with any unit, and stays in force: it is laid beside what the unit says of how
// its program is run, and not over it.
func (s setting) adds() bool {
	switch s.key {
	case "Environment", "After", "Wants", "Requires", "RequiresMountsFor", "Description", "Documentation", "Nice", "OOMScoreAdjust":
		return true
	}
	return slices.ContainsFunc([]string{"Limit", "CPU", "Memory", "IO", "Tasks"}, func(p string) bool { return strings.HasPrefix(s.key, p) })
}

// dropIns refuses those that would be laid over the units that the first converge writes.
func (h Host) dropIns() (refused [][2]string) {
	units := madeBy(h.Facts)
	for _, name := range h.Units() {
		for _, f := range units[name].files {
			if !f.isDropIn() || h.goes(name, f) {
				continue
			}
			var over []string
			for _, s := range f.settings() {
				if !s.adds() && !slices.Contains(over, s.key) {
					over = append(over, s.key)
				}
			}
			if len(over) == 0 {
				continue
			}
			remedy := "take these lines out of it, and run systemctl daemon-reload, which restarts nothing. "
			if name == kubeletUnit {
				remedy += "Flags that shall stay are declared: spec.kubernetes.kubelet.extraArgs. " +
					"A whole 10-kubeadm.conf may be moved to " + vendorDir + ", where that of the packages is: the first converge takes its place"
			} else {
				remedy += "What adds to the unit (Environment, Limit…, CPU…, Memory…) may stay"
			}
			refused = append(refused, [2]string{
				fmt.Sprintf("the drop-in %s is laid over the unit that the first converge writes: it sets %s", f.path, strings.Join(over, ", ")), remedy,
			})
		}
	}
	return refused
}

const vendorDir = "/usr/lib/systemd/system/kubelet.service.d"

// goes reports whether the first converge takes the place of a unit's file, or of a drop-in by one of the same name.
func (h Host) goes(unit string, f unitFile) bool {
	if !f.isDropIn() {
		return true
	}
	at := path.Join(UnitDir, unit+".d", path.Base(f.path))
	// One that no package has is known by what it sets: another of the same name is somebody's own.
	packaged := unit != kubeletUnit || h.Facts.Paths[path.Join(vendorDir, path.Base(f.path))].Exists
	return slices.Contains(h.Writes, at) && (packaged || f.isKubeadms())
}

// kubeadmSets are what the drop-in of kubeadm's documentation and packages sets, beside what adds to a unit. The flags that others have
// written into its variables are shown as those of the process.
var kubeadmSets = map[string][]string{
	"EnvironmentFile": {"-/var/lib/kubelet/kubeadm-flags.env", "-/etc/default/kubelet", "-/etc/sysconfig/kubelet"},
	"ExecStart":       {"", "$KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS"},
}

// isKubeadms reports whether a drop-in of the kubelet sets what kubeadm's does, whoever has written it, and nothing else.
func (f unitFile) isKubeadms() bool {
	starts := 0
	for _, s := range f.settings() {
		if s.adds() {
			continue
		}
		value := s.value
		if s.key == "ExecStart" && value != "" {
			var program string
			program, value, _ = strings.Cut(value, " ")
			value = strings.Join(strings.Fields(value), " ")
			if starts++; path.Base(program) != "kubelet" || value == "" {
				return false
			}
		}
		if !slices.Contains(kubeadmSets[s.key], value) {
			return false
		}
	}
	return starts == 1
}

// UnitLines says what the first converge takes away from a unit ("- …") and adds to it ("+ …"), and which drop-ins stay in force ("= …").
// content is that of the unit that comes. Values of variables are not shown.
func (h Host) UnitLines(name, content string) []string {
	u := madeBy(h.Facts)[name]
	show := unitFile.shown
	if slices.Contains(h.Also, name) {
		show = unitFile.shownWithoutFlags
	}
	var before, stay []string
	for _, f := range u.files {
		if h.goes(name, f) {
			before = append(before, show(f)...)
		} else {
			stay = append(stay, "= drop-in "+f.path)
		}
	}
	comes := unitFile{lines: strings.Split(strings.ReplaceAll(content, "\\\n", " "), "\n")}
	after := show(comes)
	for _, v := range u.variables {
		variable, file, _ := strings.Cut(v, " of ")
		read := slices.ContainsFunc(after, func(l string) bool { return strings.TrimPrefix(l, "EnvironmentFile=-") == file })
		// Those of the kubelet's and etcd's own make up their flags, which are shown as such.
		if !read && !strings.HasPrefix(variable, "KUBELET_") && !strings.HasPrefix(variable, "ETCD_") {
			before = append(before, "variable "+v)
		}
	}
	return append(Changed(before, after), stay...)
}

// shown are a file's settings, a line each.
func (f unitFile) shown() []string {
	var all []string
	add := func(line string) {
		if !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	for _, s := range f.settings() {
		switch s.key {
		case "Description", "Documentation":
		case "After", "Wants", "Requires":
			for _, word := range strings.Fields(s.value) {
				add(s.key + "=" + word)
			}
		case "Environment":
			for _, name := range variables(s.value) {
				add("variable " + name)
			}
		default:
			if s.value != "" {
				add(s.key + "=" + s.value)
			}
		}
	}
	return all
}

// shownWithoutFlags is shown of a unit whose program's flags are shown by themselves.
func (f unitFile) shownWithoutFlags() []string {
	all := f.shown()
	for i, line := range all {
		if strings.HasPrefix(line, "ExecStart=") {
			all[i], _, _ = strings.Cut(line, " ")
		}
	}
	return all
}

// variables are the names in a value of Environment=, but for those that make up the kubelet's flags.
func variables(value string) []string {
	var all []string
	quoted, word := rune(0), strings.Builder{}
	end := func() {
		if name, _, found := strings.Cut(word.String(), "="); found && !strings.HasPrefix(name, "KUBELET_") {
			all = append(all, name)
		}
		word.Reset()
	}
	for _, r := range value {
		switch {
		case quoted == 0 && (r == '"' || r == '\''):
			quoted = r
		case r == quoted:
			quoted = 0
		case quoted == 0 && (r == ' ' || r == '\t'):
			end()
		default:
			word.WriteRune(r)
		}
	}
	end()
	return all
}

// files that the unit which the first converge writes names by itself.
var fixed = []string{
	"--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf", "--kubeconfig=" + NodeConfig, "--config=" + KubeletConfig,
}

// KubeletFlags are those with which the kubelet runs, whoever has set them, but for the files that any unit of ours names.
func KubeletFlags(seen *host.Facts) []string {
	var all []string
	for _, a := range kubeletArguments(seen) {
		if !slices.Contains(fixed, a) {
			all = append(all, a)
		}
	}
	return all
}

func kubeletArguments(seen *host.Facts) []string {
	arguments := madeBy(seen)[kubeletUnit].arguments
	return arguments[min(1, len(arguments)):]
}

// flag is the value of one of the kubelet's.
func flag(seen *host.Facts, name string) string {
	arguments := kubeletArguments(seen)
	for i, a := range arguments {
		if value, found := strings.CutPrefix(a, "--"+name+"="); found {
			return value
		}
		if a == "--"+name && i+1 < len(arguments) {
			return arguments[i+1]
		}
	}
	return ""
}
