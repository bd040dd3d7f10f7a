// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestIndex makes a package and a repository of it by the distribution's own tools.
func TestIndex(t *testing.T) {
	dir, tree := filepath.Join(t.TempDir(), "repository"), t.TempDir()
	if err := os.MkdirAll(filepath.Join(tree, "DEBIAN"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	control := "Package: kubexm-test\nVersion: 1:2-3\nArchitecture: all\nMaintainer: nobody <nobody@example.com>\nDescription: test\n"
	if err := os.WriteFile(filepath.Join(tree, "DEBIAN", "control"), []byte(control), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "kubexm-test_2-3_all.deb")
	if out, err := exec.Command("dpkg-deb", "--root-owner-group", "--build", tree, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := index(t.Context(), "bookworm", dir); err != nil {
		t.Fatal(err)
	}
	for name, words := range map[string][]string{
		Index:        {"Package: kubexm-test\n", "Version: 1:2-3\n", "Filename: ./kubexm-test_2-3_all.deb\n", "SHA256: "},
		IndexRelease: {"Codename: bookworm\n", " Packages\n", " Packages.gz\n"},
	} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			if !strings.Contains(string(content), word) {
				t.Errorf("%s lacks %q:\n%s", name, word, content)
			}
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
		t.Errorf("beside the repository are %v, %v", entries, err)
	}
}
