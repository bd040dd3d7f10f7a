// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// ServiceState is what a Service must be in.
type ServiceState string

const (
	// Running is enabled and active; the default.
	Running ServiceState = "running"
	// Enabled leaves it alone whether the unit runs: something else starts it.
	Enabled ServiceState = "enabled"
	// Stopped is disabled and not active. A unit that does not exist counts as stopped.
	Stopped ServiceState = "stopped"
)

// Service is a systemd unit that is enabled and runs, or is disabled and does not.
type Service struct {
	Name string `json:"name"`
	// State is what the unit must be in; "" means Running.
	State ServiceState `json:"state,omitempty"`
	// Watches are files that the unit reads when it starts: it is restarted when one of them is newer than it. That
	// holds over interruptions: what was written before the cut still leads to the restart. (Not so for one that was
	// removed: nothing on the host tells when.)
	Watches []string `json:"watches,omitempty"`
	// Reload: the unit is reloaded for the sake of what it watches, not restarted, so that those it serves notice nothing.
	// (The undo of what it watches does not reload one that ran before anything of ours.)
	Reload bool `json:"reload,omitempty"`
	// Settle is how long the unit must stay up after it started for the step to count as done.
	Settle Duration `json:"settle,omitempty"`
}

// relapse is how long a unit that has ended by itself must stay up when it is started again: if it ends once more, the step says why.
const relapse = time.Second

// Meta names the kind.
func (s Service) Meta() Meta { return Meta{Name: "service"} }

// Observe asks for the unit and what it watches.
func (s Service) Observe() host.Query {
	q := host.Query{Units: []string{s.Name}}
	for _, w := range s.Watches {
		q.Paths = append(q.Paths, host.PathQuery{Path: w})
	}
	if s.Reload {
		q.Paths = append(q.Paths, host.PathQuery{Path: s.reloaded()})
	}
	return q
}

// reloaded is a file that is as old as what the unit knows of what it watches: systemd does not tell when a unit was reloaded.
// It goes with the boot, as the unit does.
func (s Service) reloaded() string { return "/run/kubexm-reloaded-" + s.Name }

// Precheck compares enablement, activity and the age of what is watched.
func (s Service) Precheck(v View) (Diff, error) {
	have := v.Facts.Units[s.Name]
	subject := host.Unit{Name: s.Name}.Key()
	var d Diff
	if s.State == Stopped {
		if have.Load == "not-found" {
			return nil, nil
		}
		if runs := []string{"active", "activating", "reloading"}; slices.Contains(runs, have.Active) {
			d = append(d, Delta{subject, have.Active, "stopped"})
		}
		if strings.HasPrefix(have.File, "enabled") {
			d = append(d, Delta{subject, have.File, "disabled"})
		}
		return d, nil
	}
	if starts := []string{"enabled", "enabled-runtime", "static", "generated", "alias"}; !slices.Contains(starts, have.File) {
		d = append(d, Delta{subject, orNone(have.File), "enabled"})
	}
	if s.State == Enabled {
		return d, nil
	}
	if have.Active != "active" {
		return append(d, Delta{subject, orNone(have.Active), "active"}), nil
	}
	if have.NeedDaemonReload {
		return append(d, Delta{subject, "unit file changed", "restarted"}), nil
	}
	since, again := have.Since, "restarted"
	if s.Reload {
		again = "reloaded"
		if reloaded := s.reloaded(); newer(v.Facts, reloaded, since) {
			since = v.Facts.Paths[reloaded].Modified
		}
	}
	for _, w := range s.Watches {
		if newer(v.Facts, w, since) {
			return append(d, Delta{subject, "older than " + w, again}), nil
		}
	}
	return d, nil
}

// newer reports whether path was written after since. A time that has yet to come was written by a clock that has been set
// back since: it says nothing, and no restart would make it say less.
func newer(f *host.Facts, path string, since time.Time) bool {
	const inaccuracy = 5 * time.Second // of Taken, which may be reckoned from an earlier look
	p := f.Paths[path]
	return p.Exists && p.Modified.After(since) && !p.Modified.After(f.Taken.Add(inaccuracy))
}

