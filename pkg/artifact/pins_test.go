// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/fetch"
)

// TestLock: the first bundle writes the lock, the next is what the lock says or is not made, whatever the publisher says by then.
func TestLock(t *testing.T) {
	p := newPublisher(t)
	file := filepath.Join(t.TempDir(), "lock.yaml")
	create := func(change func(*CreateOptions)) (*Bundle, *Lock, error) {
		t.Helper()
		lock, err := ReadLock(file)
		if err != nil {
			t.Fatal(err)
		}
		opts := p.options(t, "bundle")
		if opts.Lock = lock; change != nil {
			change(&opts)
		}
		b, err := Create(t.Context(), opts)
		if _, statErr := os.Stat(opts.Out); err != nil && !errors.Is(statErr, os.ErrNotExist) {
			t.Errorf("a bundle was written though %v", err)
		}
		return b, lock, err
	}
	locked := func(o *CreateOptions) { o.Locked = true }
	refused := func(change func(*CreateOptions), words ...string) {
		t.Helper()
		_, _, err := create(change)
		var differs *LockError
		if !errors.As(err, &differs) {
			t.Fatalf("got %v, want it to be refused", err)
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q must have %q", err, word)
			}
		}
	}

	before := p.requests.Load()
	refused(locked, "/v1.0.0/amd64/kubelet: it is not in the lock file", "/arm64/rootfs.tar: it is not in the lock file")
	if p.requests.Load() != before {
		t.Error("something was asked for that is refused anyway")
	}
	first, lock, err := create(nil)
	if err != nil {
		t.Fatal(err)
	}
	byURL := func(a, b LockedFile) int { return strings.Compare(a.URL, b.URL) }
	if len(lock.Downloads) != 9 || len(lock.Images) != 6 || !slices.IsSortedFunc(lock.Downloads, byURL) {
		t.Errorf("locked: %+v", lock)
	}
	sum := sha256.Sum256([]byte("content of /v1.0.0/amd64/kubelet"))
	want := LockedFile{URL: p.URL + "/v1.0.0/amd64/kubelet", Size: 32, SHA256: hex.EncodeToString(sum[:])}
	if !slices.Contains(lock.Downloads, want) {
		t.Errorf("no %+v in %+v", want, lock.Downloads)
	}
	if err := lock.Write(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	entry := "sha256: " + want.SHA256 + "\n  size: 32\n  url: " + want.URL + "\n"
	if err != nil || !strings.HasPrefix(string(text), "# ") || !strings.Contains(string(text), entry) {
		t.Errorf("%s, %v", text, err)
	}

	// An empty store: all is fetched again, and no sum is asked for any more, so that a publisher's new one counts for nothing.
	p.lie.Store(true)
	again, lock, err := create(locked)
	if err != nil || again.Digest() != first.Digest() {
		t.Fatalf("made again: %v", err)
	}
	if err := lock.Write(file); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != string(text) {
		t.Errorf("the lock file is another: %s, %v", now, err)
	}
	p.lie.Store(false)

	// Another download than before.
	_ = os.WriteFile(file, []byte(strings.ReplaceAll(string(text), want.SHA256, strings.Repeat("a", 64))), 0o600)
	_, _, err = create(nil)
	if bad := (*fetch.SumError)(nil); !errors.As(err, &bad) || bad.Want != strings.Repeat("a", 64) {
		t.Errorf("got %v", err)
	}
	// Another size, of which the sum knows nothing.
	_ = os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "size: 32\n  url: "+want.URL, "size: 33\n  url: "+want.URL)), 0o600)
	refused(nil, want.URL, "(32 bytes)", "(33 bytes)")
	// Another image.
	image := lock.Images[0]
	_ = os.WriteFile(file, []byte(strings.ReplaceAll(string(text), image.Digest, "sha256:"+strings.Repeat("b", 64))), 0o600)
	refused(nil, image.Ref+" "+image.Platform+": "+image.Digest, "the lock file has sha256:bbbb")
	// The catalogue has another mind.
	_ = os.WriteFile(file, text, 0o600)
	refused(func(o *CreateOptions) {
		pinned := strings.Replace(tinyCatalogue, `sha256URL: "SERVER/net-{{.Version}}.tgz.sha256"`, `sha256: "`+strings.Repeat("c", 64)+`"`, 1)
		o.Catalogue, err = ParseCatalogue([]byte(strings.ReplaceAll(pinned, "SERVER", p.URL)))
		if err != nil {
			t.Fatal(err)
		}
	}, "the catalogue wants sha256 cccc")
}

