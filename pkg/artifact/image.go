// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/build"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

// imageBuilderVersion is raised when the same image would be made of other bytes than before.
const imageBuilderVersion = 1

// imageOrder is an image and the content of what goes into it.
type imageOrder struct {
	Builder int        `json:"builder"`
	Image   imageEntry `json:"image"`
	Arch    string     `json:"arch"`
	// Base is the tar of the user space below.
	Base *oci.Blob `json:"base,omitempty"`
	// Over is the tar of files over the base.
	Over *oci.Blob `json:"over,omitempty"`
	// Files are the contents by the name that they have in the component.
	Files map[string]oci.Blob `json:"files"`
}

// baseOrder is the compression of a base's tar, which several images share.
type baseOrder struct {
	Builder int      `json:"builder"`
	Base    oci.Blob `json:"base"`
}

// Names of an image's files in the store.
const (
	imageManifest = "manifest"
	imageConfig   = "config"
	imageLayer    = "layer"
)

// image makes an image out of the files of its component, of its base and of what lies over that; each of these two is nil if it has none.
func (m *maker) image(ctx context.Context, r imageRecipe, arch string, component record, base, over *record) (record, error) {
	o := imageOrder{Builder: imageBuilderVersion, Image: r.imageEntry, Arch: arch, Files: map[string]oci.Blob{}}
	for _, below := range []struct {
		name string
		from *record
		to   **oci.Blob
	}{{r.Base, base, &o.Base}, {r.Over, over, &o.Over}} {
		if below.from == nil {
			continue
		}
		rootFS, ok := below.from.file(build.RootFS)
		if !ok {
			return record{}, fmt.Errorf("image %s: %s has no %s", r.Name, below.name, build.RootFS)
		}
		*below.to = &rootFS.Blob
	}
	for name := range r.Files {
		f, ok := component.file(name)
		if !ok {
			return record{}, fmt.Errorf("image %s: component %s has no file %s", r.Name, r.Component, name)
		}
		o.Files[name] = f.Blob
	}
	event := Event{Component: "image " + r.Name, Version: r.Version, Arch: arch}
	return m.produce(ctx, event, o, 0o644, func(ctx context.Context, ws workspace) error {
		assembling := event
		assembling.Phase = PhaseAssembling
		m.progress.send(assembling)
		return m.assemble(ctx, o, ws.out)
	})
}

// assemble writes an image's manifest, configuration and own layer, if it has files or directories of its own.
func (m *maker) assemble(ctx context.Context, o imageOrder, out string) error {
	spec := oci.Spec{Arch: o.Arch, Entrypoint: o.Image.Entrypoint, Command: o.Image.Command}
	for _, tar := range []*oci.Blob{o.Base, o.Over} {
		if tar == nil {
			continue
		}
		layer, err := m.baseLayer(ctx, *tar)
		if err != nil {
			return err
		}
		spec.Layers = append(spec.Layers, layer)
	}
	var entries []oci.Entry
	for _, name := range slices.Sorted(maps.Keys(o.Files)) {
		entries = append(entries, oci.Entry{Path: o.Image.Files[name], Source: m.store.blob(o.Files[name].SHA256), Mode: 0o755})
	}
	for at, to := range o.Image.Links {
		entries = append(entries, oci.Entry{Path: at, Link: to})
	}
	if len(entries)+len(o.Image.Directories) > 0 {
		layer, err := writeLayer(filepath.Join(out, imageLayer), func(w io.Writer) error {
			return oci.WriteLayer(w, o.Image.Directories, entries)
		})
		if err != nil {
			return err
		}
		spec.Layers = append(spec.Layers, layer)
	}
	image, err := spec.Make()
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(out, imageConfig), image.Config, 0o644),
		os.WriteFile(filepath.Join(out, imageManifest), image.Manifest, 0o644),
	)
}

// baseLayer is the layer that a base's tar makes.
func (m *maker) baseLayer(ctx context.Context, tar oci.Blob) (oci.Layer, error) {
	fill := func(_ context.Context, ws workspace) error {
		_, err := writeLayer(filepath.Join(ws.out, imageLayer), func(w io.Writer) (err error) {
			f, err := openVerified(m.store.root, m.store.blobRel(tar.SHA256), tar)
			if err != nil {
				return err
			}
			_, err = io.Copy(w, f)
			return errors.Join(err, f.Close())
		})
		return err
	}
	r, err := m.store.produce(ctx, baseOrder{Builder: imageBuilderVersion, Base: tar}, 0o644, nil, fill)
	if err != nil {
		return oci.Layer{}, err
	}
	layer, ok := r.file(imageLayer)
	if !ok {
		return oci.Layer{}, errors.New("the store has no layer for it")
	}
	return oci.Layer{Blob: layer.Blob, DiffID: tar.SHA256}, nil
}

// writeLayer compresses what write writes into a file.
func writeLayer(path string, write func(io.Writer) error) (oci.Layer, error) {
	f, err := os.Create(path)
	if err != nil {
		return oci.Layer{}, err
	}
	diffID, err := oci.Compress(f, write)
	if err := errors.Join(err, f.Close()); err != nil {
		return oci.Layer{}, err
	}
	blob, err := sumFile(path)
	return oci.Layer{Blob: blob, DiffID: diffID}, err
}
