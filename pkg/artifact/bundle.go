// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

// Bundle is a directory with everything that a cluster of one Kubernetes version is made of. It is safe for concurrent use.
type Bundle struct {
	dir      string
	manifest Manifest
	digest   string
	archive  string // the sum of the archive that it was unpacked from, or ""
	// systems are packages by systemKey, read once.
	systems sync.Map
}

// openDir opens an unpacked bundle that one of the signers has signed.
func openDir(dir string, by *Signers) (*Bundle, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	b, err := readDir(dir, by)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("bundle %s: it has no %s: not a bundle, or one that was not completed", dir, ManifestName)
	}
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", dir, err)
	}
	return b, nil
}

func readDir(dir string, by *Signers) (*Bundle, error) {
	f, err := openInside(dir, ManifestName)
	if err != nil {
		return nil, err
	}
	data, err := limited(f, maxManifest)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestName, err)
	}
	signature, err := readSignature(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", SignatureName, err)
	}
	// Before a parser sees it.
	if err := by.verify(data, signature); err != nil {
		return nil, err
	}
	m, err := decodeManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestName, err)
	}
	return &Bundle{dir: dir, manifest: m, digest: "sha256:" + oci.BlobOf(data).SHA256}, nil
}

// openInside opens a regular file below dir; links that lead out of dir are not followed.
func openInside(dir, rel string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Lstat(rel)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", rel)
	}
	return root.Open(rel)
}

// Dir is the bundle's directory.
func (b *Bundle) Dir() string { return b.dir }

// Digest is the digest of the manifest, and through it of the whole bundle ("sha256:…").
func (b *Bundle) Digest() string { return b.digest }

// SHA256 is the digest that OpenOptions.SHA256 is compared with: that of the archive, or of a directory's manifest.
func (b *Bundle) SHA256() string { return cmp.Or(b.archive, b.digest[len("sha256:"):]) }

// FromArchive reports whether Dir is where an archive was unpacked: in a store, which unpacks it again when the directory is gone.
func (b *Bundle) FromArchive() bool { return b.archive != "" }

// Manifest says what is in the bundle. It must not be changed.
func (b *Bundle) Manifest() Manifest { return b.manifest }

// File is a file of a bundle.
type File struct {
	// Name is what the file is called where it is installed.
	Name string
	// Path is where it lies on this machine.
	Path string
	// Digest is "sha256:…" of its content.
	Digest string
	// Size is in bytes.
	Size int64
	// Mode are its permissions: 0755 for a program, 0644 otherwise.
	Mode fs.FileMode

	dir, rel string
}

// Open reads the file and checks it by the way: where its content is not what the manifest says, the last Read
// fails with a *CorruptError in place of io.EOF.
func (f File) Open() (io.ReadCloser, error) {
	return openVerified(f.dir, f.rel, oci.Blob{SHA256: f.Digest[len("sha256:"):], Size: f.Size})
}

// CorruptError is a file whose content is not what the manifest says.
type CorruptError struct {
	Path string
	Want oci.Blob
	Got  oci.Blob
}

func (e *CorruptError) Error() string {
	if e.Want.Size != e.Got.Size {
		return fmt.Sprintf("%s is corrupt: it has %d bytes, must have %d", e.Path, e.Got.Size, e.Want.Size)
	}
	return fmt.Sprintf("%s is corrupt: its sha256 is %s, must be %s", e.Path, e.Got.SHA256, e.Want.SHA256)
}

type verifiedReader struct {
	file io.ReadCloser
	path string
	want oci.Blob
	hash hash.Hash
	read int64
}

func openVerified(dir, rel string, want oci.Blob) (io.ReadCloser, error) {
	f, err := openInside(dir, rel)
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", dir, err)
	}
	return newVerifiedReader(f, filepath.Join(dir, rel), want), nil
}

func newVerifiedReader(r io.ReadCloser, path string, want oci.Blob) *verifiedReader {
	return &verifiedReader{file: r, path: path, want: want, hash: sha256.New()}
}

func (r *verifiedReader) Read(p []byte) (int, error) {
	n, err := r.file.Read(p)
	r.hash.Write(p[:n])
	r.read += int64(n)
	if errors.Is(err, io.EOF) || r.read > r.want.Size {
		if got := (oci.Blob{SHA256: hex.EncodeToString(r.hash.Sum(nil)), Size: r.read}); got != r.want {
			return n, &CorruptError{Path: r.path, Want: r.want, Got: got}
		}
	}
	return n, err
}

func (r *verifiedReader) Close() error { return r.file.Close() }

func (b *Bundle) file(i Item) File {
	mode := fs.FileMode(0o644)
	if i.Kind == KindBinary {
		mode = 0o755
	}
	return File{
		Name: filepath.Base(i.Path), Path: filepath.Join(b.dir, filepath.FromSlash(i.Path)),
		Digest: "sha256:" + i.SHA256, Size: i.Size, Mode: mode, dir: b.dir, rel: filepath.FromSlash(i.Path),
	}
}

// Version is the version of a component in the bundle, or "" if it is not in it.
func (b *Bundle) Version(component string) string { return b.manifest.Components[component] }

// Binary is one program of a component, or an error that names what there is. An empty version is the bundle's one.
func (b *Bundle) Binary(component, version, arch, name string) (File, error) {
	files, err := b.Binaries(component, version, arch)
	if err != nil {
		return File{}, err
	}
	known := make([]string, 0, len(files))
	for _, f := range files {
		if f.Name == name {
			return f, nil
		}
		known = append(known, f.Name)
	}
	return File{}, fmt.Errorf("bundle %s: %w", b.dir, &UnknownNameError{What: "program of " + component, Name: name, Known: known})
}

// Binaries are all programs of a component, by name, or an error that names what there is. An empty version is the bundle's one.
func (b *Bundle) Binaries(component, version, arch string) ([]File, error) {
	var files []File
	var known []string
	for _, i := range b.manifest.Items {
		if i.Kind != KindBinary {
			continue
		}
		if i.Component == component && i.Arch == arch && (i.Version == version || version == "") {
			files = append(files, b.file(i))
		}
		known = append(known, i.Component+" "+i.Version+" "+i.Arch)
	}
	if len(files) == 0 {
		slices.Sort(known)
		return nil, fmt.Errorf("bundle %s: %w", b.dir, &UnknownNameError{
			What: "component", Name: component + " " + version + " " + arch, Known: slices.Compact(known),
		})
	}
	return files, nil
}

// Chart is a Helm chart (.tgz) by its name.
func (b *Bundle) Chart(name string) (File, error) {
	var known []string
	for _, i := range b.manifest.Items {
		if i.Kind != KindChart {
			continue
		}
		if i.Name == name {
			return b.file(i), nil
		}
		known = append(known, i.Name)
	}
	return File{}, fmt.Errorf("bundle %s: %w", b.dir, &UnknownNameError{What: "chart", Name: name, Known: known})
}

// File is a binary, chart or package by its path in the bundle ("kubernetes/v1.36.3/amd64/kubelet").
func (b *Bundle) File(path string) (File, error) {
	var known []string
	for _, i := range b.manifest.Items {
		if i.Kind == KindImage {
			continue
		}
		if i.Path == path {
			return b.file(i), nil
		}
		known = append(known, i.Path)
	}
	return File{}, fmt.Errorf("bundle %s: %w", b.dir, &UnknownNameError{What: "file", Name: path, Known: known})
}
