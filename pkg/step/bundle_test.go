// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// opened is a bundle with the program a/v1/amd64/a and the image r/a:1, both with this content.
func opened(t *testing.T, content string) *artifact.Bundle {
	t.Helper()
	dir := t.TempDir()
	put := func(rel string) oci.Blob {
		path := filepath.Join(dir, rel)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
		return oci.Blob{SHA256: strings.TrimPrefix(sha(content), "sha256:"), Size: int64(len(content))}
	}
	blob := "images/blobs/" + strings.Replace(sha(content), ":", "/", 1)
	m := artifact.Manifest{FormatVersion: artifact.FormatVersion, KubernetesVersion: "v1", Items: []artifact.Item{
		{Kind: artifact.KindBinary, Component: "a", Version: "v1", Arch: "amd64", Name: "a", Path: "a/v1/amd64/a", Blob: put("a/v1/amd64/a")},
		{
			Kind: artifact.KindImage, Component: "a", Version: "v1", Arch: "amd64", Name: "a", Path: blob, Blob: put(blob),
			Ref: "r/a:1", Digest: sha(content), Platform: "linux/amd64", Blobs: []oci.Blob{put(blob)},
		},
	}}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, artifact.ManifestName), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := artifact.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBundleOpens(t *testing.T) {
	b := opened(t, "content")
	f, err := b.Binary("a", "", "amd64", "a")
	if err != nil {
		t.Fatal(err)
	}
	a, err := step.ArtifactOf(b, f)
	if err != nil {
		t.Fatal(err)
	}
	if a.Path != "a/v1/amd64/a" || a.Digest != sha("content") || a.Size != 7 {
		t.Errorf("the reference is %+v", a)
	}
	r, err := step.FromBundle(b).Open(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if content, err := io.ReadAll(r); err != nil || string(content) != "content" {
		t.Errorf("%q, %v", content, err)
	}

	images, err := step.FromBundle(b).Open(t.Context(), step.Artifact{
		Path: step.Images, Arch: "amd64", Refs: []string{"r/a:1"}, Digests: []string{sha("content")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer images.Close()
	var names []string
	for archive := tar.NewReader(images); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	if !strings.Contains(strings.Join(names, " "), "index.json") {
		t.Errorf("the archive holds %q", names)
	}
}

// A plan names bytes: a bundle that has others under the same names is refused before anything is sent.
func TestBundleIsAnother(t *testing.T) {
	artifacts := step.FromBundle(opened(t, "rebuilt"))
	for _, tt := range []struct {
		name string
		of   step.Artifact
		want string
	}{
		{"program", step.Artifact{Path: "a/v1/amd64/a", Digest: sha("content")}, "a/v1/amd64/a in bundle"},
		{"image", step.Artifact{Path: step.Images, Arch: "amd64", Refs: []string{"r/a:1"}, Digests: []string{sha("content")}}, "image r/a:1 in bundle"},
	} {
		_, err := artifacts.Open(t.Context(), tt.of)
		if err == nil {
			t.Errorf("%s: it was opened", tt.name)
			continue
		}
		for _, want := range []string{tt.want, sha("content"), sha("rebuilt"), "plan again"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error says nothing of %q: %v", tt.name, want, err)
			}
		}
	}
	for _, a := range []step.Artifact{
		{Path: "b/v1/amd64/b", Digest: sha("content")},
		{Path: step.Images, Arch: "amd64", Refs: []string{"r/b:1"}, Digests: []string{sha("content")}},
		{Path: step.Images, Arch: "arm64", Refs: []string{"r/a:1"}, Digests: []string{sha("rebuilt")}},
		{Path: step.Images, Arch: "amd64", Refs: []string{"r/a:1"}},
	} {
		if _, err := artifacts.Open(t.Context(), a); err == nil {
			t.Errorf("%+v was opened", a)
		}
	}
}
