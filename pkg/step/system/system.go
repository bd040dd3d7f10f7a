// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package system holds the steps that make a host's operating system fit for Kubernetes, each reversible.
package system

import (
	"fmt"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Swap turns swap off: the kubelet refuses to start beside it. What brings it again at the next boot is turned off, too.
func Swap(s family.Swap) step.Step {
	var parts []step.Step
	for _, path := range s.Emptied {
		parts = append(parts, step.File{Path: path, Mode: 0o644, Content: step.Literal("")})
	}
	parts = append(parts, step.SwapOff{})
	for _, unit := range s.Units {
		parts = append(parts, step.Service{Name: unit, State: step.Stopped})
	}
	return step.New(step.Meta{Name: "system/swap", Description: "turn swap off"}, parts...)
}

// Modules loads kernel modules, now and at each boot.
func Modules(names []string) step.Step {
	const file = "/etc/modules-load.d/kubexm.conf"
	parts := []step.Step{step.File{Path: file, Mode: 0o644, Content: step.Literal(strings.Join(names, "\n") + "\n")}}
	for _, n := range names {
		parts = append(parts, step.Module{Name: n})
	}
	return step.New(step.Meta{Name: "system/modules", Description: "load kernel modules"}, parts...)
}

// Sysctls sets kernel parameters, now and at each boot. Lasting ones are those that mean something before anything of
// ours runs; the rest (momentary) are recorded only so that they can be restored.
func Sysctls(lasting, momentary []spec.Sysctl) step.Step {
	var file strings.Builder
	var parts []step.Step
	for _, s := range lasting {
		fmt.Fprintf(&file, "%s = %s\n", s.Name, s.Value)
		parts = append(parts, step.Sysctl{Name: s.Name, Value: s.Value})
	}
	for _, s := range momentary {
		parts = append(parts, step.Sysctl{Name: s.Name, Value: s.Value})
	}
	conf := step.File{Path: "/etc/sysctl.d/99-kubexm-cri.conf", Mode: 0o644, Content: step.Literal(file.String())}
	return step.New(step.Meta{Name: "system/sysctls", Description: "set kernel parameters"}, append([]step.Step{conf}, parts...)...)
}

// EtcHosts keeps a managed block in /etc/hosts.
func EtcHosts(entries []spec.HostEntry) step.Step {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%s %s\n", e.Address, strings.Join(e.Hostnames, " "))
	}
	return step.New(step.Meta{Name: "system/hosts", Description: "name the cluster's addresses in /etc/hosts"},
		step.Block{Path: "/etc/hosts", Name: "hosts", Content: b.String()})
}

// Hostname gives the host its name, now and at each boot. It belongs after EtcHosts: sudo looks the name up.
func Hostname(name string) step.Step {
	return step.New(step.Meta{Name: "system/hostname", Description: "name the host"},
		step.File{Path: "/etc/hostname", Mode: 0o644, Content: step.Literal(name + "\n")},
		step.Sysctl{Name: "kernel.hostname", Value: name})
}

// Packages installs distribution packages: from the given files those that these have, others from the host's repositories.
func Packages(names []string, from step.PackageFiles) step.Step {
	return step.New(step.Meta{
		Name: "system/packages", Description: "install packages", Timeout: step.Duration(10 * time.Minute),
		Retry: step.Retry{Attempts: 2, Delay: step.Duration(10 * time.Second)},
	}, step.Package{Names: names, From: from})
}

// Files writes a user's own files.
func Files(files []step.Step) step.Step {
	return step.New(step.Meta{Name: "system/files", Description: "write files"}, files...)
}

// File is one of a user's own files on the target's host. The error is about its permissions, which are not octal, or have other bits, or
// about its content.
func File(f spec.File, t *spec.Target) (step.Step, error) {
	text, known, err := f.Text(t)
	if err != nil {
		return nil, fmt.Errorf("files[%s].content: %w", f.Path, err)
	}
	if f.IsAppended() {
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return step.Block{Path: f.Path, Name: "files", Content: text}, nil
	}
	var mode step.Mode
	if err := mode.UnmarshalText([]byte(f.Permissions)); err != nil {
		return nil, fmt.Errorf("files[%s].permissions: %w", f.Path, err)
	}
	if mode > 0o777 {
		return nil, fmt.Errorf("files[%s].permissions: %s: files cannot be set-user-ID, set-group-ID or sticky: use the last three digits",
			f.Path, f.Permissions)
	}
	owner, group, _ := strings.Cut(f.Owner, ":")
	content := step.Literal(text)
	switch from := f.ContentFrom.Secret; {
	case from.Name != "":
		content = step.Encoded(step.Secret(from.Name, from.Key), f.Encoding)
	case !known:
		content = step.Encoded(step.Literal(f.Content), f.Encoding)
	}
	return step.File{Path: f.Path, Mode: mode, Owner: owner, Group: group, Content: content}, nil
}

// Commands runs a user's own shell lines in order, once: a change of any line is another list, of which all are run. When one
// fails, or the run is cut, the next attempt begins with the first again, so each must bear being run twice.
func Commands(name string, lines []string) step.Step {
	return script(step.Meta{Name: "system/" + name, Description: "run " + name}, name, lines)
}

// Hook runs a user's script before or after a task, as Commands does; makes are outputs that say that it ended well.
func Hook(h spec.Hook, makes ...string) step.Step {
	about := fmt.Sprintf("run hook %s %s %s", h.Name, strings.ToLower(string(h.When)), h.Task)
	return script(step.Meta{Name: spec.HookStep(h.Name), Description: about, Makes: makes}, "hook "+h.Name, h.Commands)
}

// fromStdin runs the shell lines that come by standard input: a process list shows arguments to everybody on the host, and users
// put passwords into their lines. What the lines write is for all to read, as it is when a person runs them; ours is not.
const fromStdin = `umask 022; eval "$(cat)"`

func script(about step.Meta, name string, lines []string) step.Step {
	var parts []step.Step
	for i, l := range lines {
		parts = append(parts, step.Command{
			Title: fmt.Sprintf("line %d of %s", i+1, name), Argv: []string{"/bin/sh", "-ec", fromStdin}, Stdin: step.Literal(l),
			Done: step.Done{SameInput: true},
		})
	}
	about.Timeout = step.Duration(30 * time.Minute)
	return step.New(about, parts...)
}
