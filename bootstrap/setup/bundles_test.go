// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func TestBundlesThatAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.tar")
	if err := os.WriteFile(file, []byte("not a bundle"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		path string
		from spec.Bundle
		want string
	}{
		"none":            {"", spec.Bundle{}, "set cluster.artifacts.bundle.path"},
		"a URL":           {file, spec.Bundle{URL: "https://example.com/b"}, "cluster.artifacts.bundle.url is not supported"},
		"no such file":    {"", spec.Bundle{Path: file + ".gone"}, "no such file"},
		"another digest":  {"", spec.Bundle{Path: file, SHA256: strings.Repeat("0", 64)}, "as cluster.artifacts.bundle.sha256 says"},
		"without a store": {file, spec.Bundle{}, "a store is needed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := setup.Bundles(tc.path, nil)(t.Context(), spec.Artifacts{Bundle: tc.from}, "v1.36.3")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A directory may have a bundle for each version that hosts have; which is taken is the version's to say.
func TestBundlesOfSeveralVersions(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"v1.35.4", "v1.36.3"} {
		manifest := `{"formatVersion": 1, "kubernetesVersion": "` + version + `", "architectures": ["amd64"], "components": {"kubernetes": "` + version + `"}, "items": []}`
		if err := os.Mkdir(filepath.Join(dir, version), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, version, "manifest.json"), []byte(manifest), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	open := setup.Bundles(dir, nil)
	for _, version := range []string{"v1.35.4", "v1.36.3", "v1.35.4"} {
		b, err := open(t.Context(), spec.Artifacts{}, version)
		if err != nil || b.Version("kubernetes") != version {
			t.Errorf("%s: %v, %v", version, b, err)
		}
	}
	if _, err := open(t.Context(), spec.Artifacts{}, "v1.37.0"); err == nil || !strings.Contains(err.Error(), "are for Kubernetes v1.35.4, v1.36.3, not v1.37.0") {
		t.Errorf("got %v", err)
	}
}
