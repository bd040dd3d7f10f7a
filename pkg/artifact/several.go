// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ForVersion is the path of the bundle for a version of Kubernetes: path itself, or where that is a directory with bundles in
// directories of their own, the one of them that has the version. Names that begin with a dot are passed over. Where none has it, the
// error names the versions that there are. What is no bundle at all is left for Open to tell of.
func ForVersion(path, kubernetes string) (string, error) {
	dir, err := forVersion(os.DirFS(path), ".", path, kubernetes)
	return filepath.Join(path, filepath.FromSlash(dir)), err
}

// ForVersionIn is ForVersion of a path relative to a directory, which is not left by symbolic links. So is the path that it returns.
func ForVersionIn(root *os.Root, path, kubernetes string) (string, error) {
	dir, err := forVersion(root.FS(), filepath.ToSlash(path), filepath.Join(root.Name(), path), kubernetes)
	return filepath.FromSlash(dir), err
}

// forVersion searches dir, which errors call name.
func forVersion(files fs.FS, dir, name, kubernetes string) (string, error) {
	if _, err := fs.Stat(files, path.Join(dir, ManifestName)); err == nil {
		return dir, nil
	}
	// A pipe would be waited for.
	if info, err := fs.Stat(files, dir); err != nil || !info.IsDir() {
		return dir, nil //nolint:nilerr // an archive, or nothing
	}
	inside, err := fs.ReadDir(files, dir)
	if err != nil {
		return "", fmt.Errorf("bundles in %s: %w", name, err)
	}
	var known []string
	for _, e := range inside {
		if strings.HasPrefix(e.Name(), ".") {
			continue // of a bundle that is being made, or was when its maker was killed
		}
		at := path.Join(dir, e.Name())
		has, err := kubernetesOf(files, at)
		switch {
		case errors.Is(err, errNoBundle):
			continue
		case err != nil:
			return "", fmt.Errorf("bundle %s: %w", filepath.Join(name, e.Name()), err)
		case has == kubernetes:
			return at, nil
		}
		known = append(known, has)
	}
	if len(known) == 0 {
		return dir, nil
	}
	slices.Sort(known)
	return "", fmt.Errorf("the bundles in %s are for Kubernetes %s, not %s: put one beside them that is made by "+
		"kubexm bundle create --kubernetes-version %s", name, strings.Join(slices.Compact(known), ", "), kubernetes, kubernetes)
}

var errNoBundle = errors.New("it has no " + ManifestName)

// kubernetesOf is the version of Kubernetes in a bundle's directory.
func kubernetesOf(files fs.FS, dir string) (string, error) {
	manifest := path.Join(dir, ManifestName)
	if info, err := fs.Stat(files, manifest); err != nil || !info.Mode().IsRegular() {
		return "", errNoBundle
	}
	f, err := files.Open(manifest)
	if err != nil {
		return "", err
	}
	m, err := ReadManifest(f)
	return m.Components[Kubernetes], errors.Join(err, f.Close())
}
