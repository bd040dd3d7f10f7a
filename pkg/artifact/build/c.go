// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// C is one static program compiled from C files of a Go module.
type C struct {
	Module Module `json:"module"`
	// Sources are the files' paths in the module.
	Sources []string `json:"sources"`
	// Program is the name of the result.
	Program string   `json:"program"`
	Flags   []string `json:"flags,omitempty"`
}

// Run compiles the program into job.Out.
func (c C) Run(ctx context.Context, job Job, sums []string) error {
	dir, err := moduleDir(ctx, job, c.Module, sums)
	if err != nil {
		return err
	}
	job.report("compiling", 0, 1)
	args := append([]string{"-static", "-s", "-Wl,--build-id=none"}, c.Flags...)
	args = append(args, "-o", filepath.Join(job.Out, c.Program))
	// The paths of the sources are relative so that they do not show in the program.
	for _, source := range c.Sources {
		args = append(args, filepath.FromSlash(source))
	}
	return command{dir: dir}.run(ctx, "gcc", args...)
}

// Validate reports what cannot be built.
func (c C) Validate() error {
	if c.Module.Path == "" || len(c.Sources) == 0 || c.Program == "" {
		return errors.New("module, sources and program must not be empty")
	}
	return nil
}

// moduleDir is the directory of a module's verified content.
func moduleDir(ctx context.Context, job Job, m Module, sums []string) (string, error) {
	job.report("fetching modules", 0, 1)
	if err := os.WriteFile(filepath.Join(job.Work, "go.mod"), []byte("module kubexm.build\n"), 0o644); err != nil {
		return "", err
	}
	src, err := download(ctx, job.Work, m, sums)
	return src.Dir, err
}
