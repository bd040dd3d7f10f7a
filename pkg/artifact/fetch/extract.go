// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Extract takes the regular files that members names (by their path in the archive) out of a tar, compressed by gzip if
// its first bytes say so, and writes them into dir under their new names. A member that is missing is an error.
func Extract(archive, dir string, members map[string]string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := decompressed(f)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	missing := maps.Clone(members)
	tr := tar.NewReader(r)
	for len(missing) > 0 {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: it has no %s", archive, strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		member := path.Clean(hdr.Name)
		name, wanted := missing[member]
		if !wanted || hdr.Typeflag != tar.TypeReg {
			continue
		}
		delete(missing, member)
		if err := writeFile(filepath.Join(dir, name), tr); err != nil {
			return fmt.Errorf("%s: %s: %w", archive, member, err)
		}
	}
	return nil
}

func decompressed(f *os.File) (io.Reader, error) {
	var magic [2]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil {
		return nil, err
	}
	if err := seekStart(f); err != nil {
		return nil, err
	}
	if magic == [2]byte{0x1f, 0x8b} {
		return gzip.NewReader(f)
	}
	return f, nil
}

func writeFile(name string, r io.Reader) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
