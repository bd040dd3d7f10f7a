// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/build"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/fetch"
)

// tinyCatalogue is a release of small files that a server in the test has.
const tinyCatalogue = `
components:
- name: kubernetes
  kind: binary
  versions: [{version: v1.0.0}]
  download:
  - {name: kubelet, url: "SERVER/{{.Version}}/{{.Arch}}/kubelet", sha256URL: "SERVER/{{.Version}}/{{.Arch}}/kubelet.sha256"}
  - {name: kube-proxy, url: "SERVER/{{.Version}}/{{.Arch}}/kube-proxy", sha256URL: "SERVER/{{.Version}}/{{.Arch}}/kube-proxy.sha256"}
- name: net-chart
  kind: chart
  versions: [{version: v0.1.0}]
  download: [{name: "net-{{.Version}}.tgz", url: "SERVER/net-{{.Version}}.tgz", sha256URL: "SERVER/net-{{.Version}}.tgz.sha256"}]
- name: net
  kind: part
  versions: [{version: v0.1.0}]
  download: [{name: netd, url: "SERVER/{{.Arch}}/netd", sha256URL: "SERVER/{{.Arch}}/netd.sha256"}]
- name: extra
  kind: binary
  versions: [{version: v0.2.0}]
  download: [{name: extrad, url: "SERVER/{{.Arch}}/extrad", sha256URL: "SERVER/{{.Arch}}/extrad.sha256"}]
- name: extra-files
  kind: part
  versions: [{version: v0.2.0}]
  download: [{name: rootfs.tar, url: "SERVER/{{.Arch}}/extra.tar", sha256URL: "SERVER/{{.Arch}}/extra.tar.sha256"}]
- name: base
  kind: base
  versions: [{version: one}]
  download: [{name: rootfs.tar, url: "SERVER/{{.Arch}}/rootfs.tar", sha256URL: "SERVER/{{.Arch}}/rootfs.tar.sha256"}]
images:
- {name: kube-proxy, component: kubernetes, base: base, ref: "example.com/kube-proxy:{{.Version}}", files: {kube-proxy: /usr/local/bin/kube-proxy}}
- {name: net, component: net, base: base, ref: "example.com/net:{{.Version}}", files: {netd: /netd}, entrypoint: [/netd], command: [run], directories: [/tmp]}
- {name: extra, component: extra, over: extra-files, ref: "example.com/extra:{{.Version}}", files: {extrad: /extrad}, links: {/extra: extrad}}
- {name: proxy, component: base, base: base, ref: "example.com/proxy:{{.Version}}", entrypoint: [/usr/sbin/proxy]}
releases:
- kubernetes: v1.0.0
  components: {net: v0.1.0, net-chart: v0.1.0, base: one}
  optional: {extra: {extra: v0.2.0, extra-files: v0.2.0}}
`

// publisher serves a file for every path, with its sum beside it.
type publisher struct {
	*httptest.Server
	requests atomic.Int32
	lie      atomic.Bool // the sums are wrong
}

func newPublisher(t *testing.T) *publisher {
	p := &publisher{}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		path, isSum := strings.CutSuffix(r.URL.Path, ".sha256")
		content := []byte("content of " + path)
		if strings.HasSuffix(path, "rootfs.tar") {
			content = rootFS(path)
		}
		if !isSum {
			_, _ = w.Write(content)
			return
		}
		if p.lie.Load() {
			content = append(content, '!')
		}
		sum := sha256.Sum256(content)
		_, _ = w.Write([]byte(hex.EncodeToString(sum[:]) + "\n"))
	}))
	t.Cleanup(p.Close)
	return p
}

func rootFS(content string) []byte {
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	_ = tw.WriteHeader(&tar.Header{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755})
	_ = tw.WriteHeader(&tar.Header{Name: "etc/base", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))})
	_, _ = tw.Write([]byte(content))
	_ = tw.Close()
	return out.Bytes()
}

