// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// searchPath is what an image has as PATH: one made from scratch has none otherwise, and manifests name bare commands.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Blob is content by its sha256 (64 hexadecimal digits) and size in bytes.
type Blob struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// BlobOf is the Blob of content.
func BlobOf(content []byte) Blob {
	sum := sha256.Sum256(content)
	return Blob{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
}

func (b Blob) hash() v1.Hash { return v1.Hash{Algorithm: "sha256", Hex: b.SHA256} }

// Layer is a compressed layer and the sum of what it holds.
type Layer struct {
	Blob
	DiffID string
}

// Spec is an image to be.
type Spec struct {
	Arch       string
	Layers     []Layer // lowest first
	Entrypoint []string
	Command    []string
}

// Image is the two documents that make an image of layers.
type Image struct {
	Config   []byte
	Manifest []byte
}

// Make writes an image's configuration and manifest.
func (s Spec) Make() (Image, error) {
	config := v1.ConfigFile{
		Architecture: s.Arch,
		OS:           "linux",
		Created:      v1.Time{Time: epoch},
		Config:       v1.Config{Env: []string{searchPath}, Entrypoint: s.Entrypoint, Cmd: s.Command, WorkingDir: "/"},
		RootFS:       v1.RootFS{Type: "layers"},
	}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	for _, layer := range s.Layers {
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, v1.Hash{Algorithm: "sha256", Hex: layer.DiffID})
		manifest.Layers = append(manifest.Layers, v1.Descriptor{MediaType: types.OCILayerZStd, Digest: layer.hash(), Size: layer.Size})
	}
	rawConfig, err := json.Marshal(config)
	if err != nil {
		return Image{}, err
	}
	digest, size, err := v1.SHA256(bytes.NewReader(rawConfig))
	if err != nil {
		return Image{}, err
	}
	manifest.Config = v1.Descriptor{MediaType: types.OCIConfigJSON, Digest: digest, Size: size}
	rawManifest, err := json.Marshal(manifest)
	if err != nil {
		return Image{}, err
	}
	return Image{Config: rawConfig, Manifest: rawManifest}, nil
}

// Blobs are the contents that a manifest names: configuration first, then layers.
func Blobs(manifest []byte) ([]Blob, error) {
	m, err := v1.ParseManifest(bytes.NewReader(manifest))
	if err != nil {
		return nil, fmt.Errorf("image manifest: %w", err)
	}
	blobs := []Blob{{SHA256: m.Config.Digest.Hex, Size: m.Config.Size}}
	for _, layer := range m.Layers {
		blobs = append(blobs, Blob{SHA256: layer.Digest.Hex, Size: layer.Size})
	}
	return blobs, nil
}

// Tagged is a manifest and the reference under which a layout's index has it.
type Tagged struct {
	Ref      string
	Arch     string
	Manifest Blob
}

// Layout is the content of the file oci-layout.
const Layout = `{"imageLayoutVersion":"1.0.0"}`

// Annotations by which containerd and other importers name an image of a layout.
const (
	annotationContainerd = "io.containerd.image.name"
	annotationRefName    = "org.opencontainers.image.ref.name"
)

// Index is the content of a layout's index.json with these images, in order of reference and architecture.
func Index(images []Tagged) ([]byte, error) {
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{}}
	images = slices.SortedFunc(slices.Values(images), func(a, b Tagged) int {
		return strings.Compare(a.Ref+" "+a.Arch, b.Ref+" "+b.Arch)
	})
	for _, image := range images {
		index.Manifests = append(index.Manifests, v1.Descriptor{
			MediaType:   types.OCIManifestSchema1,
			Digest:      image.Manifest.hash(),
			Size:        image.Manifest.Size,
			Platform:    &v1.Platform{OS: "linux", Architecture: image.Arch},
			Annotations: map[string]string{annotationContainerd: image.Ref, annotationRefName: image.Ref},
		})
	}
	return json.Marshal(index)
}
