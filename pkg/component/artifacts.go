// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Needs are what a component takes from the bundle for one host. What it does not name, it does not get.
type Needs struct {
	// Optional is what a bundle has only if it was asked for.
	Optional Optional
	Programs []Programs
	// Images must be on the host before anything can be pulled.
	Images []Image
	// Charts are names of Helm charts.
	Charts []string
}

// Optional is an optional component of the catalogue.
type Optional struct {
	// Component is its name, "" for none. Or is what else can be done where the bundle lacks it, or "".
	Component, Or string
}

// missing is an error unless the bundle has it.
func (o Optional) missing(b *artifact.Bundle) error {
	if o.Component == "" || b.Version(o.Component) != "" {
		return nil
	}
	or := ""
	if o.Or != "" {
		or = ", or " + o.Or
	}
	return fmt.Errorf("the bundle %s has no %s, which is optional: make one that has it (kubexm bundle create --with %s)%s",
		b.Dir(), o.Component, o.Component, or)
}

// Programs are those of a component of the catalogue.
type Programs struct {
	Component string
	// Names are those that are needed; none means all.
	Names []string
}

// Image is one of the catalogue.
type Image struct {
	Name string
	// As is another reference that the host knows it by, where its Pods are not made from the bundle; or "".
	As string
}

// ImagesNamed are images that are known by their own references.
func ImagesNamed(names ...string) []Image {
	images := make([]Image, 0, len(names))
	for _, name := range names {
		images = append(images, Image{Name: name})
	}
	return images
}

// Artifacts are what a bundle has of the needs of a host.
type Artifacts struct {
	// Images fill the container runtime.
	Images []step.Image
	// PackageFiles are packages for the host's operating system.
	PackageFiles step.PackageFiles

	programs map[string][]step.Artifact
	charts   map[string]step.Artifact
	refs     artifact.Images
}

// LookUp finds what is needed for the host. Its errors name what is missing.
func (in Inputs) LookUp(b *artifact.Bundle, needs ...Needs) (Artifacts, error) {
	arch := in.System.Arch
	a := Artifacts{programs: map[string][]step.Artifact{}, charts: map[string]step.Artifact{}, refs: b.Images(arch)}
	if v := b.Version("kubernetes"); v != in.Target.KubernetesVersion {
		return a, fmt.Errorf("the bundle %s is for Kubernetes %s, not %s", b.Dir(), v, in.Target.KubernetesVersion)
	}
	var err error
	if a.PackageFiles, err = step.PackageFilesOf(b, Relevant(in.System).System, arch); err != nil {
		return a, err
	}
	for _, n := range needs {
		if err := n.Optional.missing(b); err != nil {
			return a, err
		}
		for _, p := range n.Programs {
			if err := a.addPrograms(b, arch, p); err != nil {
				return a, err
			}
		}
		for _, i := range n.Images {
			if err := a.addImage(b, arch, i); err != nil {
				return a, err
			}
		}
		for _, name := range n.Charts {
			chart, err := b.Chart(name)
			if err != nil {
				return a, err
			}
			if a.charts[name], err = step.ArtifactOf(b, chart); err != nil {
				return a, err
			}
		}
	}
	return a, nil
}

func (a *Artifacts) addPrograms(b *artifact.Bundle, arch string, p Programs) error {
	files, err := b.Binaries(p.Component, "", arch)
	if err != nil {
		return err
	}
	for _, f := range files {
		if len(p.Names) > 0 && !slices.Contains(p.Names, f.Name) {
			continue
		}
		program, err := step.ArtifactOf(b, f)
		if err != nil {
			return err
		}
		a.programs[p.Component] = append(a.programs[p.Component], program)
	}
	return nil
}

func (a *Artifacts) addImage(b *artifact.Bundle, arch string, i Image) error {
	refs, err := a.refs.Refs(i.Name)
	if err != nil {
		return err
	}
	archive, err := b.ImageArchive(arch, refs...)
	if err != nil {
		return err
	}
	a.Images = append(a.Images, step.Image{Ref: refs[0], Digest: archive.Images[0].Digest, Size: archive.Size, As: i.As})
	return nil
}

// Programs are those of components that were needed, in the order in which these are named.
func (a Artifacts) Programs(components ...string) []step.Artifact {
	var programs []step.Artifact
	for _, c := range components {
		programs = append(programs, a.programs[c]...)
	}
	return programs
}

// Chart is one that was needed.
func (a Artifacts) Chart(name string) step.Artifact { return a.charts[name] }

// ImageRef is the full reference of an image of the bundle, "" if it has none of this name.
func (a Artifacts) ImageRef(name string) string { return a.refs[name] }
