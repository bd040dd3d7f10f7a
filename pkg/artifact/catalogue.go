// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/build"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/fetch"
)

//go:embed catalogue.yaml
var catalogueYAML []byte

// Kubernetes is the component whose version names a release: the set of versions that go together.
const Kubernetes = "kubernetes"

// Kind is what an artifact is for.
type Kind string

const (
	// KindBinary is a file that hosts run.
	KindBinary Kind = "binary"
	// KindImage is a container image.
	KindImage Kind = "image"
	// KindChart is a Helm chart.
	KindChart Kind = "chart"
	// KindPackage is a package of an operating system.
	KindPackage Kind = "package"
	// KindIndex is a file by which packages are an apt repository.
	KindIndex Kind = "index"

	kindPart Kind = "part" // goes into images only
	kindBase Kind = "base" // what images are built on
)

// Catalogue says which artifacts exist and where each comes from. It is data: catalogue.yaml.
type Catalogue struct {
	components map[string]component
	images     []imageEntry
	releases   []Release
	zones      map[string][]fetch.Mirror
	systems    []system
}

// Release is a Kubernetes version and the versions of all that goes with it.
type Release struct {
	Kubernetes string            `json:"kubernetes"`
	Components map[string]string `json:"components"`
	// Optional are what a bundle has when it is asked to, see With: by what it is asked for by, the components that it is made of.
	Optional map[string]map[string]string `json:"optional,omitempty"`
}

// With is the release with some of what is optional as well. The error is an *UnknownNameError.
func (r Release) With(names ...string) (Release, error) {
	all := maps.Clone(r.Components)
	for _, name := range names {
		components, ok := r.Optional[name]
		if !ok {
			return Release{}, &UnknownNameError{What: "optional component", Name: name, Known: slices.Sorted(maps.Keys(r.Optional))}
		}
		maps.Copy(all, components)
	}
	r.Components = all
	return r, nil
}

// isOptional reports whether a bundle has the component only when it is asked to.
func (r Release) isOptional(component string) bool {
	for _, components := range r.Optional {
		if _, ok := components[component]; ok {
			return true
		}
	}
	return false
}

// Version is the version of a component in the release, or "" if it has none.
func (r Release) Version(component string) string {
	if component == Kubernetes {
		return r.Kubernetes
	}
	return r.Components[component]
}

// component is a component as it is written in the catalogue. Build and Download hold templates.
type component struct {
	Name     string          `json:"name"`
	Kind     Kind            `json:"kind"`
	Versions []version       `json:"versions"`
	Needs    []build.Tool    `json:"needs,omitempty"`
	Build    json.RawMessage `json:"build,omitempty"`
	Download json.RawMessage `json:"download,omitempty"`
}

type version struct {
	Version string            `json:"version"`
	Vars    map[string]string `json:"vars,omitempty"`
	GoSums  []string          `json:"goSums,omitempty"`
}

// imageEntry is an image as it is written in the catalogue. Ref is a template. Over is a component whose tree of files lies between the
// base and the image's own files. Links are symbolic ones, by their absolute paths.
type imageEntry struct {
	Name        string            `json:"name"`
	Component   string            `json:"component"`
	Base        string            `json:"base,omitempty"`
	Over        string            `json:"over,omitempty"`
	Ref         string            `json:"ref"`
	Files       map[string]string `json:"files,omitempty"`
	Links       map[string]string `json:"links,omitempty"`
	Directories []string          `json:"directories,omitempty"`
	Entrypoint  []string          `json:"entrypoint,omitempty"`
	Command     []string          `json:"command,omitempty"`
}

// UnknownVersionError is a version that the catalogue has no artifacts for.
type UnknownVersionError struct {
	Component string
	Version   string
	Known     []string
}

func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("there are no artifacts for %s %s; known versions: %s", e.Component, e.Version, strings.Join(e.Known, ", "))
}

// UnknownNameError is a component, image, zone … that is not there.
type UnknownNameError struct {
	What  string
	Name  string
	Known []string
}

