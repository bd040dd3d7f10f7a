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
	// holds over interruptions: what was written before the cut still leads to the restart.
	Watches []string `json:"watches,omitempty"`
	// Settle is how long the unit must stay up after it started for the step to count as done.
	Settle Duration `json:"settle,omitempty"`
}

// Meta names the kind.
func (s Service) Meta() Meta { return Meta{Name: "service"} }

// Observe asks for the unit and what it watches.
func (s Service) Observe() host.Query {
	q := host.Query{Units: []string{s.Name}}
	for _, w := range s.Watches {
		q.Paths = append(q.Paths, host.PathQuery{Path: w})
	}
	return q
}

// Precheck compares enablement, activity and the age of what is watched.
func (s Service) Precheck(v View) (Diff, error) {
	have := v.Facts.Units[s.Name]
	subject := host.Unit{Name: s.Name}.Key()
	var d Diff
	if s.State == Stopped {
		if have.Load == "not-found" {
			return nil, nil
		}
		if have.Active == "active" || have.Active == "activating" {
			d = append(d, Delta{subject, have.Active, "stopped"})
		}
		if have.File == "enabled" {
			d = append(d, Delta{subject, have.File, "disabled"})
		}
		return d, nil
	}
	if have.File != "enabled" && have.File != "static" {
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
	for _, w := range s.Watches {
		if p := v.Facts.Paths[w]; p.Exists && p.Modified.After(have.Since) {
			return append(d, Delta{subject, "older than " + w, "restarted"}), nil
		}
	}
	return d, nil
}

// Effect starts, restarts or stops the unit.
func (s Service) Effect(v View) (Effect, error) {
	u := host.Unit{Name: s.Name, Enabled: "enabled", Active: "started", Settle: time.Duration(s.Settle)}
	switch {
	case s.State == Enabled:
		u.Active, u.Settle = "", 0
	case s.State == Stopped:
		u.Enabled, u.Active, u.Settle = "disabled", "stopped", 0
	case v.Facts.Units[s.Name].Active == "active":
		u.Active = "restarted"
	}
	return changes(u), nil
}

// after reports whether changes that are about to be made in the same act mean that the unit must be restarted.
func (s Service) after(cs []host.Change) bool {
	return s.State != Stopped && s.State != Enabled && slices.ContainsFunc(cs, func(c host.Change) bool {
		f, ok := c.(host.File)
		return ok && slices.Contains(s.Watches, f.Path)
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
	have := v.Facts.Sysctls[s.Name]
	if slices.Equal(strings.Fields(have), strings.Fields(s.Value)) {
		return nil, nil
	}
	return Diff{{host.Sysctl{Name: s.Name}.Key(), orNone(have), s.Value}}, nil
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

// Observe needs nothing beyond the System facts.
func (SwapOff) Observe() host.Query { return host.Query{} }

// Precheck differs when a swap device is active.
func (SwapOff) Precheck(v View) (Diff, error) {
	if len(v.Facts.System.Swap) == 0 {
		return nil, nil
	}
	return Diff{{host.SwapOff{}.Key(), strings.Join(v.Facts.System.Swap, ", "), "off"}}, nil
}

// Effect turns swap off.
func (SwapOff) Effect(View) (Effect, error) { return changes(host.SwapOff{}), nil }

// Run turns swap off.
func (s SwapOff) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, s) }

// Rollback turns on what was on.
func (s SwapOff) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }

// Package is a set of distribution packages that are installed.
type Package struct {
	Names []string `json:"names"`
}

// Meta names the kind.
func (p Package) Meta() Meta { return Meta{Name: "package"} }

// Observe asks for the packages.
func (p Package) Observe() host.Query { return host.Query{Packages: p.Names} }

// Precheck names the packages that are missing.
func (p Package) Precheck(v View) (Diff, error) {
	var d Diff
	for _, n := range p.missing(v) {
		d = append(d, Delta{"package " + n, "absent", "installed"})
	}
	return d, nil
}

func (p Package) missing(v View) []string {
	var missing []string
	for _, n := range p.Names {
		if v.Facts.Packages[n] == "" {
			missing = append(missing, n)
		}
	}
	return missing
}

// Effect installs the missing packages.
func (p Package) Effect(v View) (Effect, error) {
	return changes(host.Package{Names: p.missing(v)}), nil
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
