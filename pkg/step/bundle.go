// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
)

// FromBundle opens artifacts of a bundle. Files are verified while they are read.
func FromBundle(b *artifact.Bundle) Artifacts { return bundle{b} }

type bundle struct{ *artifact.Bundle }

// Open opens a file of the bundle, or an archive of its images.
func (b bundle) Open(_ context.Context, a Artifact) (io.ReadCloser, error) {
	if a.Path == Images {
		return b.images(a)
	}
	f, err := b.File(a.Path)
	if err != nil {
		return nil, err
	}
	if f.Digest != a.Digest {
		return nil, b.another(a.Path, f.Digest, a.Digest)
	}
	return f.Open()
}

func (b bundle) images(a Artifact) (io.ReadCloser, error) {
	archive, err := b.ImageArchive(a.Arch, a.Refs...)
	if err != nil {
		return nil, err
	}
	have := make(map[string]string, len(archive.Images))
	for _, i := range archive.Images {
		have[i.Ref] = i.Digest
	}
	if len(a.Digests) != len(a.Refs) {
		return nil, fmt.Errorf("%d images are asked for by %d digests", len(a.Refs), len(a.Digests))
	}
	for i, ref := range a.Refs {
		if have[ref] != a.Digests[i] {
			return nil, b.another("image "+ref, have[ref], a.Digests[i])
		}
	}
	return archive.Open()
}

// another is the error for a bundle that is not the one of the plan.
func (b bundle) another(what, have, want string) error {
	return fmt.Errorf("%s in bundle %s is %s, but the plan was made with %s: use the bundle that the plan was made with, or plan again",
		what, b.Dir(), have, want)
}

// ArtifactOf is the reference to a file of a bundle.
func ArtifactOf(b *artifact.Bundle, f artifact.File) (Artifact, error) {
	rel, err := filepath.Rel(b.Dir(), f.Path)
	if err != nil {
		return Artifact{}, err
	}
	return Artifact{Path: filepath.ToSlash(rel), Digest: f.Digest, Size: f.Size}, nil
}
