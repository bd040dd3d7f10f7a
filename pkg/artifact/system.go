// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/build"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/deb"
)

// systemsDir is where a bundle has the packages of operating systems: one apt repository for each release and architecture.
const systemsDir = "os"

// system is a release of an operating system, as it is written in the catalogue.
type system struct {
	// ID and Version are ID and VERSION_ID in /etc/os-release.
	ID      string `json:"id"`
	Version string `json:"version"`
	// Suite is the release's code name.
	Suite string `json:"suite"`
	// Packages are those that hosts may need.
	Packages []string `json:"packages"`
	// Needs are the tools by which they are had.
	Needs []build.Tool `json:"needs,omitempty"`
}

// name is debian/12.
func (s system) name() string { return s.ID + "/" + s.Version }

// recipe is how its packages, and others that are asked for, are had.
func (s system) recipe(arch string, extra []string) (Recipe, error) {
	names := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(s.Packages), extra...))))
	r := Recipe{
		// No component has a slash in its name.
		Component: systemsDir + "/" + s.ID, Kind: KindPackage, Version: s.Version, Arch: arch, Needs: s.Needs,
		Build: &Build{Packages: &build.Packages{Suite: s.Suite, Names: names}},
	}
	if !systemForm.MatchString(s.name()) {
		return r, fmt.Errorf("%q is not an operating system: want an ID and a VERSION_ID as in /etc/os-release, such as debian/12", s.name())
	}
	if err := r.Build.validate(); err != nil {
		return r, fmt.Errorf("packages of %s: %w", s.name(), err)
	}
	return r, nil
}

// Systems are the operating systems that packages can be had of: ID/VERSION_ID (debian/12).
func (c *Catalogue) Systems() []string {
	names := make([]string, 0, len(c.systems))
	for _, s := range c.systems {
		names = append(names, s.name())
	}
	return names
}

// SystemPackages are the packages that a bundle has of an operating system, beside those that they depend on. None for one that is
// not there.
func (c *Catalogue) SystemPackages(name string) []string {
	for _, s := range c.systems {
		if s.name() == name {
			return slices.Clone(s.Packages)
		}
	}
	return nil
}

// systemRecipe is how packages of an operating system are had. The error for one that is not there is an *UnknownNameError.
func (c *Catalogue) systemRecipe(name, arch string, extra []string) (Recipe, error) {
	for _, s := range c.systems {
		if s.name() == name {
			return s.recipe(arch, extra)
		}
	}
	return Recipe{}, &UnknownNameError{What: "operating system", Name: name, Known: c.Systems()}
}

