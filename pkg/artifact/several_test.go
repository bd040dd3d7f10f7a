// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
)

func TestForVersion(t *testing.T) {
	dir := t.TempDir()
	manifest := func(name, kubernetes string) string {
		t.Helper()
		at := filepath.Join(dir, name)
		text := fmt.Sprintf(`{"formatVersion": 1, "kubernetesVersion": %q, "architectures": ["amd64"], "components": {"kubernetes": %q}, "items": []}`, kubernetes, kubernetes)
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, artifact.ManifestName), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return at
	}
	older, newer := manifest("many/a", "v1.35.4"), manifest("many/b", "v1.36.3")
	// What a "bundle create" that is under way, or was killed, has beside its output.
	manifest("many/.b.123", "v1.37.0")
	manifest("many/.b.123.old", "v1.38.0")
	if err := os.MkdirAll(filepath.Join(dir, "many", "else"), 0o755); err != nil {
		t.Fatal(err)
	}
	single, many := manifest("one", "v1.36.3"), filepath.Join(dir, "many")
	for _, tt := range []struct{ path, version, want, refused string }{
		{many, "v1.35.4", older, ""},
		{many, "v1.36.3", newer, ""},
		{many, "v1.37.0", "", "are for Kubernetes v1.35.4, v1.36.3, not v1.37.0: put one beside them"},
		{many, "v1.38.0", "", "are for Kubernetes v1.35.4, v1.36.3, not v1.38.0: put one beside them"},
		// For who opens it to tell of.
		{single, "v1.37.0", single, ""},
		{filepath.Join(dir, "nothing"), "v1.36.3", filepath.Join(dir, "nothing"), ""},
		{filepath.Join(many, "else"), "v1.36.3", filepath.Join(many, "else"), ""},
	} {
		got, err := artifact.ForVersion(tt.path, tt.version)
		switch {
		case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)):
			t.Errorf("%s in %s: got %v, want %q", tt.version, tt.path, err, tt.refused)
		case tt.refused == "" && (err != nil || got != tt.want):
			t.Errorf("%s in %s: got %s (%v), want %s", tt.version, tt.path, got, err, tt.want)
		}
	}
}