// TestLockDoesNotTrustTheStore: what was made without a lock is made again with one.
func TestLockDoesNotTrustTheStore(t *testing.T) {
	p := newPublisher(t)
	opts := p.options(t, "bundle")
	mustCreate(t, opts)
	before := p.requests.Load()
	opts.Lock = &Lock{}
	mustCreate(t, opts)
	if p.requests.Load() == before || len(opts.Lock.Downloads) != 9 {
		t.Errorf("%d requests, and locked are %+v", p.requests.Load()-before, opts.Lock.Downloads)
	}
	// And what was made with one serves the next, who has lost the file.
	opts.Lock = &Lock{}
	before = p.requests.Load()
	mustCreate(t, opts)
	if got := p.requests.Load() - before; got != 9 || len(opts.Lock.Downloads) != 9 {
		t.Errorf("%d requests, want the 9 sums; locked are %+v", got, opts.Lock.Downloads)
	}
}

func TestReadLockRefuses(t *testing.T) {
	sum := strings.Repeat("a", 64)
	for text, want := range map[string]string{
		"downloads: [{url: https://x/y, sha256: " + sum + ", siez: 1}]":                               "siez",
		"downloads: [{url: https://x/y, size: 1}]":                                                    `downloads[0]: https://x/y: "" is not 64 hexadecimal digits`,
		"downloads: [{sha256: " + sum + "}]":                                                          "downloads[0]: it does not say of what",
		"packages: [{path: a, size: -1, sha256: " + sum + "}]":                                        "packages[0]: a: size -1",
		"images: [{ref: a, platform: b, digest: 'sha256:x'}]":                                         `images[0]: a b: "x" is not 64 hexadecimal digits`,
		"downloads: [{url: u, sha256: " + sum + ", size: 1}, {url: u, sha256: " + sum + ", size: 1}]": "downloads[1]: u is there twice",
		"[": "lock file",
	} {
		file := filepath.Join(t.TempDir(), "lock.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadLock(file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestPlainMirror: what comes by http:// is taken only where that is asked for, and only if it is what the publisher says.
func TestPlainMirror(t *testing.T) {
	p := newPublisher(t)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("content of " + strings.TrimPrefix(r.URL.Path, "/copy")))
	}))
	t.Cleanup(plain.Close)
	file := fetch.File{URL: p.URL + "/f", SHA256URL: p.URL + "/f.sha256", Name: "f"}
	f := fetch.Fetcher{Client: p.Client(), Mirrors: []fetch.Mirror{{From: p.URL, To: plain.URL + "/copy"}}}
	dst := filepath.Join(t.TempDir(), "f")
	if _, err := f.Fetch(t.Context(), file, dst, nil); err == nil || !strings.Contains(err.Error(), "it is not https://") {
		t.Errorf("got %v", err)
	}
	f.Insecure = true
	if _, err := f.Fetch(t.Context(), file, dst, nil); err != nil {
		t.Error(err)
	}
	p.lie.Store(true)
	if _, err := f.Fetch(t.Context(), file, dst, nil); !errors.As(err, new(*fetch.SumError)) {
		t.Errorf("got %v", err)
	}
	file.SHA256 = strings.Repeat("3", 64)
	if _, err := f.Fetch(t.Context(), file, dst, nil); err == nil || !strings.Contains(err.Error(), "its publisher says that its sha256 is") {
		t.Errorf("got %v", err)
	}
}
