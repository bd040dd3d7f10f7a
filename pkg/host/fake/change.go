// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

func directory(owner, group string, mode fs.FileMode) node {
	return node{mode: fs.ModeDir | mode, owner: rootOr(owner), group: rootOr(group)}
}

func rootOr(name string) string {
	if name == "" || name == "0" {
		return "root"
	}
	return name
}

// parents makes what is missing above p, recording each.
func (s *session) parents(a host.Act, p string) error {
	m := s.machine
	d := path.Dir(p)
	if n, ok := m.files[d]; ok {
		if !n.mode.IsDir() {
			return fmt.Errorf("%s is not a directory", d)
		}
		return nil
	}
	if err := s.parents(a, d); err != nil {
		return err
	}
	return s.make(a, d, directory("", "", 0o755))
}

// make makes a directory that goes when it is empty.
func (s *session) make(a host.Act, p string, n node) error {
	m := s.machine
	key := "directory " + p
	err := s.save(a, key, key, func(all bool) (bool, error) {
		if len(m.below(p)) > 1 {
			return all, nil
		}
		delete(m.files, p)
		return true, nil
	})
	if err == nil {
		m.files[p] = m.stamp(n)
	}
	return err
}

// place puts n at p and saves what was there.
func (s *session) place(a host.Act, word, p string, n node) error {
	m := s.machine
	if err := s.parents(a, p); err != nil {
		return err
	}
	key, was := word+" "+p, m.tree(p)
	if err := s.save(a, key, key, func(bool) (bool, error) {
		m.restore(p, was)
		return true, nil
	}); err != nil {
		return err
	}
	m.remove(p)
	m.files[p] = m.stamp(n)
	return s.boundary()
}

func (s *session) file(a host.Act, c host.File) error {
	m := s.machine
	n := node{mode: c.Mode, owner: m.named(c.Owner), group: m.named(c.Group), content: string(c.Content.Reveal())}
	old, exists := m.files[c.Path]
	if c.Blob != "" {
		staged, ok := m.staged[c.Blob]
		if !ok && (!exists || digest(old.content) != c.Blob) {
			return fmt.Errorf("content %s is not staged", c.Blob)
		}
		if n.content = string(staged); !ok {
			n.content = old.content
		}
	}
	n.modified = old.modified
	if exists && old == n {
		return nil
	}
	return s.place(a, "file", c.Path, n)
}

func (s *session) directory(a host.Act, c host.Directory) error {
	m := s.machine
	n := directory(m.named(c.Owner), m.named(c.Group), c.Mode)
	old, exists := m.files[c.Path]
	n.modified = old.modified
	switch {
	case exists && old == n:
		return nil
	case exists && old.mode.IsDir():
		if err := s.save(a, c.Key(), c.Key(), func(bool) (bool, error) {
			if _, ok := m.files[c.Path]; ok {
				m.files[c.Path] = old
			}
			return true, nil
		}); err != nil {
			return err
		}
		m.files[c.Path] = n
		return s.boundary()
	case exists:
		return s.place(a, "directory", c.Path, n)
	}
	if err := s.parents(a, c.Path); err != nil {
		return err
	}
	return s.make(a, c.Path, n)
}

func (s *session) absent(a host.Act, c host.Absent) error {
	m := s.machine
	was := m.tree(c.Path)
	if len(was) == 0 {
		return nil
	}
	if err := s.save(a, c.Key(), c.Key(), func(bool) (bool, error) {
		m.restore(c.Path, was)
		return true, nil
	}); err != nil {
		return err
	}
	m.remove(c.Path)
	return s.boundary()
}

func (s *session) block(a host.Act, c host.Block) error {
	m := s.machine
	file := m.behind(c.Path)
	old, ok := m.files[file]
	if !ok || !old.mode.IsRegular() {
		return fmt.Errorf("%s: there is no such file", c.Path)
	}
	wanted := withBlock(old.content, c.Name, c.Content)
	if wanted == old.content {
		return nil
	}
	if err := s.save(a, c.Key(), c.Key(), func(bool) (bool, error) {
		now, ok := m.files[file]
		switch _, before, _, had := cutBlock(old.content, c.Name); {
		case !ok, now.content == old.content:
		case now.content == wanted:
			m.files[file] = old
		case had:
			now.content = withBlock(now.content, c.Name, before)
			m.files[file] = m.stamp(now)
		default:
			now.content = withBlock(now.content, c.Name, "")
			m.files[file] = m.stamp(now)
		}
		return true, nil
	}); err != nil {
		return err
	}
	n := old
	n.content = wanted
	m.files[file] = m.stamp(n)
	return s.boundary()
}

// withBlock is content with the block as it shall be.
func withBlock(content, name, block string) string {
	before, _, after, ok := cutBlock(content, name)
	if block != "" {
		block = "# BEGIN kubexm " + name + "\n" + strings.TrimSuffix(block, "\n") + "\n# END kubexm " + name + "\n"
	}
	if !ok && block != "" && content != "" && !strings.HasSuffix(content, "\n") {
		before += "\n"
	}
	return before + block + after
}

