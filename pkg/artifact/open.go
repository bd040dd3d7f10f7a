// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// OpenOptions say what is asked of a bundle before anything is taken from it.
type OpenOptions struct {
	// Root, if set, is the directory in which the bundle must lie: the path is relative to it, and neither ".." nor a symbolic
	// link leads out of it.
	Root *os.Root
	// Store is where archives are unpacked. It may be nil for directories.
	Store *Store
	// SHA256 is the digest that the archive, or the directory's manifest, must have: 64 hexadecimal digits, or empty for any.
	SHA256 string
	// Signers are the keys one of which must have signed the bundle; nil asks for no signature.
	Signers *Signers
}

// DigestError is a bundle whose archive, or whose directory's manifest, has another digest than the one asked for.
type DigestError struct {
	Path string
	// Want and Got are 64 hexadecimal digits.
	Want, Got string
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("the bundle %s has the sha256 %s, not %s", e.Path, e.Got, e.Want)
}

// Open opens a bundle: a directory, or a tar that is plain or compressed by gzip or zstd. A tar is unpacked once into the store, under its
// digest, and verified as it is unpacked; store may be nil for a directory.
func Open(ctx context.Context, path string, store *Store) (*Bundle, error) {
	return OpenWith(ctx, path, OpenOptions{Store: store})
}

// OpenWith opens a bundle like Open, if it is what the options ask for. Errors: *DigestError, *SignatureError.
func OpenWith(ctx context.Context, path string, o OpenOptions) (*Bundle, error) {
	f, err := o.open(path)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	b, err := o.bundle(ctx, path, f)
	return b, errors.Join(err, f.Close())
}

func (o *OpenOptions) bundle(ctx context.Context, path string, f *os.File) (*Bundle, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	if info.IsDir() {
		b, err := openDir(f.Name(), o.Signers)
		if err != nil {
			return nil, err
		}
		return b, o.compare(path, b.digest[len("sha256:"):])
	}
	blob, err := sum(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	if err := o.compare(path, blob.SHA256); err != nil {
		return nil, err
	}
	if o.Store == nil {
		return nil, fmt.Errorf("bundle %s: a store is needed to unpack it to", path)
	}
	b, err := o.Store.bundle(ctx, blob.SHA256, o.Signers, func(dir string) error {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return unpackArchive(ctx, f, dir, o.Signers)
	})
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	return b, nil
}

func (o *OpenOptions) compare(path, got string) error {
	if o.SHA256 == "" || got == o.SHA256 {
		return nil
	}
	return &DigestError{Path: path, Want: o.SHA256, Got: got}
}

// open opens a directory or a regular file. Nothing else is read: a device has no end, and a pipe waits for anyone who writes to it.
// What is opened is asked again, because a path can come to lead elsewhere in between.
func (o *OpenOptions) open(path string) (*os.File, error) {
	stat, open := os.Stat, os.OpenFile
	if o.Root != nil {
		stat, open = o.Root.Stat, o.Root.OpenFile
	}
	info, err := stat(path)
	if err != nil {
		return nil, err
	}
	if err := readable(path, info); err != nil {
		return nil, err
	}
	f, err := open(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = readable(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func readable(path string, info fs.FileInfo) error {
	if info.IsDir() || info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%s is neither a regular file nor a directory, and a bundle is one of these", filepath.ToSlash(path))
}
