// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// server has one file and its sum, notes what is asked of it, and breaks off after cut bytes of the first answer.
type server struct {
	*httptest.Server
	content []byte
	sum     string
	ranges  bool
	cut     int

	mu       sync.Mutex
	requests []string
}

func newServer(t *testing.T, content []byte) *server {
	sum := sha256.Sum256(content)
	s := &server{content: content, sum: hex.EncodeToString(sum[:]), ranges: true}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Range")))
	cut := s.cut
	s.cut = 0
	s.mu.Unlock()
	switch {
	case r.URL.Path == "/none":
		http.NotFound(w, r)
	case r.URL.Path == "/file.sha256":
		_, _ = w.Write([]byte(s.sum))
	case cut > 0:
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write(s.content[:cut])
	case s.ranges:
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.content))
	default:
		_, _ = w.Write(s.content)
	}
}

func (s *server) file() File { return File{URL: s.URL + "/file", SHA256: s.sum, Name: "file"} }

func (s *server) fetcher() Fetcher { return Fetcher{Client: s.Client()} }

func TestFetch(t *testing.T) {
	content := bytes.Repeat([]byte("content "), 1<<19)
	s := newServer(t, content)
	dst := filepath.Join(t.TempDir(), "f")
	var done, total int64
	sum, err := s.fetcher().Fetch(t.Context(), s.file(), dst, func(d, of int64) { done, total = d, of })
	if err != nil || sum != s.sum {
		t.Fatal(sum, err)
	}
	holds(t, dst, content)
	if done != int64(len(content)) || total != done {
		t.Errorf("reported %d of %d", done, total)
	}
}

func TestFetchPublishedSum(t *testing.T) {
	s := newServer(t, []byte("content"))
	file := File{URL: s.URL + "/file", SHA256URL: s.URL + "/file.sha256", Name: "file"}
	dst := filepath.Join(t.TempDir(), "f")
	if _, err := s.fetcher().Fetch(t.Context(), file, dst, nil); err != nil {
		t.Fatal(err)
	}
	holds(t, dst, []byte("content"))
}

// TestFetchMirror: a mirror is asked for the file and never for the sum.
func TestFetchMirror(t *testing.T) {
	origin, mirror := newServer(t, []byte("content")), newServer(t, []byte("c0ntent"))
	f := Fetcher{Client: origin.Client(), Mirrors: []Mirror{{From: origin.URL + "/", To: mirror.URL + "/copy/"}}}
	file := File{URL: origin.URL + "/file", SHA256URL: origin.URL + "/file.sha256", Name: "file"}
	dir := t.TempDir()
	_, err := f.Fetch(t.Context(), file, filepath.Join(dir, "f"), nil)
	var bad *SumError
	if !errors.As(err, &bad) || bad.Want != origin.sum || bad.Got != mirror.sum || bad.URL != mirror.URL+"/copy/file" {
		t.Errorf("got %v", err)
	}
	holdsNothing(t, dir)
	if got := strings.Join(origin.requests, ","); got != "/file.sha256" {
		t.Errorf("the origin was asked for %s", got)
	}
}

func TestFetchBadSum(t *testing.T) {
	s := newServer(t, []byte("content"))
	dir := t.TempDir()
	file := s.file()
	file.SHA256 = strings.Repeat("0", 64)
	_, err := s.fetcher().Fetch(t.Context(), file, filepath.Join(dir, "f"), nil)
	var bad *SumError
	if !errors.As(err, &bad) || bad.Got != s.sum {
		t.Errorf("got %v", err)
	}
	holdsNothing(t, dir)
}

func TestFetchContinues(t *testing.T) {
	for name, tc := range map[string]struct {
		ranges bool
		want   string
	}{
		"where it was":      {true, "/file,/file bytes=400-"},
		"anew if it has to": {false, "/file,/file bytes=400-"},
	} {
		t.Run(name, func(t *testing.T) {
			content := bytes.Repeat([]byte("x"), 1000)
			s := newServer(t, content)
			s.ranges, s.cut = tc.ranges, 400
			dst := filepath.Join(t.TempDir(), "f")
			if _, err := s.fetcher().Fetch(t.Context(), s.file(), dst, nil); err == nil {
				t.Fatal("half of it was taken for the whole")
			}
			if _, err := os.Stat(dst); !errors.Is(err, fs.ErrNotExist) {
				t.Fatal("half of it has the name of the whole")
			}
			if _, err := s.fetcher().Fetch(t.Context(), s.file(), dst, nil); err != nil {
				t.Fatal(err)
			}
			holds(t, dst, content)
			if got := strings.Join(s.requests, ","); got != tc.want {
				t.Errorf("requests %s, must be %s", got, tc.want)
			}
		})
	}
}

