// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package atomicfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/atomicfile"
)

// TestWrite: what fails leaves what was there, and nothing beside it; what succeeds has the content and the mode.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	full := errors.New("the disk is full")
	for _, step := range []struct {
		write func() error
		want  error
		is    string
		mode  os.FileMode
	}{
		{write: func() error { return atomicfile.WriteBytes(path, 0o644, []byte("old")) }, is: "old", mode: 0o644},
		{write: func() error {
			return atomicfile.Write(path, 0o600, func(f *os.File) error {
				_, err := f.WriteString("half")
				return errors.Join(err, full)
			})
		}, want: full, is: "old", mode: 0o644},
		{write: func() error { return atomicfile.WriteBytes(path, 0o600, []byte("new")) }, is: "new", mode: 0o600},
	} {
		if err := step.write(); !errors.Is(err, step.want) {
			t.Fatalf("got %v, want %v", err, step.want)
		}
		content, err := os.ReadFile(path)
		if err != nil || string(content) != step.is {
			t.Errorf("there is %q (%v), want %q", content, err, step.is)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != step.mode {
			t.Errorf("%v, %v, want the mode %v", info, err, step.mode)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("there are %v (%v)", entries, err)
		}
	}
	if err := atomicfile.WriteBytes(filepath.Join(dir, "no", "f"), 0o600, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without its directory: %v", err)
	}
}