func (p *publisher) options(t *testing.T, out string) CreateOptions {
	t.Helper()
	c, err := ParseCatalogue([]byte(strings.ReplaceAll(tinyCatalogue, "SERVER", p.URL)))
	if err != nil {
		t.Fatal(err)
	}
	return CreateOptions{
		KubernetesVersion: "v1.0.0", Architectures: []string{"arm64", "amd64"}, Out: filepath.Join(t.TempDir(), out), Store: openStore(t),
		Catalogue: c, CreatedBy: "test", Client: p.Client(),
	}
}

func mustCreate(t *testing.T, opts CreateOptions) *Bundle {
	t.Helper()
	b, err := Create(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCreateDirectory(t *testing.T) {
	p := newPublisher(t)
	opts := p.options(t, "bundle")
	var last Event
	ended := map[Phase]int{}
	opts.Progress = func(e Event) { last = e; ended[e.Phase]++ }
	b := mustCreate(t, opts)
	if err := b.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if last.Phase != PhaseWriting || last.N != last.M || last.Finished != last.Total || ended[PhaseDone] != 13 {
		t.Errorf("last event %+v, phases %v", last, ended)
	}
	var files []string
	for _, i := range b.Manifest().Items {
		line := string(i.Kind) + " " + i.Name + " " + i.Arch
		if i.Kind == KindImage {
			line += " " + i.Ref + " " + i.Platform
		} else {
			line += " " + i.Path
		}
		files = append(files, line)
	}
	want := []string{
		"binary kube-proxy amd64 kubernetes/v1.0.0/amd64/kube-proxy",
		"binary kubelet amd64 kubernetes/v1.0.0/amd64/kubelet",
		"binary kube-proxy arm64 kubernetes/v1.0.0/arm64/kube-proxy",
		"binary kubelet arm64 kubernetes/v1.0.0/arm64/kubelet",
		"chart net  helm/net-v0.1.0.tgz",
		"image kube-proxy amd64 example.com/kube-proxy:v1.0.0 linux/amd64",
		"image net amd64 example.com/net:v0.1.0 linux/amd64",
		"image proxy amd64 example.com/proxy:one linux/amd64",
		"image kube-proxy arm64 example.com/kube-proxy:v1.0.0 linux/arm64",
		"image net arm64 example.com/net:v0.1.0 linux/arm64",
		"image proxy arm64 example.com/proxy:one linux/arm64",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}

	// Once more: nothing is fetched, nothing is written.
	requests := p.requests.Load()
	before, err := os.Stat(filepath.Join(b.Dir(), ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	ended = map[Phase]int{}
	again := mustCreate(t, opts)
	after, err := os.Stat(filepath.Join(b.Dir(), ManifestName))
	if err != nil || !os.SameFile(before, after) || again.Digest() != b.Digest() {
		t.Errorf("the bundle was written again: %v", err)
	}
	if got := p.requests.Load() - requests; got != 0 || ended[PhaseCached] != 13 || ended[PhaseWriting] != 0 {
		t.Errorf("%d requests, phases %v", got, ended)
	}

	// In another store it comes out the same.
	other := opts
	other.Store, other.Out = openStore(t), filepath.Join(t.TempDir(), "other")
	if got := mustCreate(t, other); got.Digest() != b.Digest() {
		t.Errorf("digest %s, must be %s", got.Digest(), b.Digest())
	}
}

// TestCreateWith has what is optional when it is asked for, and TestCreateDirectory not otherwise.
func TestCreateWith(t *testing.T) {
	opts := newPublisher(t).options(t, "bundle")
	opts.With = []string{"extra"}
	b := mustCreate(t, opts)
	programs, err := b.Binaries("extra", "v0.2.0", "amd64")
	if err != nil || len(programs) != 1 || programs[0].Name != "extrad" {
		t.Errorf("programs %+v, %v", programs, err)
	}
	if got := b.Images("amd64")["extra"]; got != "example.com/extra:v0.2.0" {
		t.Errorf("its image is %q", got)
	}
	if i, err := b.image("amd64", "example.com/extra:v0.2.0"); err != nil || len(i.Blobs) != 3 {
		t.Errorf("it is to have a configuration, the layer of extra-files, and one of its own: %+v, %v", i.Blobs, err)
	}
	if got := b.Version("extra"); got != "v0.2.0" {
		t.Errorf("its version is %q", got)
	}

	opts.With = []string{"extra", "net"}
	var unknown *UnknownNameError
	if _, err := Create(t.Context(), opts); !errors.As(err, &unknown) || unknown.Name != "net" || !slices.Equal(unknown.Known, []string{"extra"}) {
		t.Errorf("a component that is no optional one: %v", err)
	}
}

func TestCreateArchive(t *testing.T) {
	p := newPublisher(t)
	opts := p.options(t, "bundle")
	want := mustCreate(t, opts)
	for _, name := range []string{"bundle.tar", "bundle.tar.gz", "bundle.tgz", "bundle.tar.zst"} {
		t.Run(name, func(t *testing.T) {
			opts := opts
			opts.Out = filepath.Join(t.TempDir(), name)
			b := mustCreate(t, opts)
			if b.Digest() != want.Digest() {
				t.Errorf("digest %s, must be %s", b.Digest(), want.Digest())
			}
			other := openStore(t)
			b, err := Open(t.Context(), opts.Out, other)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			kubelet, err := b.Binary(Kubernetes, "", "arm64", "kubelet")
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(kubelet.Path)
			if err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("%v, %v", info, err)
			}
			// The second time it is not unpacked.
			again, err := Open(t.Context(), opts.Out, other)
			if err != nil || again.Dir() != b.Dir() {
				t.Errorf("%v, %v", again, err)
			}
			empty(t, filepath.Join(other.root, "work"))
		})
	}
}

func TestCreateRefuses(t *testing.T) {
	p := newPublisher(t)
	for name, tc := range map[string]struct {
		change func(*CreateOptions)
		want   string
	}{
		"unknown version":      {func(o *CreateOptions) { o.KubernetesVersion = "v9.9.9" }, "no artifacts for kubernetes v9.9.9; known versions: v1.0.0"},
		"unknown architecture": {func(o *CreateOptions) { o.Architectures = []string{"s390x"} }, `no architecture "s390x"`},
		"unknown zone":         {func(o *CreateOptions) { o.Zone = "mars" }, `no zone "mars"`},
		"unknown preference":   {func(o *CreateOptions) { o.Prefer = "luck" }, `no preference "luck"`},
		"no store":             {func(o *CreateOptions) { o.Store = nil }, "store and out must be set"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := p.options(t, "bundle")
			requests := p.requests.Load()
			tc.change(&opts)
			_, err := Create(t.Context(), opts)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if p.requests.Load() != requests {
				t.Error("something was fetched")
			}
		})
	}
}

func TestCreateBadSum(t *testing.T) {
	p := newPublisher(t)
	p.lie.Store(true)
	opts := p.options(t, "bundle")
	opts.Jobs = 1 // another's download that is cut by the failure would be kept, to go on from there
	_, err := Create(t.Context(), opts)
	var bad *fetch.SumError
	if !errors.As(err, &bad) {
		t.Fatalf("got %v", err)
	}
	for _, dir := range []string{"blobs/sha256", "recipes", "work", "part"} {
		empty(t, filepath.Join(opts.Store.root, dir))
	}
	if _, err := os.Stat(opts.Out); err == nil {
		t.Error("there is a bundle")
	}
	p.lie.Store(false)
	mustCreate(t, opts)
}

// TestCreateDamagedStore: what was damaged in the store does not get into a bundle, and the next call makes it anew.
func TestCreateDamagedStore(t *testing.T) {
	p := newPublisher(t)
	opts := p.options(t, "bundle")
	b := mustCreate(t, opts)
	kubelet, err := b.Binary(Kubernetes, "", "amd64", "kubelet")
	if err != nil {
		t.Fatal(err)
	}
	flip(t, kubelet.Path) // which the store shares
	_, err = Create(t.Context(), opts)
	var bad *VerifyError
	if !errors.As(err, &bad) || bad.Problems[0].Path != "kubernetes/v1.0.0/amd64/kubelet" || !strings.Contains(err.Error(), "try again") {
		t.Fatalf("got %v", err)
	}
	if err := mustCreate(t, opts).Verify(t.Context()); err != nil {
		t.Error(err)
	}

	kubelet, err = mustCreate(t, opts).Binary(Kubernetes, "", "amd64", "kubelet")
	if err != nil {
		t.Fatal(err)
	}
	flip(t, kubelet.Path)
	opts.Out += ".tar.zst"
	_, err = Create(t.Context(), opts)
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "try again") {
		t.Fatalf("got %v", err)
	}
	if _, err := os.Stat(opts.Out); err == nil {
		t.Error("there is an archive")
	}
	if err := mustCreate(t, opts).Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCreateLeavesOthersFilesAlone: only a bundle with nothing else in it gives way to another, and that is known before anything is made.
func TestCreateLeavesOthersFilesAlone(t *testing.T) {
	p := newPublisher(t)
	for name, tc := range map[string]struct {
		before func(opts *CreateOptions) error
		want   string
	}{
		"a directory": {func(opts *CreateOptions) error { return os.Mkdir(opts.Out, 0o755) }, "not a bundle"},
		"one with a manifest of something else": {func(opts *CreateOptions) error {
			return errors.Join(os.Mkdir(opts.Out, 0o755), os.WriteFile(filepath.Join(opts.Out, ManifestName), []byte(`{"name":"app"}`), 0o644))
		}, "not a bundle"},
		"a bundle": {func(opts *CreateOptions) error {
			mustCreate(t, *opts)
			opts.With = []string{"extra"}
			return nil
		}, "precious is no file of the bundle"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := p.options(t, "bundle")
			precious := filepath.Join(opts.Out, "precious")
			if err := errors.Join(tc.before(&opts), os.WriteFile(precious, nil, 0o644)); err != nil {
				t.Fatal(err)
			}
			requests := p.requests.Load()
			if _, err := Create(t.Context(), opts); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if _, err := os.Stat(precious); err != nil {
				t.Error(err)
			}
			if p.requests.Load() != requests {
				t.Error("something was fetched")
			}
		})
	}
}

func TestCreateCancelled(t *testing.T) {
	p := newPublisher(t)
	opts := p.options(t, "bundle")
	ctx, cancel := context.WithCancel(t.Context())
	opts.Progress = func(e Event) {
		if e.Phase == PhaseDone {
			cancel()
		}
	}
	if _, err := Create(ctx, opts); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	opts.Progress = nil
	if err := mustCreate(t, opts).Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCheckOrders: what stands in the way of building is reported before anything is begun, all of it at once.
func TestCheckOrders(t *testing.T) {
	foreign := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	c := defaultCatalogue(t)
	m := &maker{store: openStore(t), progress: &progress{}}
	t.Setenv("PATH", t.TempDir())
	var list []order
	for _, of := range [][2]string{{"runc", foreign}, {"debian", runtime.GOARCH}, {"etcd", foreign}} {
		r, err := c.Recipe(of[0], c.Versions(of[0])[0], of[1])
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, newOrder(r, FromSource, "go1"))
	}
	err := m.check(t.Context(), list)
	var missing *build.MissingToolsError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "apt-get install -y gcc libseccomp-dev mmdebstrap pkg-config") {
		t.Errorf("tools: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "runc v1.5.2 "+foreign+": it is built with the tools of its own architecture") || strings.Contains(err.Error(), "etcd") {
		t.Errorf("architecture: %v", err)
	}
	// Upstream's own files need no tools.
	runc, err := c.Recipe("runc", "v1.5.2", foreign)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.check(t.Context(), []order{newOrder(runc, FromUpstream, "go1")}); err != nil {
		t.Errorf("download: %v", err)
	}
}

// flip changes one byte in place.
func flip(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data = slices.Clone(data)
	data[len(data)/2] ^= 1
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
