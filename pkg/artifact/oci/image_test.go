// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/klauspost/compress/zstd"
)

func TestWriteLayer(t *testing.T) {
	source := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(source, []byte("tool"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteLayer(&out, []string{"/var/tmp", "/tmp"}, []Entry{
		{Path: "/usr/local/bin/b", Source: source, Mode: 0o755},
		{Path: "/usr/local/bin/a", Source: source, Mode: 0o755},
		{Path: "/top", Source: source, Mode: 0o644},
		{Path: "/usr/local/bin/c", Link: "a"},
	}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for tr := tar.NewReader(&out); ; {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tr)
		if err != nil || !hdr.ModTime.Equal(epoch) || hdr.Uid != 0 || hdr.Gid != 0 {
			t.Errorf("%+v, %v", hdr, err)
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%04o %s %s%s", hdr.Mode, hdr.Name, content, hdr.Linkname)))
	}
	want := []string{
		"1777 tmp/", "0755 var/", "1777 var/tmp/", "0644 top tool",
		"0755 usr/", "0755 usr/local/", "0755 usr/local/bin/", "0755 usr/local/bin/a tool", "0755 usr/local/bin/b tool",
		"0777 usr/local/bin/c a",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := WriteLayer(io.Discard, nil, []Entry{{Path: "/x", Source: source + "x"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestCompress: however the tar is written, the bytes are the same and come back.
func TestCompress(t *testing.T) {
	content := bytes.Repeat([]byte("some content that is long enough for several blocks "), 1<<16)
	want, _, err := v1.SHA256(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for _, chunk := range []int{len(content), 4096, 777} {
		var out bytes.Buffer
		diffID, err := Compress(&out, func(w io.Writer) error {
			for rest := content; len(rest) > 0; rest = rest[min(chunk, len(rest)):] {
				if _, err := w.Write(rest[:min(chunk, len(rest))]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || diffID != want.Hex {
			t.Fatalf("%s, %v", diffID, err)
		}
		if first == nil {
			first = out.Bytes()
		}
		if !bytes.Equal(out.Bytes(), first) {
			t.Errorf("in writes of %d bytes it comes out different", chunk)
		}
	}
	zr, err := zstd.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	defer zr.Close()
	if got, err := io.ReadAll(zr); err != nil || !bytes.Equal(got, content) {
		t.Errorf("it does not come back: %v", err)
	}
	broken := errors.New("broken")
	if _, err := Compress(io.Discard, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestMake(t *testing.T) {
	sum := func(digit string) string { return strings.Repeat(digit, 64) }
	spec := Spec{
		Arch: "arm64",
		Layers: []Layer{
			{Blob: Blob{SHA256: sum("a"), Size: 1}, DiffID: sum("b")}, {Blob: Blob{SHA256: sum("c"), Size: 2}, DiffID: sum("d")},
		},
		Entrypoint: []string{"/tool"},
		Command:    []string{"run"},
	}
	image, err := spec.Make()
	if err != nil {
		t.Fatal(err)
	}
	wantConfig := `{"architecture":"arm64","created":"1970-01-01T00:00:00Z","os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:` + sum("b") + `","sha256:` + sum("d") + `"]},` +
		`"config":{"Cmd":["run"],"Entrypoint":["/tool"],"Env":["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],"WorkingDir":"/"}}`
	if diff := cmp.Diff(wantConfig, string(image.Config)); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	blobs, err := Blobs(image.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	config, size, err := v1.SHA256(bytes.NewReader(image.Config))
	if err != nil {
		t.Fatal(err)
	}
	want := []Blob{{SHA256: config.Hex, Size: size}, {SHA256: sum("a"), Size: 1}, {SHA256: sum("c"), Size: 2}}
	if diff := cmp.Diff(want, blobs); diff != "" {
		t.Errorf("blobs (-want +got):\n%s", diff)
	}
	if _, err := Blobs([]byte("{")); err == nil {
		t.Error("a broken manifest is read")
	}
}

func TestIndex(t *testing.T) {
	a := Tagged{Ref: "example.com/a:v1", Arch: "amd64", Manifest: Blob{SHA256: strings.Repeat("a", 64), Size: 1}}
	b := Tagged{Ref: "example.com/a:v1", Arch: "arm64", Manifest: Blob{SHA256: strings.Repeat("b", 64), Size: 2}}
	one, err := Index([]Tagged{a, b})
	if err != nil {
		t.Fatal(err)
	}
	other, err := Index([]Tagged{b, a})
	if err != nil || !bytes.Equal(one, other) {
		t.Errorf("the order of images shows: %v", err)
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(one))
	if err != nil || len(index.Manifests) != 2 || index.Manifests[1].Platform.Architecture != "arm64" {
		t.Errorf("%s, %v", one, err)
	}
	if none, err := Index(nil); err != nil || !strings.Contains(string(none), `"manifests":[]`) {
		t.Errorf("%s, %v", none, err)
	}
}
