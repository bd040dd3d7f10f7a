// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden compares what tests make with files that are in the repository, to be read by a person. With go test -update the files
// are written instead.
package golden

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// File fails the test unless the file at path is got.
func File(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		write(t, path, got)
	}
	equal(t, path, read(t, path), got)
}

// Part fails the test unless got is what stands between begin and end in the file at path.
func Part(t testing.TB, path, begin, end, got string) {
	t.Helper()
	before, rest, _ := strings.Cut(read(t, path), begin)
	want, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has nothing between %q and %q", path, begin, end)
	}
	if *update {
		write(t, path, before+begin+got+end+after)
		return
	}
	equal(t, path, want, got)
}

// Tree fails the test unless dir has just these files, by their paths below it.
func Tree(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			write(t, filepath.Join(dir, name), text)
		}
	}
	kept := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		kept[strings.TrimPrefix(path, dir+"/")] = read(t, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept, files); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it):\n%s", dir, diff)
	}
}

func equal(t testing.TB, path, want, got string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it):\n%s", path, diff)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}