var (
	systemForm      = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*$`)
	packageName     = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	packageVersion  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+:~-]*$`)
	packageFileName = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9.+~_-]*\.deb$`)
)

// validatePackage refuses a package, or an index, that contradicts itself.
func (i Item) validatePackage() error {
	switch base := path.Base(i.Path); {
	case !systemForm.MatchString(i.System):
		return fmt.Errorf("system %q is not an ID and a VERSION_ID, such as debian/12", i.System)
	case !nameForm.MatchString(i.Arch):
		return fmt.Errorf("%q is not a name", i.Arch)
	case i.Component != path.Dir(i.System):
		return fmt.Errorf("component must be %s", path.Dir(i.System))
	case i.Kind == KindIndex && (base != i.Name || !slices.Contains(indexNames, i.Name) || i.Version != path.Base(i.System)):
		return fmt.Errorf("an index is one of %s, and of its system's version", strings.Join(indexNames, ", "))
	case i.Kind == KindPackage &&
		(!packageName.MatchString(i.Name) || !packageVersion.MatchString(i.Version) || !packageFileName.MatchString(base)):
		return fmt.Errorf("name %q, version %q or file %q is not a package's", i.Name, i.Version, base)
	}
	return nil
}

var indexNames = []string{build.Index, build.IndexCompressed, build.IndexRelease}

// systemOrders are the packages that are asked for.
func (p *production) systemOrders(c *Catalogue) ([]order, error) {
	if len(p.opts.Systems) == 0 && len(p.opts.Packages) > 0 {
		return nil, fmt.Errorf("packages are asked for, but of no operating system; there are %s", strings.Join(c.Systems(), ", "))
	}
	var list []order
	for _, name := range slices.Compact(slices.Sorted(slices.Values(p.opts.Systems))) {
		for _, arch := range p.archs {
			r, err := c.systemRecipe(name, arch, p.opts.Packages)
			if err != nil {
				return nil, err
			}
			list = append(list, newOrder(r, p.opts.Prefer, ""))
		}
	}
	return list, nil
}

// systemItems are the packages that a recipe has given, with their index, which says their names and versions.
func (p *production) systemItems(o order) ([]Item, error) {
	r := o.Recipe
	rec := p.components[keyOfOrder(o)].record
	index, ok := rec.file(build.Index)
	if !ok {
		return nil, fmt.Errorf("%s: the store has no index of it", o)
	}
	data, err := os.ReadFile(p.opts.Store.blob(index.SHA256))
	if err != nil {
		return nil, err
	}
	entries, err := deb.ReadIndex(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: index: %w", o, err)
	}
	byFile := make(map[string]deb.Entry, len(entries))
	for _, e := range entries {
		byFile[e.Filename] = e
	}
	var items []Item
	for _, f := range rec.Files {
		i := Item{
			Kind: KindPackage, Component: path.Base(r.Component), Arch: r.Arch, System: path.Base(r.Component) + "/" + r.Version,
			Blob: f.Blob, Source: o.source(),
		}
		i.Path = path.Join(systemsDir, i.System, i.Arch, f.Name)
		if e, ok := byFile[f.Name]; ok {
			i.Name, i.Version = e.Name, e.Version
		} else {
			i.Kind, i.Name, i.Version = KindIndex, f.Name, r.Version
		}
		items = append(items, i)
	}
	return items, nil
}

// SystemPackage is a package of an operating system in a bundle.
type SystemPackage struct {
	deb.Package
	File File
}

// SystemPackages are the packages that the bundle has of an operating system (debian/12) for an architecture, by their path; none if it
// was made without.
func (b *Bundle) SystemPackages(system, arch string) ([]SystemPackage, error) {
	dir := path.Join(systemsDir, system, arch)
	items := map[string]Item{}
	for _, i := range b.manifest.Items {
		if path.Dir(i.Path) == dir {
			items[path.Base(i.Path)] = i
		}
	}
	if len(items) == 0 {
		return nil, nil
	}
	key := systemKey{system, arch}
	if known, ok := b.systems.Load(key); ok {
		packages, _ := known.([]SystemPackage) // nothing else is stored
		return packages, nil
	}
	packages, err := b.readIndex(items)
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %s: %w", b.dir, dir, err)
	}
	b.systems.Store(key, packages)
	return packages, nil
}

type systemKey struct{ system, arch string }

func (b *Bundle) readIndex(items map[string]Item) ([]SystemPackage, error) {
	index, ok := items[build.Index]
	if !ok {
		return nil, fmt.Errorf("it has no %s", build.Index)
	}
	r, err := b.file(index).Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	entries, err := deb.ReadIndex(r)
	if err != nil {
		return nil, err
	}
	packages := make([]SystemPackage, 0, len(entries))
	for _, e := range entries {
		i, ok := items[e.Filename]
		if !ok || i.SHA256 != e.SHA256 || i.Size != e.Size || i.Name != e.Name || i.Version != e.Version {
			return nil, fmt.Errorf("%s says of %s what the manifest does not", build.Index, e.Filename)
		}
		packages = append(packages, SystemPackage{Package: e.Package, File: b.file(i)})
	}
	return packages, nil
}
