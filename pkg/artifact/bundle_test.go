// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

func TestBundleFiles(t *testing.T) {
	b := mustCreate(t, newPublisher(t).options(t, "bundle"))
	kubelet, err := b.Binary(Kubernetes, "v1.0.0", "arm64", "kubelet")
	if err != nil {
		t.Fatal(err)
	}
	const content = "content of /v1.0.0/arm64/kubelet"
	if kubelet.Size != int64(len(content)) || kubelet.Digest != "sha256:"+oci.BlobOf([]byte(content)).SHA256 ||
		kubelet.Mode != 0o755 || kubelet.Name != "kubelet" {
		t.Errorf("kubelet: %+v", kubelet)
	}
	if got := read(t, kubelet); got != content {
		t.Errorf("kubelet: %q", got)
	}
	chart, err := b.Chart("net")
	if err != nil || chart.Name != "net-v0.1.0.tgz" || chart.Mode != 0o644 || read(t, chart) != "content of /net-v0.1.0.tgz" {
		t.Errorf("chart: %+v, %v", chart, err)
	}
	files, err := b.Binaries(Kubernetes, "", "amd64")
	if err != nil || len(files) != 2 || files[0].Name != "kube-proxy" || files[1].Name != "kubelet" {
		t.Errorf("binaries: %+v, %v", files, err)
	}
	if f, err := b.File("kubernetes/v1.0.0/arm64/kubelet"); err != nil || f != kubelet {
		t.Errorf("by its path: %+v, %v", f, err)
	}
	if _, err := b.File("../" + ManifestName); err == nil || !strings.Contains(err.Error(), "helm/net-v0.1.0.tgz") {
		t.Errorf("a path that is not in it: %v", err)
	}
	if b.Version("net") != "v0.1.0" || b.Version("nothing") != "" {
		t.Errorf("versions: %v", b.Manifest().Components)
	}

	for want, get := range map[string]func() error{
		`no program of kubernetes "kubeadm"; known: kube-proxy, kubelet`:                     func() error { _, err := b.Binary(Kubernetes, "", "amd64", "kubeadm"); return err },
		`no component "kubernetes v2.0.0 amd64"; known: kubernetes v1.0.0 amd64, kubernetes`: func() error { _, err := b.Binaries(Kubernetes, "v2.0.0", "amd64"); return err },
		`no chart "calico"; known: net`:                                                      func() error { _, err := b.Chart("calico"); return err },
		`no component "etcd  amd64"`:                                                         func() error { _, err := b.Binaries("etcd", "", "amd64"); return err },
	} {
		if err := get(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestVerifyNamesEveryFile(t *testing.T) {
	opts := newPublisher(t).options(t, "bundle.tar")
	b := mustCreate(t, opts) // unpacked: no file is shared with the store
	in := func(rel string) string { return filepath.Join(b.Dir(), filepath.FromSlash(rel)) }
	image, err := b.image("amd64", "example.com/net:v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	layer := blobRel(image.Blobs[2].SHA256)
	flip(t, in("kubernetes/v1.0.0/amd64/kubelet"))
	flip(t, in(layer))
	outside := filepath.Join(t.TempDir(), "kube-proxy")
	if err := errors.Join(
		os.Truncate(in("kubernetes/v1.0.0/arm64/kubelet"), 3),
		os.Remove(in("helm/net-v0.1.0.tgz")),
		os.WriteFile(in("helm/other.tgz"), nil, 0o644),
		os.WriteFile(in("images/index.json"), []byte("{}"), 0o644),
		// The right content, by a link that leads out of the bundle.
		os.Rename(in("kubernetes/v1.0.0/arm64/kube-proxy"), outside),
		os.Symlink(outside, in("kubernetes/v1.0.0/arm64/kube-proxy")),
	); err != nil {
		t.Fatal(err)
	}
	err = b.Verify(t.Context())
	var bad *VerifyError
	if !errors.As(err, &bad) {
		t.Fatalf("got %v", err)
	}
	got := map[string]string{}
	for _, p := range bad.Problems {
		got[p.Path] = strings.Join(strings.Fields(p.Reason)[:3], " ")
		if !strings.Contains(err.Error(), p.Path) {
			t.Errorf("the message does not name %s", p.Path)
		}
	}
	want := map[string]string{
		"helm/net-v0.1.0.tgz":                "it is missing",
		"helm/other.tgz":                     "it is not",
		"images/index.json":                  "it is corrupt:",
		layer:                                "it is corrupt:",
		"kubernetes/v1.0.0/amd64/kubelet":    "it is corrupt:",
		"kubernetes/v1.0.0/arm64/kubelet":    "it is corrupt:",
		"kubernetes/v1.0.0/arm64/kube-proxy": "bundle " + b.Dir() + ": kubernetes/v1.0.0/arm64/kube-proxy",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	// Reading such a file fails at its end, and not before.
	kubelet, err := b.Binary(Kubernetes, "", "amd64", "kubelet")
	if err != nil {
		t.Fatal(err)
	}
	r, err := kubelet.Open()
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, r)
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.Path != kubelet.Path {
		t.Errorf("got %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	archive, err := b.ImageArchive("amd64", "example.com/net:v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := archive.WriteTo(io.Discard); !errors.As(err, &corrupt) {
		t.Errorf("archive: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(t.Context(), filepath.Join(dir, "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	if _, err := Open(t.Context(), dir, nil); err == nil || !strings.Contains(err.Error(), "not a bundle") {
		t.Errorf("empty directory: %v", err)
	}
	file := filepath.Join(dir, "file.tar")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), file, nil); err == nil || !strings.Contains(err.Error(), "a store is needed") {
		t.Errorf("no store: %v", err)
	}
	if _, err := Open(t.Context(), file, openStore(t)); err == nil || !strings.Contains(err.Error(), "not a bundle") {
		t.Errorf("empty file: %v", err)
	}
}

func TestManifestRefuses(t *testing.T) {
	b := mustCreate(t, newPublisher(t).options(t, "bundle"))
	for name, tc := range map[string]struct {
		change func(*Manifest)
		want   string
	}{
		"newer format":          {func(m *Manifest) { m.FormatVersion = 2 }, "formatVersion is 2; this version of kubexm reads 1"},
		"kind":                  {func(m *Manifest) { m.Items[0].Kind = "toy" }, `kind "toy" is none of`},
		"path out of it":        {func(m *Manifest) { m.Items[0].Path = "../../etc/passwd" }, `path is "../../etc/passwd", must be`},
		"component out of it":   {func(m *Manifest) { m.Items[0].Component = ".."; m.Items[0].Path = m.Items[0].place() }, `".." is not a name`},
		"name with a slash":     {func(m *Manifest) { m.Items[0].Name = "a/b"; m.Items[0].Path = m.Items[0].place() }, `"a/b" is not a name`},
		"in the image layout":   {func(m *Manifest) { m.Items[0].Component = "images"; m.Items[0].Path = m.Items[0].place() }, "component must not be images"},
		"sum":                   {func(m *Manifest) { m.Items[0].SHA256 = "../x" }, `sha256 "../x"`},
		"size":                  {func(m *Manifest) { m.Items[0].Size = -1 }, "size -1"},
		"blob's sum":            {func(m *Manifest) { m.Items[5].Blobs[0].SHA256 = "../../x" }, `sha256 "../../x"`},
		"twice and different":   {func(m *Manifest) { m.Items[1].Path, m.Items[1].Name = m.Items[0].Path, m.Items[0].Name }, "is listed with different content"},
		"image twice":           {func(m *Manifest) { m.Items = append(m.Items, m.Items[5]) }, "is there twice"},
		"digest of another":     {func(m *Manifest) { m.Items[5].Digest = m.Items[6].Digest }, "contradict"},
		"program with a digest": {func(m *Manifest) { m.Items[0].Ref = "x" }, "are for images"},
	} {
		t.Run(name, func(t *testing.T) {
			m := cloneManifest(t, b.Manifest())
			tc.change(&m)
			data, err := m.encode()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ReadManifest(strings.NewReader(string(data))); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	for name, text := range map[string]string{"empty": "", "not JSON": "hello", "unknown field": `{"formatVersion": 1, "colour": "red"}`} {
		if _, err := ReadManifest(strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func cloneManifest(t testing.TB, m Manifest) Manifest {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var clone Manifest
	if err := json.Unmarshal(data, &clone); err != nil {
		t.Fatal(err)
	}
	return clone
}

func read(t *testing.T, f File) string {
	t.Helper()
	r, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return string(data)
}
