// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Import is a set of images in containerd's k8s.io namespace. Only those that are missing, or have another digest, are
// sent, as one stream into the import itself: they never lie on the host as an archive.
type Import struct {
	Arch   string  `json:"arch"`
	Images []Image `json:"images"`
}

// Image is one image of the bundle.
type Image struct {
	// Ref is the full reference, e.g. registry.k8s.io/pause:3.10.2.
	Ref string `json:"ref"`
	// Digest of the manifest, which containerd knows it by.
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

// Observe asks containerd for these images alone: the list of all that a busy Node has is longer than an answer may be.
func (i Import) Observe() host.Query {
	argv := []string{"/usr/local/bin/ctr", "--namespace", "k8s.io", "images", "list"}
	for _, m := range i.Images {
		argv = append(argv, "name=="+m.Ref)
		if m.As != "" {
			argv = append(argv, "name=="+m.As)
		}
	}
	return host.Query{Commands: []host.CommandQuery{{ID: i.list(), Argv: argv}}}
}

// list is the ID of the query: one for each set of images.
func (i Import) list() string {
	id := "containerd images"
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

// have reads the table that `ctr images list` prints: REF TYPE DIGEST SIZE PLATFORMS LABELS. It is empty when containerd
// does not run yet.
func (i Import) have(f *host.Facts) map[string]string {
	have := make(map[string]string)
	for line := range strings.Lines(string(f.Commands[i.list()].Stdout)) {
		if c := strings.Fields(line); len(c) >= 3 && strings.HasPrefix(c[2], "sha256:") {
			have[c[0]] = c[2]
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
			Title: "name an image " + m.As, Argv: nameImage("name", m.Ref, m.As), Undo: nameImage("undo", m.Ref, m.As),
		})
	}
	return e, nil
}

// nameImage gives the image ref the name as. What had the name keeps another, by which an undo finds it; where there is nothing of
// that any more, nothing needs to be undone.
func nameImage(what, ref, as string) []string {
	return []string{"/bin/sh", "-euc", `
		tag() { /usr/local/bin/ctr --namespace k8s.io images tag --force "$1" "$2"; }
		case $1 in
		name) tag "$3" "$3-before" 2>/dev/null || :; tag "$2" "$3" ;;
		undo) tag "$3-before" "$3" 2>/dev/null || : ;;
		esac`, "sh", what, ref, as}
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
		Argv:        []string{"/usr/local/bin/ctr", "--namespace", "k8s.io", "images", "import", "--local", "-"},
		StdinStream: true,
	})
	e.Stdin = &in
	return e
}

// Run imports the missing images.
func (i Import) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, i) }

// Rollback gives names back. Images themselves go with the runtime's data.
func (i Import) Rollback(ctx context.Context, rt *Runtime) error { return rollback(ctx, rt) }