// TestFetchStalePart: what was fetched of another file is found out and thrown away.
func TestFetchStalePart(t *testing.T) {
	for name, part := range map[string]string{"shorter": "abc", "as long": "abcdefg", "longer": "abcdefghij"} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, []byte("content"))
			dir := t.TempDir()
			dst := filepath.Join(dir, "f")
			if err := os.WriteFile(dst+".part", []byte(part), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := s.fetcher().Fetch(t.Context(), s.file(), dst, nil)
			var bad *SumError
			if !errors.As(err, &bad) {
				t.Fatalf("got %v", err)
			}
			holdsNothing(t, dir)
			if _, err := s.fetcher().Fetch(t.Context(), s.file(), dst, nil); err != nil {
				t.Fatal(err)
			}
			holds(t, dst, []byte("content"))
		})
	}
}

func TestFetchStatus(t *testing.T) {
	s := newServer(t, nil)
	file := s.file()
	file.URL = s.URL + "/none"
	_, err := s.fetcher().Fetch(t.Context(), file, filepath.Join(t.TempDir(), "f"), nil)
	var status *StatusError
	if !errors.As(err, &status) || status.Status != "404 Not Found" {
		t.Errorf("got %v", err)
	}
}

func TestFindSum(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	for name, tc := range map[string]struct{ text, want string }{
		"bare":              {a, a},
		"bare with newline": {a + "\n", a},
		"one line":          {a + "  runc.amd64\n", a},
		"binary mode":       {a + " *runc.amd64\n", a},
		"with a path":       {a + "  ./out/runc.amd64\n", a},
		"of several":        {b + "  runc.arm64\n" + a + "  runc.amd64\n", a},
		"signed":            {"-----BEGIN PGP SIGNED MESSAGE-----\n\n" + b + "  x\n" + a + "  runc.amd64\n", a},
		"of others":         {b + "  runc.arm64\n", ""},
		"two bare":          {a + "\n" + b + "\n", ""},
		"a page":            {"<html>", ""},
		"nothing":           {"", ""},
	} {
		got, err := findSum(strings.NewReader(tc.text), "runc.amd64")
		if got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestFileValidate(t *testing.T) {
	good := File{URL: "https://example.com/f", SHA256: strings.Repeat("a", 64), Name: "f"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*File){
		"url must not be empty":     func(f *File) { f.URL = "" },
		"is not a URL":              func(f *File) { f.URL = "file:///etc/passwd" },
		"sha256, sha256URL or both": func(f *File) { f.SHA256 = "" },
		"not 64 hexadecimal":        func(f *File) { f.SHA256 = "abc" },
		"one of name and extract":   func(f *File) { f.Name = "" },
		"not the name of a file":    func(f *File) { f.Name, f.Extract = "", map[string]string{"bin/f": "../f"} },
	} {
		f := good
		change(&f)
		if err := f.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func holds(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes, must have %d: %v", path, len(got), len(want), err)
	}
}

func holdsNothing(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// What no sum pins comes by https, and is not led away from it.
func TestInsecure(t *testing.T) {
	sum := strings.Repeat("0", 64)
	for _, test := range []struct {
		file File
		ok   bool
	}{
		{File{URL: "https://example.com/f", SHA256URL: "https://example.com/f.sha256", Name: "f"}, true},
		{File{URL: "http://example.com/f", SHA256: sum, Name: "f"}, true},
		{File{URL: "http://example.com/f", SHA256URL: "https://example.com/f.sha256", Name: "f"}, false},
		{File{URL: "https://example.com/f", SHA256URL: "http://example.com/f.sha256", Name: "f"}, false},
	} {
		if err := test.file.Validate(); (err == nil) != test.ok {
			t.Errorf("%+v: %v", test.file, err)
		}
	}

	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(sum)) }))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer secure.Close()
	file := File{URL: secure.URL + "/file", SHA256URL: secure.URL + "/file.sha256", Name: "file"}
	_, err := Fetcher{Client: secure.Client()}.Fetch(t.Context(), file, filepath.Join(t.TempDir(), "f"), nil)
	if err == nil || !strings.Contains(err.Error(), "is not https://") {
		t.Errorf("got %v", err)
	}
}
