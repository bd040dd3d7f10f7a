// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bufio"
	"bytes"
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
}

// Meta names the kind.
func (i Import) Meta() Meta { return Meta{Name: "import"} }

// Images is the Path of an Artifact that is an archive of images.
const Images = "images"

const imageList = "containerd images"

// Observe asks containerd for its images.
func (i Import) Observe() host.Query {
	return host.Query{Commands: []host.CommandQuery{{
		ID: imageList, Argv: []string{"/usr/local/bin/ctr", "--namespace", "k8s.io", "images", "list"},
	}}}
}

// Precheck names the images that are missing or others.
func (i Import) Precheck(v View) (Diff, error) {
	var d Diff
	have := imagesOf(v.Facts)
	for _, m := range i.missing(have) {
		d = append(d, Delta{"image " + m.Ref, orNone(short(have[m.Ref])), short(m.Digest)})
	}
	return d, nil
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

// imagesOf reads the table that `ctr images list` prints: REF TYPE DIGEST SIZE PLATFORMS LABELS.
func imagesOf(f *host.Facts) map[string]string {
	have := make(map[string]string)
	lines := bufio.NewScanner(bytes.NewReader(f.Commands[imageList].Stdout))
	for lines.Scan() {
		if c := strings.Fields(lines.Text()); len(c) >= 3 && strings.HasPrefix(c[2], "sha256:") {
			have[c[0]] = c[2]
		}
	}
	return have
}

// Effect streams the missing images into the import.
func (i Import) Effect(v View) (Effect, error) {
	missing := i.missing(imagesOf(v.Facts))
	in := Artifact{Path: Images, Arch: i.Arch}
	for _, m := range missing {
		in.Refs = append(in.Refs, m.Ref)
		in.Size += m.Size
	}
	if len(missing) == 1 {
		in.Digest = missing[0].Digest
	}
	e := changes(host.Command{
		Title:       "import images",
		Argv:        []string{"/usr/local/bin/ctr", "--namespace", "k8s.io", "images", "import", "--local", "-"},
		StdinStream: true,
	})
	e.Stdin = &in
	return e, nil
}

// Run imports the missing images.
func (i Import) Run(ctx context.Context, rt *Runtime) error { return act(ctx, rt, i) }

// Rollback does nothing: images go with the runtime's data.
func (i Import) Rollback(context.Context, *Runtime) error { return nil }
