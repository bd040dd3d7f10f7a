// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deb reads the index of an apt repository, and finds which of its packages a host needs beside those that it has.
package deb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"

	"pault.ag/go/debian/dependency"
	"pault.ag/go/debian/version"
)

// Package is what a package says of itself and others; see deb-control(5).
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Depends are the relations that must hold before it is configured: those of Pre-Depends and Depends.
	Depends string `json:"depends,omitempty"`
	// Provides are the names that it answers to beside its own.
	Provides string `json:"provides,omitempty"`
}

// Entry is a package as the index has it.
type Entry struct {
	Package
	// Filename is relative to the repository.
	Filename string
	Size     int64
	// SHA256 is 64 hexadecimal digits.
	SHA256 string
}

// maxIndex bounds what is read into memory: Debian's own index of everything has 50 MiB.
const maxIndex = 64 << 20

var (
	nameForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	versionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+:~-]*$`)
)

// ReadIndex reads an index in the form of Packages.
func ReadIndex(r io.Reader) ([]Entry, error) {
	lines := textproto.NewReader(bufio.NewReader(io.LimitReader(r, maxIndex)))
	var entries []Entry
	for {
		fields, err := lines.ReadMIMEHeader()
		if len(fields) > 0 {
			e, entryErr := entryOf(fields)
			if entryErr != nil {
				return nil, fmt.Errorf("package %d (%s): %w", len(entries)+1, fields.Get("Package"), entryErr)
			}
			entries = append(entries, e)
		}
		switch {
		case errors.Is(err, io.EOF):
			return entries, nil
		case err != nil:
			return nil, fmt.Errorf("after %d packages: %w", len(entries), err)
		}
	}
}

func entryOf(fields textproto.MIMEHeader) (Entry, error) {
	e := Entry{
		Package:  Package{Name: fields.Get("Package"), Version: fields.Get("Version"), Provides: fields.Get("Provides")},
		Filename: strings.TrimPrefix(fields.Get("Filename"), "./"), SHA256: fields.Get("SHA256"),
	}
	for _, field := range []string{"Pre-Depends", "Depends"} {
		if relations := fields.Get(field); relations != "" {
			e.Depends = strings.TrimPrefix(e.Depends+", "+relations, ", ")
		}
	}
	var err error
	if e.Size, err = strconv.ParseInt(fields.Get("Size"), 10, 64); err != nil {
		return e, fmt.Errorf("size: %w", err)
	}
	_, depErr := dependency.Parse(e.Depends)
	_, provErr := dependency.Parse(e.Provides)
	_, versionErr := version.Parse(e.Version)
	switch err := errors.Join(depErr, provErr, versionErr); {
	case err != nil:
		return e, err
	case !nameForm.MatchString(e.Name) || !versionForm.MatchString(e.Version):
		return e, fmt.Errorf("name %q or version %q is malformed", e.Name, e.Version)
	}
	return e, nil
}

// Needed finds, among packages, those named and those that they need beside what is installed (versions by name). It gives their
// places in packages, in that order. A relation that neither holds nor can be made to is left to the package manager: what
// a bundle has is closed but for what every host has, and that is not asked for.
func Needed(packages []Package, names []string, installed map[string]string) ([]int, error) {
	s := selection{packages: packages, installed: installed, taken: make([]bool, len(packages)), named: map[string][]int{}}
	if err := s.index(); err != nil {
		return nil, err
	}
	for _, name := range names {
		own := s.own(name)
		if own < 0 {
			return nil, fmt.Errorf("there is no package %s", name)
		}
		if err := s.take(own); err != nil {
			return nil, err
		}
	}
	var needed []int
	for i, taken := range s.taken {
		if taken {
			needed = append(needed, i)
		}
	}
	return needed, nil
}

type selection struct {
	packages  []Package
	installed map[string]string
	taken     []bool
	// named are the packages that answer to a name: that of the name itself first.
	named map[string][]int
}

func (s *selection) index() error {
	for i, p := range s.packages {
		s.named[p.Name] = append(s.named[p.Name], i)
	}
	for i, p := range s.packages {
		provides, err := dependency.Parse(p.Provides)
		if err != nil {
			return fmt.Errorf("package %s: provides: %w", p.Name, err)
		}
		for _, other := range provides.GetAllPossibilities() {
			s.named[other.Name] = append(s.named[other.Name], i)
		}
	}
	return nil
}

// own is the package of that very name, or -1.
func (s *selection) own(name string) int {
	for _, i := range s.named[name] {
		if s.packages[i].Name == name {
			return i
		}
	}
	return -1
}

func (s *selection) take(i int) error {
	if s.taken[i] {
		return nil
	}
	s.taken[i] = true
	depends, err := dependency.Parse(s.packages[i].Depends)
	if err != nil {
		return fmt.Errorf("package %s: depends: %w", s.packages[i].Name, err)
	}
	for _, r := range depends.Relations {
		if s.holds(r) {
			continue
		}
		if answer := s.answer(r); answer >= 0 {
			if err := s.take(answer); err != nil {
				return err
			}
		}
	}
	return nil
}

// holds reports whether what is installed, or taken, is enough for a relation.
func (s *selection) holds(r dependency.Relation) bool {
	for _, p := range r.Possibilities {
		for _, i := range s.named[p.Name] {
			if s.taken[i] && s.suits(i, p) {
				return true
			}
		}
		// Where one is taken, it comes in the place of what is installed.
		if have := s.installed[p.Name]; have != "" && !s.takes(p.Name) && allows(p, have) {
			return true
		}
	}
	return false
}

func (s *selection) takes(name string) bool {
	own := s.own(name)
	return own >= 0 && s.taken[own]
}

// answer is the first package that makes a relation hold, or -1.
func (s *selection) answer(r dependency.Relation) int {
	for _, p := range r.Possibilities {
		for _, i := range s.named[p.Name] {
			if s.suits(i, p) {
				return i
			}
		}
	}
	return -1
}

// suits reports whether package i is what p asks for. What it only provides it provides without a version, or with one that apt judges.
func (s *selection) suits(i int, p dependency.Possibility) bool {
	return s.packages[i].Name != p.Name || allows(p, s.packages[i].Version)
}

func allows(p dependency.Possibility, have string) bool {
	if p.Version == nil {
		return true
	}
	v, err := version.Parse(have)
	return err == nil && p.Version.SatisfiedBy(v)
}
