// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/build"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/fetch"
)

// Recipe is how one version of a component is had for one architecture, with nothing left to fill in.
type Recipe struct {
	Component string `json:"component"`
	Kind      Kind   `json:"kind"`
	Version   string `json:"version"`
	Arch      string `json:"arch"`
	// Build is the way from source. Exactly one of its members is set, or it is nil.
	Build *Build `json:"build,omitempty"`
	// Download are the files that upstream publishes, if it does.
	Download []fetch.File `json:"download,omitempty"`
	// Needs are the tools that Build takes beside the Go toolchain.
	Needs []build.Tool `json:"-"`
	// GoSums are lines of go.sum that modules must match.
	GoSums []string `json:"goSums,omitempty"`
}

// goModule is the path of the Go module that it is built from, "" if there is none.
func (r *Recipe) goModule() string {
	if r.Build == nil || r.Build.Go == nil {
		return ""
	}
	return r.Build.Go.Modules[0].Path
}

// Build is one of the ways to build.
type Build struct {
	Go     *build.Go     `json:"go,omitempty"`
	C      *build.C      `json:"c,omitempty"`
	Chart  *build.Chart  `json:"chart,omitempty"`
	Debian *build.Debian `json:"debian,omitempty"`
	Tree   *build.Tree   `json:"tree,omitempty"`
	// Packages is never a component's: see system.
	Packages *build.Packages `json:"packages,omitempty"`
}

func (b *Build) validate() error {
	ways := 0
	var err error
	if b.Go != nil {
		ways++
		err = errors.Join(err, b.Go.Validate())
	}
	if b.C != nil {
		ways++
		err = errors.Join(err, b.C.Validate())
	}
	if b.Chart != nil {
		ways++
		err = errors.Join(err, b.Chart.Validate())
	}
	if b.Debian != nil {
		ways++
		err = errors.Join(err, b.Debian.Validate())
	}
	if b.Tree != nil {
		ways++
		err = errors.Join(err, b.Tree.Validate())
	}
	if b.Packages != nil {
		ways++
		err = errors.Join(err, b.Packages.Validate())
	}
	if ways != 1 {
		return fmt.Errorf("build: exactly one of go, c, chart, debian, tree, packages must be set, not %d", ways)
	}
	return err
}

// addOwn adds the content of the project's own files to what is compiled.
func (b *Build) addOwn() error {
	if b.Go == nil || len(b.Go.Own) == 0 {
		return nil
	}
	b.Go.Sources = make(map[string]string, len(b.Go.Own))
	for _, name := range b.Go.Own {
		data, err := programs.ReadFile(path.Join("_programs", name))
		if err != nil {
			return fmt.Errorf("own: %w", err)
		}
		b.Go.Sources[name] = string(data)
	}
	return nil
}

// programs are sources of programs of this project's that are not compiled with it, but with the modules of a component. The go command
// passes their directory over.
//
//go:embed all:_programs
var programs embed.FS

// native says that the build works for this machine's own architecture only.
func (b *Build) native() bool {
	return b.C != nil || b.Debian != nil || b.Packages != nil || (b.Go != nil && b.Go.Cgo)
}

// imageRecipe is an image of one release, with nothing left to fill in.
type imageRecipe struct {
	imageEntry
	Version     string
	BaseVersion string
}

// Recipe is how a version of a component is had. The error for a version that is not there is an *UnknownVersionError.
func (c *Catalogue) Recipe(component, version, arch string) (Recipe, error) {
	if arch != "amd64" && arch != "arm64" {
		return Recipe{}, &UnknownNameError{What: "architecture", Name: arch, Known: []string{"amd64", "arm64"}}
	}
	return c.recipe(component, version, arch)
}

