// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

// Tree is files of a Go module that images have over their base, such as scripts and configuration that a program wants to find.
type Tree struct {
	Module Module `json:"module"`
	// Directories are the module's that are copied, with all below them, by their path in it; each with its absolute path in the image.
	Directories map[string]string `json:"directories"`
	// Executable are patterns of path.Match of absolute paths in the image. A module does not say which of its files are programs.
	Executable []string `json:"executable,omitempty"`
}

// Run makes job.Out/rootfs.tar, which is an image layer.
func (t Tree) Run(ctx context.Context, job Job, sums []string) error {
	module, err := moduleDir(ctx, job, t.Module, sums)
	if err != nil {
		return err
	}
	job.report("packing", 0, 1)
	var entries []oci.Entry
	for from, to := range t.Directories {
		some, err := t.entries(filepath.Join(module, filepath.FromSlash(from)), to)
		if err != nil {
			return fmt.Errorf("directory %s of module %s: %w", from, t.Module, err)
		}
		entries = append(entries, some...)
	}
	for _, pattern := range t.Executable {
		if !matchesOne(pattern, entries) {
			return fmt.Errorf("module %s: executable: %s is no file of its", t.Module, pattern)
		}
	}
	f, err := os.Create(filepath.Join(job.Out, RootFS))
	if err != nil {
		return err
	}
	return errors.Join(oci.WriteLayer(f, nil, entries), f.Close())
}

// entries are the files below a directory, which may not be empty.
func (t Tree) entries(dir, to string) ([]oci.Entry, error) {
	var entries []oci.Entry
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", file)
		}
		within, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		e := oci.Entry{Path: path.Join(to, filepath.ToSlash(within)), Source: file, Mode: 0o644}
		for _, pattern := range t.Executable {
			if ok, _ := path.Match(pattern, e.Path); ok { // Validate has seen the pattern
				e.Mode = 0o755
			}
		}
		entries = append(entries, e)
		return nil
	})
	if err == nil && len(entries) == 0 {
		err = errors.New("it has no files")
	}
	return entries, err
}

func matchesOne(pattern string, entries []oci.Entry) bool {
	for _, e := range entries {
		if ok, _ := path.Match(pattern, e.Path); ok {
			return true
		}
	}
	return false
}

// Validate reports what cannot be built.
func (t Tree) Validate() error {
	if t.Module.Path == "" || len(t.Directories) == 0 {
		return errors.New("module and directories must not be empty")
	}
	for from, to := range t.Directories {
		if !filepath.IsLocal(from) || !path.IsAbs(to) || path.Clean(to) != to {
			return fmt.Errorf("directories: %q is to be a path in the module, and %q an absolute one", from, to)
		}
	}
	for _, pattern := range t.Executable {
		if _, err := path.Match(pattern, ""); err != nil || !strings.HasPrefix(pattern, "/") {
			return fmt.Errorf("executable: %q is not an absolute path or pattern", pattern)
		}
	}
	return nil
}
