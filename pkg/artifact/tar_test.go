// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

type tarEntry struct {
	hdr  tar.Header
	data string
}

func regular(name, data string) tarEntry {
	return tarEntry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}, data}
}

func tarOf(t testing.TB, entries ...tarEntry) []byte {
	t.Helper()
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	for _, e := range entries {
		e.hdr.Size = int64(len(e.data))
		if err := tw.WriteHeader(&e.hdr); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(e.data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// smallBundle is a bundle with one program, as entries of its archive.
func smallBundle(t testing.TB) []tarEntry {
	t.Helper()
	tool := Item{
		Kind: KindBinary, Component: "tool", Version: "v1", Arch: "amd64", Name: "tool",
		Path: "tool/v1/amd64/tool", Blob: oci.BlobOf([]byte("tool")), Source: "test",
	}
	m := Manifest{FormatVersion: FormatVersion, KubernetesVersion: "v1", Items: []Item{tool}}
	data, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	index, err := oci.Index(nil)
	if err != nil {
		t.Fatal(err)
	}
	return []tarEntry{
		regular(ManifestName, string(data)), regular(indexRel, string(index)), regular(layoutRel, oci.Layout), regular(tool.Path, "tool"),
	}
}

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	entries := smallBundle(t)
	withDirectory := append([]tarEntry{{hdr: tar.Header{Typeflag: tar.TypeDir, Name: "tool/", Mode: 0o700}}}, entries...)
	if err := unpackArchive(t.Context(), bytes.NewReader(tarOf(t, withDirectory...)), dir, nil); err != nil {
		t.Fatal(err)
	}
	b, err := openDir(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestUnpackRefuses(t *testing.T) {
	small := smallBundle(t)
	with := func(at int, e ...tarEntry) []byte {
		all := append([]tarEntry{}, small[:at]...)
		all = append(all, e...)
		return tarOf(t, append(all, small[at:]...)...)
	}
	whole := tarOf(t, small...)
	link := func(kind byte, name, to string) tarEntry {
		return tarEntry{hdr: tar.Header{Typeflag: kind, Name: name, Linkname: to, Mode: 0o777}}
	}
	for name, tc := range map[string]struct {
		archive []byte
		want    string
	}{
		"nothing":                 {nil, "not a bundle"},
		"not a tar":               {bytes.Repeat([]byte("hello "), 1000), "not a bundle"},
		"broken gzip":             {[]byte{0x1f, 0x8b, 0, 0, 0}, "gzip"},
		"broken zstd":             {append([]byte{0x28, 0xb5, 0x2f, 0xfd}, "junk"...), "not a bundle"},
		"manifest not first":      {tarOf(t, small[1], small[0]), `its first file is "images/index.json"`},
		"path out of it":          {with(1, regular("../evil", "x")), `"../evil" is not in its manifest`},
		"absolute path":           {with(1, regular("/tmp/evil", "x")), `"/tmp/evil" is not in its manifest`},
		"file of nobody":          {with(4, regular("tool/evil", "x")), `"tool/evil" is not in its manifest`},
		"symbolic link for a dir": {with(1, link(tar.TypeSymlink, "tool", "/tmp")), `"tool" is not a regular file`},
		"symbolic link at end":    {with(4, link(tar.TypeSymlink, "x", "/etc/passwd")), `"x" is not a regular file`},
		"hard link":               {with(1, link(tar.TypeLink, "tool/v1/amd64/tool", "/etc/passwd")), "is not a regular file"},
		"device":                  {with(1, tarEntry{hdr: tar.Header{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}}), `"null" is not a regular file`},
		"twice":                   {with(4, small[3]), "is there twice"},
		"another manifest":        {with(2, regular(ManifestName, "{}")), `"manifest.json" is not in its manifest`},
		"wrong content":           {tarOf(t, small[0], small[1], small[2], regular("tool/v1/amd64/tool", "TOOL")), "tool/v1/amd64/tool is corrupt"},
		"too long":                {tarOf(t, small[0], small[1], small[2], regular("tool/v1/amd64/tool", "tool and more")), "tool/v1/amd64/tool is corrupt"},
		"too short":               {tarOf(t, small[0], small[1], small[2], regular("tool/v1/amd64/tool", "to")), "tool/v1/amd64/tool is corrupt"},
		"incomplete":              {tarOf(t, small[:3]...), "1 files that its manifest lists are missing, tool/v1/amd64/tool first"},
		"cut off":                 {whole[:len(whole)-1534], "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			s, err := OpenStore(filepath.Join(parent, "store"))
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(parent, "bundle.tar")
			if err := os.WriteFile(path, tc.archive, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(t.Context(), path, s); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			// Nothing is left, in the store or beside it.
			empty(t, filepath.Join(s.root, "bundles"))
			empty(t, filepath.Join(s.root, "work"))
			if entries, err := os.ReadDir(parent); err != nil || len(entries) != 2 {
				t.Errorf("%v, %v", entries, err)
			}
		})
	}
}

// TestUnpackedAnew: what lies unpacked in the store and cannot be read is unpacked again, be a signature asked for or not.
func TestUnpackedAnew(t *testing.T) {
	ours, line := keyOfSeed(t, 1)
	opts := newPublisher(t).options(t, "bundle.tar")
	opts.Signer = ours
	mustCreate(t, opts)
	for name, damage := range map[string]func(dir string) error{
		"empty manifest":     func(dir string) error { return os.Truncate(filepath.Join(dir, ManifestName), 0) },
		"manifest cut short": func(dir string) error { return os.Truncate(filepath.Join(dir, ManifestName), 100) },
		"no manifest":        func(dir string) error { return os.Remove(filepath.Join(dir, ManifestName)) },
	} {
		for _, signers := range []*Signers{nil, signersOf(t, line)} {
			o := OpenOptions{Store: openStore(t), Signers: signers}
			b, err := OpenWith(t.Context(), opts.Out, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(b.Dir()); err != nil {
				t.Fatal(err)
			}
			again, err := OpenWith(t.Context(), opts.Out, o)
			if err != nil {
				t.Errorf("%s, signers %v: %v", name, signers != nil, err)
				continue
			}
			if err := again.Verify(t.Context()); err != nil || again.Dir() != b.Dir() {
				t.Errorf("%s, signers %v: it is in %s, %v", name, signers != nil, again.Dir(), err)
			}
			empty(t, filepath.Join(o.Store.root, "work"))
		}
	}
}

// FuzzUnpack: whatever an archive holds, all that comes out of it lies where it shall, and what is accepted verifies.
func FuzzUnpack(f *testing.F) {
	small := smallBundle(f)
	f.Add(tarOf(f, small...))
	f.Add(tarOf(f, small[0], regular("../evil", "x")))
	f.Add(tarOf(f, small[0], tarEntry{hdr: tar.Header{Typeflag: tar.TypeSymlink, Name: "tool", Linkname: "/tmp"}}))
	f.Add([]byte{0x1f, 0x8b})
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd})
	f.Fuzz(func(t *testing.T, archive []byte) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "bundle")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		err := unpackArchive(t.Context(), bytes.NewReader(archive), dir, nil)
		if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
			t.Fatalf("beside the bundle: %v, %v", entries, err)
		}
		if walkErr := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !d.Type().IsRegular() {
				t.Errorf("%s is %s", path, d.Type())
			}
			return err
		}); walkErr != nil {
			t.Fatal(walkErr)
		}
		if err != nil {
			return
		}
		b, err := openDir(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