// Effect starts, restarts, reloads or stops the unit.
func (s Service) Effect(v View) (Effect, error) {
	have := v.Facts.Units[s.Name]
	u := host.Unit{Name: s.Name, Enabled: "enabled", Active: "started", Settle: time.Duration(s.Settle)}
	if have.Active == "activating" || have.Active == "failed" {
		u.Settle = max(u.Settle, relapse)
	}
	switch {
	case s.State == Enabled:
		u.Active, u.Settle = "", 0
	case s.State == Stopped:
		u.Enabled, u.Active, u.Settle = "disabled", "stopped", 0
	case have.Active == "active" && s.Reload && !have.NeedDaemonReload:
		return s.reload(u), nil
	case have.Active == "active":
		u.Active = "restarted"
	}
	return changes(u), nil
}

// reloadUnit reloads unit $1 and makes file $2 as old as the beginning of that: a reload that was cut is done again, and so is
// one during which what is watched was written. A unit that tells by itself when it has reloaded is waited for.
const reloadUnit = `touch "$2.began"
systemctl reload -- "$1" || { journalctl -u "$1" -n 15 --no-pager -o cat >&2; exit 1; }
while state=$(systemctl is-active -- "$1") || true; [ "$state" = reloading ]; do sleep 0.1; done
[ "$state" = active ] || { echo "$1 is $state after the reload" >&2; exit 1; }
mv -f "$2.began" "$2"`

// reload reloads the unit, which u enables where it is not.
func (s Service) reload(u host.Unit) Effect {
	return changes(u, host.Command{
		Title: "reload " + s.Name, Argv: []string{"/bin/sh", "-ec", reloadUnit, "sh", s.Name, s.reloaded()},
		Undo: []string{"rm", "-f", s.reloaded(), s.reloaded() + ".began"},
	})
}

// after reports whether changes that are about to be made in the same act mean that the unit must be restarted.
func (s Service) after(cs []host.Change) bool {
	return s.State != Stopped && s.State != Enabled && slices.ContainsFunc(cs, func(c host.Change) bool {
		switch c := c.(type) {
		case host.File:
			return slices.Contains(s.Watches, c.Path)
		case host.Absent:
			return slices.Contains(s.Watches, c.Path)
		}
		return false
	})
}

// Run brings the unit into the state.
func (s Service) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, s) }

// Rollback puts the unit back into the state that it had.
func (s Service) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

// Sysctl is a kernel parameter's value now. (A File in /etc/sysctl.d makes it last.)
type Sysctl struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Meta names the kind.
func (s Sysctl) Meta() Meta { return Meta{Name: "sysctl"} }

// Observe asks for the value.
func (s Sysctl) Observe() host.Query { return host.Query{Sysctls: []string{s.Name}} }

// Precheck compares the values' words.
func (s Sysctl) Precheck(v View) (Diff, error) {
	have, want := strings.Join(strings.Fields(v.Facts.Sysctls[s.Name]), " "), strings.Join(strings.Fields(s.Value), " ")
	if have == want {
		return nil, nil
	}
	return Diff{{host.Sysctl{Name: s.Name}.Key(), orNone(have), want}}, nil
}

// Effect sets the value.
func (s Sysctl) Effect(View) (Effect, error) { return changes(host.Sysctl(s)), nil }

// Run sets the value.
func (s Sysctl) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, s) }

// Rollback sets the value that was there.
func (s Sysctl) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

// Module is a kernel module that is loaded or built in.
type Module struct {
	Name string `json:"name"`
}

// Meta names the kind.
func (m Module) Meta() Meta { return Meta{Name: "module"} }

// Observe asks for the module.
func (m Module) Observe() host.Query { return host.Query{Modules: []string{m.Name}} }

// Precheck differs when the module is not there.
func (m Module) Precheck(v View) (Diff, error) {
	if v.Facts.Modules[m.Name] {
		return nil, nil
	}
	return Diff{{host.Module{Name: m.Name}.Key(), "not loaded", "loaded"}}, nil
}

// Effect loads the module.
func (m Module) Effect(View) (Effect, error) { return changes(host.Module(m)), nil }

// Run loads the module.
func (m Module) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, m) }

// Rollback unloads the module where we loaded it.
func (m Module) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