func (s *session) unit(a host.Act, c host.Unit) error {
	m := s.machine
	old, known := m.units[c.Name]
	if !known {
		old = host.UnitState{Load: "not-found", Active: "inactive"}
		if _, ok := m.files["/etc/systemd/system/"+c.Name]; ok {
			old = host.UnitState{Load: "loaded", Active: "inactive", File: "disabled"}
		}
	}
	if old.Load == "not-found" && (c.Enabled == "enabled" || c.Active == "started" || c.Active == "restarted") {
		return fmt.Errorf("Unit %s not found", c.Name)
	}
	if c.Active == "left" {
		return s.left(a, c, old)
	}
	n := old
	if c.Enabled != "" {
		n.File = c.Enabled
	}
	switch c.Active {
	case "started", "restarted", "reloaded":
		n.Active, n.Sub = "active", "running"
	case "stopped":
		n.Active, n.Sub = "inactive", "dead"
	}
	if n == old && c.Active != "restarted" && c.Active != "reloaded" {
		return nil
	}
	if err := s.save(a, c.Key(), c.Key(), func(bool) (bool, error) {
		if known {
			m.units[c.Name] = old
		} else {
			delete(m.units, c.Name)
		}
		return true, nil
	}); err != nil {
		return err
	}
	n.Load = "loaded"
	if n.Active == "active" && (old.Active != "active" || c.Active == "restarted") {
		m.tick += time.Second
		n.Since = born.Add(m.tick)
	}
	m.units[c.Name] = n
	return s.boundary()
}

// left records when a unit that runs was started.
func (s *session) left(a host.Act, c host.Unit, old host.UnitState) error {
	m := s.machine
	if old.Active != "active" {
		return nil
	}
	return s.save(a, c.Key(), c.Key(), func(bool) (bool, error) {
		u, known := m.units[c.Name]
		if known && (u.Active != "active" || !u.Since.Equal(old.Since)) {
			m.tick += time.Second
			u.Active, u.Sub, u.Since = "active", "running", born.Add(m.tick)
			m.units[c.Name] = u
		}
		return true, nil
	})
}

func (s *session) sysctl(a host.Act, c host.Sysctl) error {
	m := s.machine
	old, ok := m.sysctls[c.Name]
	if !ok {
		return fmt.Errorf("the kernel has no such parameter")
	}
	if old == c.Value {
		return nil
	}
	if err := s.save(a, c.Key(), c.Key(), func(bool) (bool, error) {
		m.sysctls[c.Name] = old
		return true, nil
	}); err != nil {
		return err
	}
	m.sysctls[c.Name] = c.Value
	return s.boundary()
}

func (s *session) module(a host.Act, c host.Module) error {
	m := s.machine
	if m.modules[c.Name] {
		return nil
	}
	if err := s.save(a, c.Key(), c.Key(), func(bool) (bool, error) {
		delete(m.modules, c.Name)
		return true, nil
	}); err != nil {
		return err
	}
	m.modules[c.Name] = true
	return s.boundary()
}

func (s *session) swapOff(a host.Act) error {
	m := s.machine
	old := m.System.Swap
	if len(old) == 0 {
		return nil
	}
	if err := s.save(a, "swap", "swap", func(bool) (bool, error) {
		m.System.Swap = old
		return true, nil
	}); err != nil {
		return err
	}
	m.System.Swap = nil
	return s.boundary()
}

func (s *session) packages(a host.Act, c host.Package) error {
	m := s.machine
	var missing []string
	for _, name := range c.Names {
		if m.packages[name] != "" {
			continue
		}
		if m.Available[name] == "" {
			return fmt.Errorf("Unable to locate package %s", name)
		}
		missing = append(missing, name)
	}
	if len(missing) == 0 {
		return nil
	}
	names := slices.Sorted(slices.Values(c.Names))
	key := "packages " + strings.Join(names, " ")
	if err := s.save(a, key, key, func(bool) (bool, error) {
		for _, name := range missing {
			delete(m.packages, name)
		}
		return true, nil
	}); err != nil {
		return err
	}
	for _, name := range missing {
		m.packages[name] = m.Available[name]
	}
	return s.boundary()
}

func (s *session) claim(a host.Act, c host.Claim) error {
	m := s.machine
	for _, p := range c.Paths {
		claimed := func(e *entry) bool { return e.identity == "claim "+p }
		if slices.ContainsFunc(m.entries, claimed) {
			continue // the first counts, whoever made it
		}
		was := m.tree(p)
		if err := s.save(a, "claim "+p, "claim "+p, func(bool) (bool, error) {
			m.restore(p, was)
			return true, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) inherit(a host.Act, c host.Inherit) error {
	m := s.machine
	remove := func(key, p string) error {
		return s.save(a, key, key, func(bool) (bool, error) {
			m.remove(p)
			return true, nil
		})
	}
	for _, p := range c.Paths {
		if err := remove("claim "+p, p); err != nil {
			return err
		}
	}
	for _, p := range c.Files {
		if err := remove(host.File{Path: p}.Key(), p); err != nil {
			return err
		}
	}
	for _, name := range c.Units {
		key := host.Unit{Name: name}.Key()
		if err := s.save(a, key, key, func(bool) (bool, error) {
			if state, found := m.units[name]; found {
				state.Active, state.File = "inactive", "disabled"
				m.units[name] = state
			}
			return true, nil
		}); err != nil {
			return err
		}
	}
	return nil
}
