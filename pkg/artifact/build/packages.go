// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Packages are packages of a Debian release with all that they depend on beyond what the smallest Debian has, and the index
// that makes an apt repository of them.
type Packages struct {
	// Suite is the release's code name.
	Suite string `json:"suite"`
	// Names are the packages.
	Names []string `json:"names"`
}

// The files that make a repository of packages.
const (
	Index           = "Packages"
	IndexCompressed = "Packages.gz"
	IndexRelease    = "Release"
)

//go:embed packages.sh
var packagesHook string

// packagesInside is where the hook leaves packages in the root file system that mmdebstrap makes.
const packagesInside = "packages"

// Run makes job.Out/<name>_<version>_<architecture>.deb, Packages, Packages.gz and Release. It is apt that finds what depends on
// what, and that verifies each package by the archive's signature.
func (p Packages) Run(ctx context.Context, job Job) error {
	job.report("downloading packages", 0, 0)
	hook := filepath.Join(job.Work, "packages.sh")
	if err := os.WriteFile(hook, []byte(packagesHook), 0o755); err != nil {
		return err
	}
	// mmdebstrap knows the release's mirrors, and gives apt a state of its own.
	env := []string{"KUBEXM_HOOK=" + hook, "KUBEXM_PACKAGES=" + strings.Join(p.Names, " ")}
	err := command{env: env}.run(ctx, "mmdebstrap", "--quiet", "--variant=custom", "--architectures="+job.Arch, "--format=null",
		`--customize-hook=sh -eu "$KUBEXM_HOOK" "$1"`, "--customize-hook=copy-out /"+packagesInside+" '"+job.Work+"'", p.Suite, "-")
	if err != nil {
		return err
	}
	if err := takePackages(filepath.Join(job.Work, packagesInside), job.Out); err != nil {
		return err
	}
	job.report("indexing packages", 0, 0)
	return index(ctx, p.Suite, job.Out)
}

// Validate reports what cannot be had.
func (p Packages) Validate() error {
	if p.Suite == "" || len(p.Names) == 0 {
		return errors.New("suite and names must not be empty")
	}
	for _, name := range p.Names {
		if !packageName.MatchString(name) {
			return fmt.Errorf("%q is not the name of a Debian package", name)
		}
	}
	return nil
}

var (
	packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	epoch       = regexp.MustCompile(`_[0-9]+%3a`)
)

// takePackages moves package files, under the names that they have in Debian's archive: without the epoch that apt adds.
func takePackages(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return errors.New("the smallest Debian has all of these packages: there is nothing to bring")
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, epoch.ReplaceAllLiteralString(e.Name(), "_"))); err != nil {
			return err
		}
	}
	return nil
}

// index makes an apt repository without subdirectories of the packages in dir.
func index(ctx context.Context, suite, dir string) error {
	if err := ftparchive(ctx, dir, Index, "packages", "."); err != nil {
		return err
	}
	if err := compress(filepath.Join(dir, Index), filepath.Join(dir, IndexCompressed)); err != nil {
		return err
	}
	return ftparchive(ctx, dir, IndexRelease, "-o", "APT::FTPArchive::Release::Codename="+suite, "release", ".")
}

// ftparchive has apt-ftparchive write a file.
func ftparchive(ctx context.Context, dir, name string, args ...string) error {
	// Where it writes, it must not find the file that it writes.
	f, err := os.CreateTemp(filepath.Dir(dir), name)
	if err != nil {
		return err
	}
	err = command{dir: dir, stdout: f}.run(ctx, "apt-ftparchive", args...)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), filepath.Join(dir, name))
}

func compress(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	w := gzip.NewWriter(f)
	_, err = w.Write(data)
	return errors.Join(err, w.Close(), f.Close())
}
