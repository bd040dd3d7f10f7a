// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"path"
	"slices"
)

// Programs are executables installed into a directory, owned by root with mode 0755, under the names that they have in the
// bundle. The units read those that are named like them; see File.ReadBy.
func Programs(dir string, programs []Artifact, units ...string) []Step {
	files := make([]Step, len(programs))
	for i := range programs {
		name := path.Base(programs[i].Path)
		f := File{Path: path.Join(dir, name), Mode: 0o755, From: &programs[i]}
		if unit := name + ".service"; slices.Contains(units, unit) {
			f.ReadBy = []string{unit}
		}
		files[i] = f
	}
	return files
}
