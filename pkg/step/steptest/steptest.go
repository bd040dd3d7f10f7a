// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steptest helps to test dedicated steps by the files that they write.
package steptest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Golden fails the test unless the files that s writes equal those of the same names in dir, a directory below testdata or "".
func Golden(t *testing.T, dir string, s step.Step) {
	t.Helper()
	for _, f := range Files(s) {
		name := filepath.Join("testdata", dir, filepath.Base(f.Path))
		got := f.Content.String()
		if *update {
			if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got), go test -update writes it anew:\n%s", name, diff)
		}
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
