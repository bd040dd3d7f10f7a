// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func rootFS(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	for _, hdr := range headers {
		if hdr.Typeflag == tar.TypeReg {
			hdr.Size = 4
		}
		hdr.Mode, hdr.ModTime = 0o755, time.Now()
		if err := tw.WriteHeader(&hdr); err != nil {
			t.Fatal(err)
		}
		if hdr.Size > 0 {
			if _, err := tw.Write([]byte("file")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestFilterRootFS(t *testing.T) {
	in := rootFS(t,
		tar.Header{Name: "./", Typeflag: tar.TypeDir},
		tar.Header{Name: "./bin", Typeflag: tar.TypeSymlink, Linkname: "usr/bin"},
		tar.Header{Name: "./dev/", Typeflag: tar.TypeDir},
		tar.Header{Name: "./dev/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3},
		tar.Header{Name: "./usr/share/doc/", Typeflag: tar.TypeDir},
		tar.Header{Name: "./usr/share/doc/bash/README", Typeflag: tar.TypeReg},
		tar.Header{Name: "./usr/share/docbook", Typeflag: tar.TypeReg},
		tar.Header{Name: "./usr/bin/perl5.36", Typeflag: tar.TypeReg},
		tar.Header{Name: "./usr/bin/gunzip", Typeflag: tar.TypeReg},
		tar.Header{Name: "./usr/bin/uncompress", Typeflag: tar.TypeLink, Linkname: "./usr/bin/gunzip"},
	)
	exclude := []string{"usr/share/doc", "usr/bin/perl*"}
	var out bytes.Buffer
	if err := filterRootFS(&out, bytes.NewReader(in), exclude); err != nil {
		t.Fatal(err)
	}
	var got []string
	tr := tar.NewReader(&out)
	for {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !hdr.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s: time %s", hdr.Name, hdr.ModTime)
		}
		got = append(got, fmt.Sprintf("%c %s %s", hdr.Typeflag, hdr.Name, hdr.Linkname))
	}
	want := []string{"2 bin usr/bin", "5 dev/ ", "0 usr/share/docbook ", "0 usr/bin/gunzip ", "1 usr/bin/uncompress usr/bin/gunzip"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	err := filterRootFS(io.Discard, bytes.NewReader(in), []string{"usr/bin/gunzip"})
	if err == nil || !strings.Contains(err.Error(), "usr/bin/uncompress is a hard link to") {
		t.Errorf("a hard link to what is excluded: %v", err)
	}
	if err := filterRootFS(io.Discard, bytes.NewReader(in[:700]), nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut off: %v", err)
	}
}

func TestDebianValidate(t *testing.T) {
	for want, d := range map[string]Debian{
		"suite must not be empty":       {},
		`"/usr" is not a relative path`: {Suite: "bookworm", Exclude: []string{"/usr"}},
		`"[" is not a relative path`:    {Suite: "bookworm", Exclude: []string{"["}},
	} {
		if err := d.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestDebianWithoutTool: a tool that is not there is reported as such, and what was begun ends.
func TestDebianWithoutTool(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Debian{Suite: "bookworm"}.Run(t.Context(), newJob(t))
	var failed *CommandError
	if !errors.As(err, &failed) {
		t.Errorf("got %v", err)
	}
}

func TestCheckTools(t *testing.T) {
	if err := CheckTools(t.Context(), []Tool{{Command: "go", Package: "golang"}}); err != nil {
		t.Error(err)
	}
	err := CheckTools(t.Context(), []Tool{
		{Command: "no-such-command", Package: "b"}, {Library: "no-such-library", Package: "a"},
		{Command: "no-such-command", Package: "b"}, {Command: "nor-this", Package: "a"},
	})
	want := "building from source needs no-such-command, no-such-library, nor-this, which this machine lacks: apt-get install -y a b"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}
