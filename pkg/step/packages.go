// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/deb"
)

// PackageFile is a distribution package in the bundle.
type PackageFile struct {
	deb.Package
	File Artifact `json:"file"`
}

// PackageFiles are packages of one release of an operating system.
type PackageFiles []PackageFile

// PackageFilesOf are those that a bundle has for a host with this operating system (debian/12); none if it was made without.
func PackageFilesOf(b *artifact.Bundle, system, arch string) (PackageFiles, error) {
	packages, err := b.SystemPackages(system, arch)
	if err != nil {
		return nil, err
	}
	files := make(PackageFiles, 0, len(packages))
	for _, p := range packages {
		a, err := ArtifactOf(b, p.File)
		if err != nil {
			return nil, err
		}
		files = append(files, PackageFile{Package: p.Package, File: a})
	}
	return files, nil
}

// For is the step's part of f: the packages of these names, as Package.Names has them, and what they depend on.
func (f PackageFiles) For(names ...string) PackageFiles {
	given, _ := f.split(names)
	files, err := f.needed(given, nil)
	if err != nil || len(files) == 0 {
		// An index that is wrong is refused when it is read.
		return nil
	}
	return files
}

// split tells names that f has, in the version that is asked for, from others.
func (f PackageFiles) split(names []string) (given, others []string) {
	have := make(map[string]string, len(f))
	for _, p := range f {
		have[p.Name] = p.Version
	}
	for _, n := range names {
		name, version := versioned(n)
		if v := have[name]; v != "" && (version == "" || version == v) {
			given = append(given, n)
		} else {
			others = append(others, n)
		}
	}
	return given, others
}

// needed are the files by which names, all of which f has, are installed beside what is.
func (f PackageFiles) needed(names []string, installed map[string]string) (PackageFiles, error) {
	packages := make([]deb.Package, len(f))
	for i, p := range f {
		packages[i] = p.Package
	}
	plain := make([]string, len(names))
	for i, n := range names {
		plain[i], _ = versioned(n)
	}
	places, err := deb.Needed(packages, plain, installed)
	if err != nil {
		return nil, fmt.Errorf("packages of the bundle: %w", err)
	}
	files := make(PackageFiles, 0, len(places))
	for _, i := range places {
		files = append(files, f[i])
	}
	return files, nil
}
