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