// SwapOff turns swap off, now and for the next boot.
type SwapOff struct{}

// Meta names the kind.
func (SwapOff) Meta() Meta { return Meta{Name: "swap"} }

const fstabSwap = "swap in fstab"

// Observe asks for the swap lines of fstab. That the file may hold others' passwords is why it is not asked for whole.
func (SwapOff) Observe() host.Query {
	return host.Query{Commands: []host.CommandQuery{{
		ID: fstabSwap, Argv: []string{"awk", `$1 !~ /^#/ && $3 == "swap" { print $1 }`, "/etc/fstab"},
	}}}
}

// Precheck differs when a swap device is active, or would be after the next boot.
func (s SwapOff) Precheck(v View) (Diff, error) {
	var d Diff
	if on := v.Facts.System.Swap; len(on) > 0 {
		d = append(d, Delta{host.SwapOff{}.Key(), strings.Join(on, ", "), "off"})
	}
	fstab, err := answerTo(v, s.Observe().Commands[0])
	if err != nil {
		return nil, err
	}
	if lines := strings.Fields(string(fstab.Stdout)); len(lines) > 0 {
		d = append(d, Delta{host.SwapOff{}.Key(), "on after the next boot: " + strings.Join(lines, ", "), "off"})
	}
	return d, nil
}

// Effect turns swap off.
func (SwapOff) Effect(View) (Effect, error) { return changes(host.SwapOff{}), nil }

// Run turns swap off.
func (s SwapOff) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, s) }

// Rollback turns on what was on.
func (s SwapOff) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

// Package is a set of distribution packages that are installed.
type Package struct {
	// Names of packages, or name=version where it must be that version.
	Names []string `json:"names"`
	// From are package files of the bundle: those of Names that it has, and what they depend on. The host's own package manager gets
	// what is missing of these from us, and asks its mirrors for the rest of Names only.
	From PackageFiles `json:"from,omitempty"`
}

// Meta names the kind.
func (p Package) Meta() Meta { return Meta{Name: "package"} }

// Observe asks for the packages' versions.
func (p Package) Observe() host.Query {
	var q host.Query
	for _, n := range p.Names {
		name, _ := versioned(n)
		q.Packages = append(q.Packages, name)
	}
	for _, f := range p.From {
		if !slices.Contains(q.Packages, f.Name) {
			q.Packages = append(q.Packages, f.Name)
		}
	}
	return q
}

// versioned takes a name apart: name, name=version, and either with an architecture (name:arch), by which the package
// manager does not list it.
func versioned(s string) (name, version string) {
	name, version, _ = strings.Cut(s, "=")
	name, _, _ = strings.Cut(name, ":")
	return name, version
}

// Precheck names the packages that are missing or have another version.
func (p Package) Precheck(v View) (Diff, error) {
	var d Diff
	for _, n := range p.missing(v) {
		name, version := versioned(n)
		have := v.Facts.Packages[name]
		if have == "" {
			have = "absent"
		}
		if version == "" {
			version = "installed"
		}
		d = append(d, Delta{"package " + name, have, version})
	}
	return d, nil
}

func (p Package) missing(v View) []string {
	var missing []string
	for _, n := range p.Names {
		name, version := versioned(n)
		if have := v.Facts.Packages[name]; have == "" || version != "" && have != version {
			missing = append(missing, n)
		}
	}
	return missing
}

// Effect installs the missing packages.
func (p Package) Effect(v View) (Effect, error) {
	given, others := p.From.split(p.missing(v))
	var e Effect
	if len(given) > 0 {
		files, err := p.From.needed(given, v.Facts.Packages)
		if err != nil {
			return Effect{}, err
		}
		c := host.Package{Names: given}
		for _, f := range files {
			c.Blobs = append(c.Blobs, f.File.Digest)
			e.Blobs = append(e.Blobs, f.File)
		}
		e.Changes = append(e.Changes, c)
	}
	if len(others) > 0 {
		e.Changes = append(e.Changes, host.Package{Names: others})
	}
	return e, nil
}

// Run installs the missing packages.
func (p Package) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, p) }

// Rollback removes those that were missing.
func (p Package) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
