// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"archive/tar"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

// TestVerifyRemedy: a corrupt directory is made again, and what was unpacked from an archive is unpacked again once it is removed.
func TestVerifyRemedy(t *testing.T) {
	index, err := oci.Index(nil)
	if err != nil {
		t.Fatal(err)
	}
	files := []struct{ name, content string }{
		{artifact.ManifestName, `{"formatVersion": 1, "kubernetesVersion": "v1.36.3", "items": []}`},
		{"images/index.json", string(index)},
		{"images/oci-layout", oci.Layout},
	}
	dir := t.TempDir()
	archive, err := os.Create(filepath.Join(dir, "bundle.tar"))
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(archive)
	if err := os.MkdirAll(filepath.Join(dir, "bundle", "images"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.content)), Mode: 0o644})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Write([]byte(f.content))
		if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "bundle", f.name), []byte(f.content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), archive.Close()); err != nil {
		t.Fatal(err)
	}
	t.Setenv(artifact.CacheVariable, filepath.Join(dir, "cache"))
	a := &app{}

	b, err := a.openBundle(t.Context(), filepath.Join(dir, "bundle"), "")
	if err != nil {
		t.Fatal(err)
	}
	corrupt := func() error {
		t.Helper()
		if err := errors.Join(verify(t.Context(), b), os.Truncate(filepath.Join(b.Dir(), "images", "oci-layout"), 1)); err != nil {
			t.Fatal(err)
		}
		return verify(t.Context(), b)
	}
	if err := corrupt(); err == nil || !strings.Contains(err.Error(), "kubexm bundle create --kubernetes-version v1.36.3 --output "+b.Dir()) {
		t.Errorf("a directory: %v", err)
	}

	if b, err = a.openBundle(t.Context(), archive.Name(), ""); err != nil {
		t.Fatal(err)
	}
	if err := corrupt(); err == nil || !strings.Contains(err.Error(), "remove "+b.Dir()) || strings.Contains(err.Error(), "bundle create") {
		t.Errorf("an archive: %v", err)
	}
	if err := os.RemoveAll(b.Dir()); err != nil {
		t.Fatal(err)
	}
	again, err := a.openBundle(t.Context(), archive.Name(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(t.Context(), again); err != nil || again.Dir() != b.Dir() {
		t.Errorf("it is in %s: %v", again.Dir(), err)
	}
}
