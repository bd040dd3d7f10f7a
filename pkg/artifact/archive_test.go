// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

// TestImageArchive reads an archive back with a library that did not write it.
func TestImageArchive(t *testing.T) {
	b := mustCreate(t, newPublisher(t).options(t, "bundle"))
	refs := []string{"example.com/net:v0.1.0", "example.com/kube-proxy:v1.0.0"}
	archive, err := b.ImageArchive("arm64", refs...)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	n, err := archive.WriteTo(&out)
	if err != nil || n != archive.Size || int64(out.Len()) != n {
		t.Fatalf("wrote %d of %d: %v", n, archive.Size, err)
	}

	// The same images give the same bytes, in whatever order they are asked for.
	again, err := b.ImageArchive("arm64", refs[1], refs[0], refs[0])
	if err != nil {
		t.Fatal(err)
	}
	r, err := again.Open()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(data, out.Bytes()) || again.ID() != archive.ID() {
		t.Errorf("not the same bytes: %v", err)
	}
	digest, err := archive.Digest()
	if want := "sha256:" + oci.BlobOf(data).SHA256; err != nil || digest != want {
		t.Errorf("digest %s, %v, want %s", digest, err, want)
	}

	dir := untar(t, data)
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(refs)
	for i, desc := range m.Manifests {
		if desc.Annotations["io.containerd.image.name"] != refs[i] || desc.Annotations["org.opencontainers.image.ref.name"] != refs[i] {
			t.Errorf("image %d: annotations %v", i, desc.Annotations)
		}
		if archive.Images[i] != (ImageRef{Ref: refs[i], Digest: desc.Digest.String()}) {
			t.Errorf("image %d: %+v, %s", i, archive.Images[i], desc.Digest)
		}
		if !desc.Platform.Equals(v1.Platform{OS: "linux", Architecture: "arm64"}) {
			t.Errorf("image %d: platform %v", i, desc.Platform)
		}
	}
	net, err := index.Image(m.Manifests[1].Digest)
	if err != nil {
		t.Fatal(err)
	}
	validateImage(t, net)
	config, err := net.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; config.Architecture != "arm64" || !slices.Equal(c.Entrypoint, []string{"/netd"}) ||
		!slices.Equal(c.Cmd, []string{"run"}) || !strings.HasPrefix(c.Env[0], "PATH=/usr/local/sbin:") {
		t.Errorf("config: %+v", config)
	}
	files := map[string]string{}
	flat := mutate.Extract(net)
	for tr := tar.NewReader(flat); ; {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files["/"+strings.Trim(hdr.Name, "/")] = string(content)
	}
	if err := flat.Close(); err != nil {
		t.Error(err)
	}
	if files["/netd"] != "content of /arm64/netd" || files["/etc/base"] != "/arm64/rootfs.tar" {
		t.Errorf("files: %v", files)
	}
	if _, ok := files["/tmp"]; !ok {
		t.Errorf("no /tmp: %v", files)
	}

	// A layer that both images share is there once.
	if entries, err := os.ReadDir(filepath.Join(dir, "blobs", "sha256")); err != nil || len(entries) != 7 {
		t.Errorf("%d blobs, must be 2 manifests, 2 configurations, 2 layers and the base's: %v", len(entries), err)
	}
}

func TestImageArchiveRefuses(t *testing.T) {
	b := mustCreate(t, newPublisher(t).options(t, "bundle"))
	if _, err := b.ImageArchive("amd64", "example.com/nothing:v1"); err == nil || !strings.Contains(err.Error(), "example.com/net:v0.1.0 amd64") {
		t.Errorf("unknown image: %v", err)
	}
	if _, err := b.ImageArchive("s390x", "example.com/net:v0.1.0"); err == nil {
		t.Error("an image of no such architecture")
	}
	if _, err := b.ImageArchive("amd64"); err == nil {
		t.Error("no images")
	}
}

// TestBundleIsALayout: images/ is read by whatever reads an image layout.
func TestBundleIsALayout(t *testing.T) {
	b := mustCreate(t, newPublisher(t).options(t, "bundle"))
	index, err := layout.ImageIndexFromPath(filepath.Join(b.Dir(), "images"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil || len(m.Manifests) != 6 {
		t.Fatalf("%+v, %v", m, err)
	}
	for _, desc := range m.Manifests {
		image, err := index.Image(desc.Digest)
		if err != nil {
			t.Fatal(err)
		}
		validateImage(t, image)
	}
	if images := b.Images("amd64"); images["kube-proxy"] != "example.com/kube-proxy:v1.0.0" || len(images) != 3 {
		t.Errorf("images: %v", images)
	}
	data, err := os.ReadFile(filepath.Join(b.Dir(), "images", "oci-layout"))
	if err != nil || string(data) != oci.Layout {
		t.Errorf("%q, %v", data, err)
	}
}

// validateImage checks digests and sizes. The library's own check of layers' content knows gzip only.
func validateImage(t *testing.T, image v1.Image) {
	t.Helper()
	if err := validate.Image(image, validate.Fast); err != nil {
		t.Error(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers {
		r, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := v1.SHA256(r)
		err = errors.Join(err, r.Close())
		want, diffErr := layer.DiffID()
		if err := errors.Join(err, diffErr); err != nil || got != want {
			t.Errorf("layer is %s, must be %s: %v", got, want, err)
		}
	}
}

func untar(t *testing.T, data []byte) string {
	t.Helper()
	dir := t.TempDir()
	for tr := tar.NewReader(bytes.NewReader(data)); ; {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tr)
		path := filepath.Join(dir, hdr.Name)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}
