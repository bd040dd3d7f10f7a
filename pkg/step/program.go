// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import "path"

// Programs are executables installed into a directory, owned by root with mode 0755, under the names that they have in the
// bundle.
func Programs(dir string, programs []Artifact) []Step {
	files := make([]Step, len(programs))
	for i := range programs {
		files[i] = File{Path: path.Join(dir, path.Base(programs[i].Path)), Mode: 0o755, From: &programs[i]}
	}
	return files
}
