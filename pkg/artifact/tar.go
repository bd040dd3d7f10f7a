// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

// archiveForm is how an archive is compressed.
type archiveForm string

const (
	formTar  archiveForm = "tar"
	formGzip archiveForm = "gzip"
	formZstd archiveForm = "zstd"
)

// formOf says how a file of this name is to be compressed, and false if it names a directory.
func formOf(name string) (archiveForm, bool) {
	switch name = strings.ToLower(name); {
	case strings.HasSuffix(name, ".tar"):
		return formTar, true
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"):
		return formGzip, true
	case strings.HasSuffix(name, ".tar.zst"):
		return formZstd, true
	}
	return "", false
}

// archiveWriter writes a bundle as a tar.
type archiveWriter struct {
	tar      *tar.Writer
	compress io.Closer
}

func newArchiveWriter(w io.Writer, form archiveForm) (*archiveWriter, error) {
	switch form {
	case formGzip:
		zw := gzip.NewWriter(w)
		return &archiveWriter{tar: tar.NewWriter(zw), compress: zw}, nil
	case formZstd:
		zw, err := zstd.NewWriter(w)
		if err != nil {
			return nil, err
		}
		return &archiveWriter{tar: tar.NewWriter(zw), compress: zw}, nil
	default:
		return &archiveWriter{tar: tar.NewWriter(w), compress: io.NopCloser(nil)}, nil
	}
}

func (w *archiveWriter) header(rel string, size int64, mode fs.FileMode) error {
	return w.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: rel, Size: size, Mode: int64(mode), ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
	})
}

func (w *archiveWriter) document(rel string, data []byte) error {
	if err := w.header(rel, int64(len(data)), 0o644); err != nil {
		return err
	}
	_, err := w.tar.Write(data)
	return err
}

// file writes content of the store.
func (w *archiveWriter) file(rel string, s *Store, b oci.Blob, mode fs.FileMode) error {
	if err := w.header(rel, b.Size, mode); err != nil {
		return err
	}
	f, err := openVerified(s.root, s.blobRel(b.SHA256), b)
	if err != nil {
		return err
	}
	_, err = io.Copy(w.tar, f)
	return errors.Join(err, f.Close())
}

func (w *archiveWriter) close() error { return errors.Join(w.tar.Close(), w.compress.Close()) }

// bundle is the bundle whose archive has this sum, unpacked. fill does so unless it is there and can be read.
func (s *Store) bundle(ctx context.Context, sum string, by *Signers, fill func(dir string) error) (_ *Bundle, err error) {
	dst := filepath.Join(s.root, "bundles", sum)
	unlock, err := lock(ctx, filepath.Join(s.root, "locks", "bundle-"+sum), nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	open := func() (*Bundle, error) {
		b, err := openDir(dst, by)
		if err == nil {
			b.archive = sum
		}
		return b, err
	}
	// One that cannot be read was damaged since. So was, perhaps, one whose signature is wrong: fill compares the archive's own.
	if b, err := open(); err == nil {
		return b, nil
	}
	work := filepath.Join(s.root, "work", "bundle-"+sum)
	if err := errors.Join(os.RemoveAll(work), os.MkdirAll(work, 0o755)); err != nil {
		return nil, err
	}
	if err = fill(work); err == nil {
		err = syncTree(work) // nobody makes it again after a crash
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(work))
	}
	if err := errors.Join(os.RemoveAll(dst), os.Rename(work, dst)); err != nil {
		return nil, err
	}
	return open()
}

// unpackArchive unpacks a bundle's archive into an empty directory. Only regular files that the manifest at its beginning lists are
// taken, each with the size and sum that it lists, and all of them must come; before the first, the manifest's signature is compared.
func unpackArchive(ctx context.Context, r io.Reader, dir string, by *Signers) error {
	plain, done, err := decompress(&cancelReader{ctx: ctx, r: r})
	if err != nil {
		return err
	}
	defer done()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()

	tr := tar.NewReader(plain)
	hdr, err := nextFile(tr)
	if err != nil {
		return fmt.Errorf("not a bundle: %w", err)
	}
	if hdr.Name != ManifestName {
		return fmt.Errorf("not a bundle: its first file is %q, must be %s", hdr.Name, ManifestName)
	}
	data, err := limited(tr, maxManifest)
	if err != nil {
		return fmt.Errorf("%s: %w", ManifestName, err)
	}
	var signature []byte
	hdr, err = nextFile(tr)
	if err == nil && hdr.Name == SignatureName {
		if signature, err = limited(tr, maxSignature); err != nil {
			return fmt.Errorf("%s: %w", SignatureName, err)
		}
		hdr, err = nextFile(tr)
	}
	if err := by.verify(data, signature); err != nil {
		return err
	}
	next := err // of hdr
	m, err := decodeManifest(data)
	if err != nil {
		return fmt.Errorf("%s: %w", ManifestName, err)
	}
	missing, err := m.contents()
	if err != nil {
		return err
	}
	modes := modesOf(m)
	for ; len(missing) > 0; hdr, next = nextFile(tr) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if errors.Is(next, io.EOF) {
			return fmt.Errorf("it is not complete: %d files that its manifest lists are missing, %s first", len(missing), slices.Min(slices.Collect(maps.Keys(missing))))
		}
		if next != nil {
			return next
		}
		want, ok := missing[hdr.Name]
		if !ok {
			return fmt.Errorf("%q is not in its manifest, or is there twice", hdr.Name)
		}
		delete(missing, hdr.Name)
		if err := unpackFile(root, hdr.Name, tr, want, modes(hdr.Name)); err != nil {
			return err
		}
	}
	switch {
	case next == nil:
		return fmt.Errorf("%q is not in its manifest, or is there twice", hdr.Name)
	case !errors.Is(next, io.EOF):
		return next
	}
	if len(signature) > 0 {
		if err := root.WriteFile(SignatureName, signature, 0o644); err != nil {
			return err
		}
	}
	return root.WriteFile(ManifestName, data, 0o644)
}

// nextFile is the next regular file; directories are passed over, and anything else is refused.
func nextFile(tr *tar.Reader) (*tar.Header, error) {
	for {
		hdr, err := tr.Next()
		switch {
		case err != nil:
			return nil, err
		case hdr.Typeflag == tar.TypeDir:
			continue
		case hdr.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("%q is not a regular file: a bundle has neither links nor devices", hdr.Name)
		}
		return hdr, nil
	}
}

func unpackFile(root *os.Root, rel string, r io.Reader, want oci.Blob, mode fs.FileMode) error {
	name := filepath.FromSlash(rel)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	v := newVerifiedReader(io.NopCloser(r), rel, want)
	_, err = io.Copy(f, v)
	return errors.Join(err, f.Close())
}

// decompress reads the first bytes for how a stream is compressed.
func decompress(r io.Reader) (plain io.Reader, done func(), err error) {
	br := bufio.NewReaderSize(r, 1<<20)
	magic, err := br.Peek(4)
	if err != nil {
		return nil, nil, fmt.Errorf("not a bundle: %w", err)
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		zr, err := gzip.NewReader(br)
		if err != nil {
			return nil, nil, err
		}
		return zr, func() { _ = zr.Close() }, nil
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		zr, err := zstd.NewReader(br, zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, nil, err
		}
		return zr, zr.Close, nil
	}
	return br, func() {}, nil
}
