// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// RootFS is the name of the file that Debian.Run makes.
const RootFS = "rootfs.tar"

// Debian is a small user space for images whose program calls others (iptables, ip …).
type Debian struct {
	// Suite is the release's code name.
	Suite string `json:"suite"`
	// Packages are installed beside Debian's essential ones.
	Packages []string `json:"packages"`
	// Exclude are paths, without a leading slash, that are left out with all below them. A pattern of path.Match is allowed
	// in each element.
	Exclude []string `json:"exclude,omitempty"`
}

// Run makes job.Out/rootfs.tar, which is at once an image layer. Its content follows the Debian archive of the day:
// it is verified by the archive's signature, and not the same from one point release to the next.
func (d Debian) Run(ctx context.Context, job Job) error {
	job.report("installing packages", 0, 0)
	f, err := os.Create(filepath.Join(job.Out, RootFS))
	if err != nil {
		return err
	}
	pr, pw := io.Pipe()
	filtered := make(chan error, 1)
	go func() {
		err := filterRootFS(f, pr, d.Exclude)
		pr.CloseWithError(err)
		filtered <- err
	}()
	err = command{env: []string{"SOURCE_DATE_EPOCH=0"}, stdout: pw}.run(ctx, "mmdebstrap",
		"--variant=essential", "--architectures="+job.Arch, "--format=tar",
		"--include="+strings.Join(d.Packages, ","), d.Suite, "-")
	pw.CloseWithError(err) // nil is the end of the file
	return errors.Join(err, <-filtered, f.Close())
}

// Validate reports what cannot be built.
func (d Debian) Validate() error {
	if d.Suite == "" {
		return errors.New("suite must not be empty")
	}
	for _, p := range d.Exclude {
		if _, err := path.Match(p, ""); err != nil || strings.HasPrefix(p, "/") {
			return fmt.Errorf("exclude: %q is not a relative path or pattern", p)
		}
	}
	return nil
}

// filterRootFS copies a tar of a root file system without what exclude names, without device nodes (a runtime makes
// those) and with one modification time.
func filterRootFS(w io.Writer, r io.Reader, exclude []string) error {
	tr, tw := tar.NewReader(r), tar.NewWriter(w)
	for {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("root file system: %w", err)
		}
		name := path.Clean(hdr.Name)
		switch {
		case name == "." || excluded(name, exclude):
			continue
		case hdr.Typeflag == tar.TypeChar || hdr.Typeflag == tar.TypeBlock || hdr.Typeflag == tar.TypeFifo:
			continue
		case hdr.Typeflag == tar.TypeLink && excluded(path.Clean(hdr.Linkname), exclude):
			return fmt.Errorf("root file system: %s is a hard link to %s, which is excluded", name, hdr.Linkname)
		}
		hdr.Name = name
		if hdr.Typeflag == tar.TypeDir {
			hdr.Name += "/"
		}
		if hdr.Typeflag == tar.TypeLink {
			hdr.Linkname = path.Clean(hdr.Linkname)
		}
		hdr.Uname, hdr.Gname = "", ""
		hdr.ModTime, hdr.AccessTime, hdr.ChangeTime = time.Unix(0, 0), time.Time{}, time.Time{}
		hdr.Format = tar.FormatPAX
		if err := tw.WriteHeader(hdr); err != nil {
			return err
		}
		if _, err := io.Copy(tw, tr); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	// mmdebstrap pads its output and would die of a pipe that nobody reads.
	_, err := io.Copy(io.Discard, r)
	return err
}

// excluded says whether name or a directory above it matches one of the patterns.
func excluded(name string, patterns []string) bool {
	for ; name != "." && name != "/"; name = path.Dir(name) {
		for _, p := range patterns {
			if ok, _ := path.Match(p, name); ok { // Validate has seen the pattern
				return true
			}
		}
	}
	return false
}
