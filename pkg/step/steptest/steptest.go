// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steptest helps to test dedicated steps by the files that they write.
package steptest

import (
	"path/filepath"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Golden fails the test unless the files that s writes equal those of the same names in dir, a directory below testdata or "".
func Golden(t *testing.T, dir string, s step.Step) {
	t.Helper()
	for _, f := range Files(s) {
		golden.File(t, filepath.Join("testdata", dir, filepath.Base(f.Path)), f.Content.String())
	}
}

// Files are those that s, a sequence, writes.
func Files(s step.Step) []step.File {
	var all []step.File
	for _, p := range s.(step.Sequence).Parts {
		if f, ok := p.(step.File); ok {
			all = append(all, f)
		}
	}
	return all
}
