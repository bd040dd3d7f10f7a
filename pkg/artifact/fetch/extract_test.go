// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExtract(t *testing.T) {
	var plain bytes.Buffer
	tw := tar.NewWriter(&plain)
	for _, hdr := range []tar.Header{
		{Name: "./bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "../evil", Typeflag: tar.TypeReg, Mode: 0o644, Size: 4},
		{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		{Name: "./bin/tool", Typeflag: tar.TypeReg, Mode: 0o700, Size: 4},
		{Name: "bin/other", Typeflag: tar.TypeReg, Mode: 0o700, Size: 4},
	} {
		if err := tw.WriteHeader(&hdr); err != nil {
			t.Fatal(err)
		}
		if hdr.Size > 0 {
			if _, err := tw.Write([]byte("tool")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	zw := gzip.NewWriter(&zipped)
	if _, err := zw.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}

	for name, tc := range map[string]struct {
		archive []byte
		members map[string]string
		want    string
	}{
		"tar":        {plain.Bytes(), map[string]string{"bin/tool": "renamed"}, ""},
		"gzip":       {zipped.Bytes(), map[string]string{"bin/tool": "renamed"}, ""},
		"missing":    {plain.Bytes(), map[string]string{"bin/tool": "renamed", "bin/none": "none"}, "it has no bin/none"},
		"a link":     {plain.Bytes(), map[string]string{"link": "renamed"}, "it has no link"},
		"not a tar":  {bytes.Repeat([]byte("x"), 1024), map[string]string{"bin/tool": "renamed"}, "invalid tar header"},
		"empty":      {nil, map[string]string{"bin/tool": "renamed"}, "EOF"},
		"broken":     {zipped.Bytes()[:zipped.Len()/2], map[string]string{"bin/other": "renamed"}, "unexpected EOF"},
		"broken tar": {plain.Bytes()[:700], map[string]string{"bin/other": "renamed"}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			archive, dir := filepath.Join(parent, "archive"), filepath.Join(parent, "out")
			if err := os.WriteFile(archive, tc.archive, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			err := Extract(archive, dir, tc.members)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			holds(t, filepath.Join(dir, "renamed"), []byte("tool"))
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("%v, %v", entries, err)
			}
		})
	}
}
