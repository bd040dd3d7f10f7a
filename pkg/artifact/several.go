// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ForVersion is the path of the bundle for a version of Kubernetes: path itself, or where that is a directory with bundles in
// directories of their own, the one of them that has the version. Where none has it, the error names the versions that there are.
// What is no bundle at all is left for Open to tell of.
func ForVersion(path, kubernetes string) (string, error) {
	if _, err := os.Lstat(filepath.Join(path, ManifestName)); err == nil {
		return path, nil
	}
	inside, err := os.ReadDir(path)
	if err != nil {
		return path, nil //nolint:nilerr // an archive, or nothing
	}
	var known []string
	for _, e := range inside {
		dir := filepath.Join(path, e.Name())
		if _, err := os.Lstat(filepath.Join(dir, ManifestName)); err != nil {
			continue
		}
		b, err := openDir(dir)
		if err != nil {
			return "", err
		}
		has := b.Version(Kubernetes)
		if has == kubernetes {
			return dir, nil
		}
		known = append(known, has)
	}
	if len(known) == 0 {
		return path, nil
	}
	slices.Sort(known)
	return "", fmt.Errorf("the bundles in %s are for Kubernetes %s, not %s: put one beside them that is made by "+
		"kubexm bundle create --kubernetes-version %s", path, strings.Join(slices.Compact(known), ", "), kubernetes, kubernetes)
}