func (e *UnknownNameError) Error() string {
	return fmt.Sprintf("there is no %s %q; known: %s", e.What, e.Name, strings.Join(e.Known, ", "))
}

// DefaultCatalogue is the catalogue that this version of the project carries.
func DefaultCatalogue() (*Catalogue, error) { return ParseCatalogue(catalogueYAML) }

// ParseCatalogue reads a catalogue from YAML in the form of catalogue.yaml. Unknown fields, unresolvable templates and
// references to what is not there are errors.
func ParseCatalogue(data []byte) (*Catalogue, error) {
	var file struct {
		Components []component               `json:"components"`
		Images     []imageEntry              `json:"images,omitempty"`
		Releases   []Release                 `json:"releases,omitempty"`
		Zones      map[string][]fetch.Mirror `json:"zones,omitempty"`
		Systems    []system                  `json:"systems,omitempty"`
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	c := &Catalogue{
		components: map[string]component{}, images: file.Images, releases: file.Releases, zones: file.Zones, systems: file.Systems,
	}
	for _, comp := range file.Components {
		if _, twice := c.components[comp.Name]; twice {
			return nil, fmt.Errorf("catalogue: component %s is there twice", comp.Name)
		}
		c.components[comp.Name] = comp
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	return c, nil
}

// Components are the names of all components.
func (c *Catalogue) Components() []string { return slices.Sorted(maps.Keys(c.components)) }

// Versions are the versions of a component that there are artifacts for, in the catalogue's order, or none for a component that it does
// not have.
func (c *Catalogue) Versions(component string) []string {
	versions := make([]string, 0, 1)
	for _, v := range c.components[component].Versions {
		versions = append(versions, v.Version)
	}
	return versions
}

// Has says whether there are artifacts for a version of a component.
func (c *Catalogue) Has(component, version string) bool {
	return slices.Contains(c.Versions(component), version)
}

// Release is what goes with a Kubernetes version (v1.36.3). The error is an *UnknownVersionError.
func (c *Catalogue) Release(kubernetes string) (Release, error) {
	known := make([]string, 0, len(c.releases))
	for _, r := range c.releases {
		if r.Kubernetes == kubernetes {
			return r, nil
		}
		known = append(known, r.Kubernetes)
	}
	return Release{}, &UnknownVersionError{Component: Kubernetes, Version: kubernetes, Known: known}
}

// Mirrors are the mirrors of a zone; the zone "" has none.
func (c *Catalogue) Mirrors(zone string) ([]fetch.Mirror, error) {
	if zone == "" {
		return nil, nil
	}
	mirrors, ok := c.zones[zone]
	if !ok {
		return nil, &UnknownNameError{What: "zone", Name: zone, Known: slices.Sorted(maps.Keys(c.zones))}
	}
	return mirrors, nil
}

// validate resolves everything once, so that what cannot work is found when the catalogue is read.
func (c *Catalogue) validate() error {
	for _, name := range c.Components() {
		comp := c.components[name]
		switch comp.Kind {
		case KindBinary, KindChart, kindPart, kindBase:
		default:
			return fmt.Errorf("component %s: kind %q is none of binary, part, chart, base", name, comp.Kind)
		}
		for _, v := range comp.Versions {
			if _, err := c.recipe(name, v.Version, "amd64"); err != nil {
				return err
			}
		}
	}
	for _, s := range c.systems {
		if _, err := s.recipe("amd64", nil); err != nil {
			return err
		}
	}
	for _, base := range c.releases {
		r, err := base.With(slices.Sorted(maps.Keys(base.Optional))...)
		if err != nil {
			return fmt.Errorf("release %s: %w", base.Kubernetes, err)
		}
		for _, name := range append(slices.Sorted(maps.Keys(r.Components)), Kubernetes) {
			if !c.Has(name, r.Version(name)) {
				return fmt.Errorf("release %s: %w", r.Kubernetes, &UnknownVersionError{Component: name, Version: r.Version(name), Known: c.Versions(name)})
			}
		}
		if _, err := c.imageRecipes(r); err != nil {
			return fmt.Errorf("release %s: %w", r.Kubernetes, err)
		}
	}
	return nil
}
