// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// epoch is the time of everything in an image.
var epoch = time.Unix(0, 0).UTC()

// Compress copies a layer's tar to w, compressed, and returns the sum of the tar (its DiffID).
func Compress(w io.Writer, write func(io.Writer) error) (diffID string, err error) {
	// More than one goroutine is not sure to give the same bytes each time.
	zw, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if err := errors.Join(write(io.MultiWriter(zw, h)), zw.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Entry is a file of this machine and its absolute path in the image, or a symbolic link there.
type Entry struct {
	Path   string
	Source string
	Mode   os.FileMode
	// Link is where a symbolic link leads to. It has no Source.
	Link string
}

// WriteLayer writes a layer of root's files, in order of their paths, with the directories that lead to them. Directories that are named
// are made for everybody to write, as /tmp is.
func WriteLayer(w io.Writer, directories []string, entries []Entry) error {
	tw := tar.NewWriter(w)
	made := map[string]bool{"/": true}
	for _, dir := range slices.Sorted(slices.Values(directories)) {
		if err := errors.Join(writeParents(tw, dir, made), writeDirectory(tw, dir, 0o1777)); err != nil {
			return err
		}
		made[dir] = true
	}
	entries = slices.SortedFunc(slices.Values(entries), func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	for _, e := range entries {
		if err := writeParents(tw, e.Path, made); err != nil {
			return err
		}
		if err := writeEntry(tw, e); err != nil {
			return fmt.Errorf("layer: %s: %w", e.Path, err)
		}
	}
	return tw.Close()
}

func writeParents(tw *tar.Writer, p string, made map[string]bool) error {
	dir := path.Dir(p)
	if made[dir] {
		return nil
	}
	if err := writeParents(tw, dir, made); err != nil {
		return err
	}
	made[dir] = true
	return writeDirectory(tw, dir, 0o755)
}

func writeDirectory(tw *tar.Writer, dir string, mode int64) error {
	return tw.WriteHeader(&tar.Header{
		Typeflag: tar.TypeDir, Name: strings.TrimPrefix(dir, "/") + "/", Mode: mode, ModTime: epoch, Format: tar.FormatUSTAR,
	})
}

func writeEntry(tw *tar.Writer, e Entry) (err error) {
	if e.Link != "" {
		return tw.WriteHeader(&tar.Header{
			Typeflag: tar.TypeSymlink, Name: strings.TrimPrefix(e.Path, "/"),
			Linkname: e.Link, Mode: 0o777, ModTime: epoch, Format: tar.FormatUSTAR,
		})
	}
	f, err := os.Open(e.Source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := tw.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: strings.TrimPrefix(e.Path, "/"), Size: info.Size(),
		Mode: int64(e.Mode.Perm()), ModTime: epoch, Format: tar.FormatUSTAR,
	}); err != nil {
		return err
	}
	_, err = io.Copy(tw, f)
	return err
}
