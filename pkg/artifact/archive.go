// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

// ImageArchive is a tar of an OCI image layout with some of a bundle's images, as "ctr -n k8s.io images import -" takes it. It is made
// while it is read: the same images give the same bytes, and a blob that they share is in it once.
type ImageArchive struct {
	// Images are the images in it, by reference.
	Images []ImageRef
	// Size is the size of the tar in bytes.
	Size int64

	dir     string
	members []archiveMember
	digest  func() (string, error)
}

// ImageRef is an image by name and by content. Digest ("sha256:…") is that of its manifest, which is what containerd
// lists as the image's digest.
type ImageRef struct {
	Ref    string
	Digest string
}

// archiveMember is a blob of the bundle, or a document that is made for the archive.
type archiveMember struct {
	name string
	blob oci.Blob
	data []byte
}

// ImageArchive is an archive of the images with these references for an architecture.
func (b *Bundle) ImageArchive(arch string, refs ...string) (*ImageArchive, error) {
	a := &ImageArchive{dir: b.dir}
	var tagged []oci.Tagged
	blobs := map[string]oci.Blob{}
	for _, ref := range slices.Compact(slices.Sorted(slices.Values(refs))) {
		i, err := b.image(arch, ref)
		if err != nil {
			return nil, err
		}
		a.Images = append(a.Images, ImageRef{Ref: i.Ref, Digest: i.Digest})
		tagged = append(tagged, oci.Tagged{Ref: i.Ref, Arch: i.Arch, Manifest: i.Blob})
		blobs[i.SHA256] = i.Blob
		for _, blob := range i.Blobs {
			blobs[blob.SHA256] = blob
		}
	}
	if len(tagged) == 0 {
		return nil, errors.New("image archive: no images are asked for")
	}
	index, err := oci.Index(tagged)
	if err != nil {
		return nil, err
	}
	a.add("oci-layout", []byte(oci.Layout))
	a.add("index.json", index)
	for _, sum := range slices.Sorted(maps.Keys(blobs)) {
		a.members = append(a.members, archiveMember{name: "blobs/sha256/" + sum, blob: blobs[sum]})
	}
	a.Size = 2 * tarBlock // the end
	for _, m := range a.members {
		a.Size += tarBlock + (m.blob.Size+tarBlock-1)/tarBlock*tarBlock
	}
	a.digest = sync.OnceValues(func() (string, error) {
		h := sha256.New()
		_, err := a.WriteTo(h)
		return "sha256:" + hex.EncodeToString(h.Sum(nil)), err
	})
	return a, nil
}

const tarBlock = 512

func (a *ImageArchive) add(name string, data []byte) {
	a.members = append(a.members, archiveMember{name: name, blob: oci.BlobOf(data), data: data})
}

// ID identifies the archive by what is in it, without reading it: the digest of its index.
func (a *ImageArchive) ID() string { return "sha256:" + a.members[1].blob.SHA256 }

// Digest is the digest of the tar. The first call reads all of it.
func (a *ImageArchive) Digest() (string, error) { return a.digest() }

// WriteTo writes the tar. A blob that is not what the manifest says ends it with a *CorruptError, before the end of the tar is written.
func (a *ImageArchive) WriteTo(w io.Writer) (int64, error) {
	counted := &countingWriter{w: w}
	tw := tar.NewWriter(counted)
	for _, m := range a.members {
		if err := a.write(tw, m); err != nil {
			return counted.n, fmt.Errorf("image archive: %w", err)
		}
	}
	err := tw.Close()
	return counted.n, err
}

func (a *ImageArchive) write(tw *tar.Writer, m archiveMember) (err error) {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: m.name, Size: m.blob.Size, Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR,
	}
	if err := tw.WriteHeader(header); err != nil {
		return err
	}
	if m.data != nil {
		_, err := io.Copy(tw, bytes.NewReader(m.data))
		return err
	}
	f, err := openVerified(a.dir, filepath.FromSlash(blobRel(m.blob.SHA256)), m.blob)
	if err != nil {
		return err
	}
	_, err = io.Copy(tw, f)
	return errors.Join(err, f.Close())
}

// Open is the tar as a stream.
func (a *ImageArchive) Open() (io.ReadCloser, error) {
	pr, pw := io.Pipe()
	go func() {
		_, err := a.WriteTo(pw)
		pw.CloseWithError(err)
	}()
	return pr, nil
}

// String names the images.
func (a *ImageArchive) String() string {
	refs := make([]string, 0, len(a.Images))
	for _, i := range a.Images {
		refs = append(refs, i.Ref)
	}
	return strings.Join(refs, ", ")
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