func (c *Catalogue) recipe(name, wanted, arch string) (Recipe, error) {
	comp, ok := c.components[name]
	if !ok {
		return Recipe{}, &UnknownNameError{What: "component", Name: name, Known: c.Components()}
	}
	i := slices.IndexFunc(comp.Versions, func(v version) bool { return v.Version == wanted })
	if i < 0 {
		return Recipe{}, &UnknownVersionError{Component: name, Version: wanted, Known: c.Versions(name)}
	}
	v := comp.Versions[i]
	r := Recipe{Component: name, Kind: comp.Kind, Version: v.Version, Arch: arch, Needs: comp.Needs, GoSums: v.GoSums}
	words := newVocabulary(v, arch)
	if err := errors.Join(
		wrap(words.fill(comp.Build, &r.Build), "component %s: build", name),
		wrap(words.fill(comp.Download, &r.Download), "component %s: download", name),
	); err != nil {
		return Recipe{}, err
	}
	if r.Build == nil && r.Download == nil {
		return Recipe{}, fmt.Errorf("component %s: it has neither build nor download", name)
	}
	if r.Build != nil {
		if err := r.Build.addOwn(); err != nil {
			return Recipe{}, fmt.Errorf("component %s: build: %w", name, err)
		}
		if err := r.Build.validate(); err != nil {
			return Recipe{}, fmt.Errorf("component %s: %w", name, err)
		}
	}
	for _, f := range r.Download {
		if err := f.Validate(); err != nil {
			return Recipe{}, fmt.Errorf("component %s: download: %w", name, err)
		}
	}
	return r, nil
}

// imageRecipes are the images of a release, without those of optional components that it is not to have.
func (c *Catalogue) imageRecipes(release Release) ([]imageRecipe, error) {
	recipes := make([]imageRecipe, 0, len(c.images))
	for _, entry := range c.images {
		at := release.Version(entry.Component)
		if at == "" && release.isOptional(entry.Component) {
			continue
		}
		if at == "" {
			return nil, fmt.Errorf("image %s: component %s is not in the release", entry.Name, entry.Component)
		}
		r := imageRecipe{imageEntry: entry, Version: at}
		if entry.Base != "" {
			if r.BaseVersion = release.Version(entry.Base); r.BaseVersion == "" || c.components[entry.Base].Kind != kindBase {
				return nil, fmt.Errorf("image %s: base %s is not in the release", entry.Name, entry.Base)
			}
		}
		if entry.Base == "" && len(entry.Files) == 0 {
			return nil, fmt.Errorf("image %s: it has neither files nor a base", entry.Name)
		}
		if entry.Over != "" && release.Version(entry.Over) == "" {
			return nil, fmt.Errorf("image %s: over %s is not in the release", entry.Name, entry.Over)
		}
		for name, to := range entry.Files {
			if !path.IsAbs(to) || path.Clean(to) != to {
				return nil, fmt.Errorf("image %s: file %s: %q is not an absolute path", entry.Name, name, to)
			}
		}
		for at, to := range entry.Links {
			if !path.IsAbs(at) || path.Clean(at) != at || to == "" {
				return nil, fmt.Errorf("image %s: link %q to %q: it is not an absolute path, or leads nowhere", entry.Name, at, to)
			}
		}
		ref, err := newVocabulary(version{Version: at}, "").expand(entry.Ref)
		if err != nil {
			return nil, fmt.Errorf("image %s: ref: %w", entry.Name, err)
		}
		r.Ref = ref
		recipes = append(recipes, r)
	}
	return recipes, nil
}

// vocabulary are the words that templates in the catalogue may use.
type vocabulary struct {
	Version, Number     string
	Major, Minor, Patch string
	Arch                string
	Vars                map[string]string
}

func newVocabulary(v version, arch string) vocabulary {
	words := vocabulary{Version: v.Version, Number: strings.TrimPrefix(v.Version, "v"), Arch: arch, Vars: v.Vars}
	for i, part := range strings.SplitN(words.Number, ".", 3) {
		*[]*string{&words.Major, &words.Minor, &words.Patch}[i] = part
	}
	return words
}

func (w vocabulary) expand(text string) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	t, err := template.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	if err := t.Execute(&out, w); err != nil {
		return "", err
	}
	return out.String(), nil
}

// fill expands every string of a JSON value, keys too, and decodes it strictly. Nothing is done for no value.
func (w vocabulary) fill(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return err
	}
	tree, err := w.walk(tree)
	if err != nil {
		return err
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

func (w vocabulary) walk(node any) (any, error) {
	switch node := node.(type) {
	case string:
		return w.expand(node)
	case []any:
		for i := range node {
			var err error
			if node[i], err = w.walk(node[i]); err != nil {
				return nil, err
			}
		}
		return node, nil
	case map[string]any:
		out := make(map[string]any, len(node))
		for _, key := range slices.Sorted(maps.Keys(node)) {
			name, err := w.expand(key)
			if err != nil {
				return nil, err
			}
			if out[name], err = w.walk(node[key]); err != nil {
				return nil, err
			}
		}
		return out, nil
	default:
		return node, nil
	}
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
