// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Import is a set of images in the store of a container runtime. Only those that are missing, or have another digest, are
// sent, as one stream into the store itself: they never lie on the host as an archive.
type Import struct {
	Arch   string     `json:"arch"`
	Images []Image    `json:"images"`
	Store  ImageStore `json:"store,omitzero"`
}

// ImageStore is how images of a container runtime are listed, loaded and named, each by a command.
type ImageStore struct {
	// List prints a line for each image of those that are asked for: its reference first, and its digest as a word of its own. The
	// references are appended, each behind Match.
	List  []string `json:"list,omitempty"`
	Match string   `json:"match,omitempty"`
	// Load reads the archive of an OCI layout from its standard input.
	Load []string `json:"load,omitempty"`
	// Name gives an image another name. Three words are appended: "name", or "undo" for what had the other name before; the image's
	// reference; the other name.
	Name []string `json:"name,omitempty"`
}

// Image is one image of the bundle.
type Image struct {
	// Ref is the full reference, e.g. registry.k8s.io/pause:3.10.2.
	Ref string `json:"ref"`
	// Digest of the manifest, which runtimes know it by.
	Digest string `json:"digest"`
	// Size of the layers in bytes.
	Size int64 `json:"size"`
	// As is another name that the image has on the host, or "".
	As string `json:"as,omitempty"`
}

// Meta names the kind.
func (i Import) Meta() Meta { return Meta{Name: "import"} }

// Images is the Path of an Artifact that is an archive of images.
const Images = "images"

// Observe asks the store for these images alone: the list of all that a busy Node has is longer than an answer may be.
func (i Import) Observe() host.Query {
	argv := slices.Clone(i.Store.List)
	for _, m := range i.Images {
		argv = append(argv, i.Store.Match+m.Ref)
		if m.As != "" {
			argv = append(argv, i.Store.Match+m.As)
		}
	}
	return host.Query{Commands: []host.CommandQuery{{ID: i.list(), Argv: argv}}}
}

// list is the ID of the query: one for each set of images.
func (i Import) list() string {
	id := "images"
	for _, m := range i.Images {
		id += " " + m.Ref
	}
	return id
}

// Precheck names the images that are missing or others.
func (i Import) Precheck(v View) (Diff, error) {
	var d Diff
	if _, err := answerTo(v, i.Observe().Commands[0]); err != nil {
		return nil, err // what a list that was cut short has not is not missing
	}
	have := i.have(v.Facts)
	for _, m := range i.missing(have) {
		d = append(d, Delta{"image " + m.Ref, orNone(short(have[m.Ref])), short(m.Digest)})
	}
	for _, m := range i.unnamed(have) {
		d = append(d, Delta{"image " + m.As, orNone(short(have[m.As])), short(m.Digest)})
	}
	return d, nil
}

// unnamed are the images that lack their other name.
func (i Import) unnamed(have map[string]string) []Image {
	var unnamed []Image
	for _, m := range i.Images {
		if m.As != "" && have[m.As] != m.Digest {
			unnamed = append(unnamed, m)
		}
	}
	return unnamed
}

func (i Import) missing(have map[string]string) []Image {
	var missing []Image
	for _, m := range i.Images {
		if have[m.Ref] != m.Digest {
			missing = append(missing, m)
		}
	}
	return missing
}

// have are the digests of what the store has, by reference. It is empty when the runtime does not run yet.
func (i Import) have(f *host.Facts) map[string]string {
	have := make(map[string]string)
	for line := range strings.Lines(string(f.Commands[i.list()].Stdout)) {
		words := strings.Fields(line)
		if at := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "sha256:") }); at > 0 {
			have[words[0]] = words[at]
		}
	}
	return have
}

// Effect streams the missing images into the import, and gives them their other names.
func (i Import) Effect(v View) (Effect, error) {
	var e Effect
	have := i.have(v.Facts)
	if missing := i.missing(have); len(missing) > 0 {
		e = i.send(missing)
	}
	for _, m := range i.unnamed(have) {
		e.Changes = append(e.Changes, host.Command{
			Title: "name an image " + m.As, Argv: i.name("name", m), Undo: i.name("undo", m),
		})
	}
	return e, nil
}

func (i Import) name(what string, m Image) []string {
	return append(slices.Clone(i.Store.Name), what, m.Ref, m.As)
}

func (i Import) send(missing []Image) Effect {
	in := Artifact{Path: Images, Arch: i.Arch}
	for _, m := range missing {
		in.Refs = append(in.Refs, m.Ref)
		in.Digests = append(in.Digests, m.Digest)
		in.Size += m.Size
	}
	e := changes(host.Command{
		Title:       "import images",
		Argv:        i.Store.Load,
		StdinStream: true,
	})
	e.Stdin = &in
	return e
}

// Run imports the missing images.
func (i Import) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, i) }

// Rollback gives names back. Images themselves go with the runtime's data.
func (i Import) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }
