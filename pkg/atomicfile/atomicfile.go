// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package atomicfile replaces files as a whole: whoever reads one, also after the machine lost its power, has what was there before or what
// is there now.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the file at path by what content writes, with this mode. Where that fails, what was there stays. The directory must be
// there, and a symbolic link at path is replaced, not what it leads to.
func Write(path string, mode fs.FileMode, content func(*os.File) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // it may be closed
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := content(f); err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// WriteBytes is Write of content that is at hand.
func WriteBytes(path string, mode fs.FileMode, content []byte) error {
	return Write(path, mode, func(f *os.File) error {
		_, err := f.Write(content)
		return err
	})
}

// syncDir has the disk keep a directory's entries, that a file that is there is found again.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
