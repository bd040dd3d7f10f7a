// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/build"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/oci"
)

const tinySystem = `
systems:
- {id: debian, version: "12", suite: bookworm, packages: [haproxy]}
`

// packagesOf are a repository with haproxy, what it depends on, and what is asked for beside it.
func packagesOf(t *testing.T, change func(index string) string) map[string]string {
	t.Helper()
	files := map[string]string{build.IndexCompressed: "gz", build.IndexRelease: "Codename: bookworm\n"}
	index := ""
	for _, p := range []struct{ name, version, file, depends string }{
		{"haproxy", "1:2.6-1+b1", "haproxy_2.6-1+b1_amd64.deb", "liblua (>= 5)"},
		{"liblua", "5~rc1", "liblua_5~rc1_all.deb", ""},
		{"nfs-common", "1", "nfs-common_1_amd64.deb", ""},
	} {
		content := "package " + p.name
		b := oci.BlobOf([]byte(content))
		files[p.file] = content
		index += fmt.Sprintf("Package: %s\nVersion: %s\nDepends: %s\nFilename: ./%s\nSize: %d\nSHA256: %s\n\n",
			p.name, p.version, p.depends, p.file, b.Size, b.SHA256)
	}
	files[build.Index] = change(index)
	return files
}

// systemOptions want packages, which the store has already.
func systemOptions(t *testing.T, files map[string]string) CreateOptions {
	t.Helper()
	p := newPublisher(t)
	opts := p.options(t, "bundle")
	var err error
	if opts.Catalogue, err = ParseCatalogue([]byte(strings.ReplaceAll(tinyCatalogue, "SERVER", p.URL) + tinySystem)); err != nil {
		t.Fatal(err)
	}
	opts.Architectures, opts.Systems, opts.Packages = []string{"amd64"}, []string{"debian/12"}, []string{"nfs-common"}
	r, err := opts.Catalogue.systemRecipe("debian/12", "amd64", opts.Packages)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&build.Packages{Suite: "bookworm", Names: []string{"haproxy", "nfs-common"}}, r.Build.Packages); diff != "" {
		t.Errorf("asks for -want +got:\n%s", diff)
	}
	_, err = opts.Store.produce(t.Context(), newOrder(r, opts.Prefer, ""), 0o644, nil, func(_ context.Context, ws workspace) error {
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(ws.out, name), []byte(content), 0o644); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return opts
}

func TestSystemPackages(t *testing.T) {
	b := mustCreate(t, systemOptions(t, packagesOf(t, func(index string) string { return index })))
	if err := b.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	var got []string
	for _, i := range b.Manifest().Items {
		if i.System != "" {
			got = append(got, fmt.Sprintf("%s %s %s %s %s %s", i.Kind, i.Component, i.Name, i.Version, i.Path, i.Source))
		}
	}
	want := []string{
		"index debian Packages 12 os/debian/12/amd64/Packages debian:bookworm",
		"index debian Packages.gz 12 os/debian/12/amd64/Packages.gz debian:bookworm",
		"index debian Release 12 os/debian/12/amd64/Release debian:bookworm",
		"package debian haproxy 1:2.6-1+b1 os/debian/12/amd64/haproxy_2.6-1+b1_amd64.deb debian:bookworm",
		"package debian liblua 5~rc1 os/debian/12/amd64/liblua_5~rc1_all.deb debian:bookworm",
		"package debian nfs-common 1 os/debian/12/amd64/nfs-common_1_amd64.deb debian:bookworm",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("items -want +got:\n%s", diff)
	}
	bill, err := sbomOf(b.Manifest())
	if err != nil || !strings.Contains(string(bill), `pkg:deb/debian/haproxy@1%3A2.6-1%2Bb1?arch=amd64\u0026distro=debian-12`) &&
		!strings.Contains(string(bill), `pkg:deb/debian/haproxy@1%3A2.6-1%2Bb1?arch=amd64&distro=debian-12`) {
		t.Errorf("the bill of materials lacks haproxy (%v):\n%s", err, bill)
	}

	packages, err := b.SystemPackages("debian/12", "amd64")
	if err != nil || len(packages) != 3 {
		t.Fatalf("%v, %v", packages, err)
	}
	if p := packages[0]; p.Name != "haproxy" || p.Depends != "liblua (>= 5)" || read(t, p.File) != "package haproxy" {
		t.Errorf("%+v", p)
	}
	for _, other := range []struct{ system, arch string }{{"debian/13", "amd64"}, {"debian/12", "arm64"}, {"", "amd64"}, {"debian", "12"}} {
		if packages, err := b.SystemPackages(other.system, other.arch); err != nil || len(packages) > 0 {
			t.Errorf("%v: %v, %v", other, packages, err)
		}
	}
	if path, err := b.File("os/debian/12/amd64/Packages"); err != nil {
		t.Errorf("%v, %v", path, err)
	}
}

// An index that somebody else has written does not lead to other files than the manifest's.
func TestSystemIndexContradicts(t *testing.T) {
	for name, change := range map[string]func(string) string{
		"another sum": func(s string) string {
			return strings.ReplaceAll(s, oci.BlobOf([]byte("package liblua")).SHA256, strings.Repeat("0", 64))
		},
		"another file": func(s string) string {
			return s + "Package: evil\nVersion: 1\nFilename: ../evil.deb\nSize: 1\nSHA256: 00\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := mustCreate(t, systemOptions(t, packagesOf(t, change)))
			if packages, err := b.SystemPackages("debian/12", "amd64"); err == nil {
				t.Errorf("read as %v", packages)
			}
		})
	}
}

func TestSystemsThatAreNotThere(t *testing.T) {
	opts := newPublisher(t).options(t, "bundle")
	opts.Packages = []string{"curl"}
	if _, err := Create(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "of no operating system") {
		t.Errorf("packages of no system: %v", err)
	}
	opts.Systems = []string{"plan9/4"}
	var unknown *UnknownNameError
	if _, err := Create(t.Context(), opts); !errors.As(err, &unknown) {
		t.Errorf("an unknown system: %v", err)
	}
	if _, err := ParseCatalogue([]byte("systems: [{id: a/b, version: c, suite: d, packages: [ee]}]")); err == nil {
		t.Error("a system is called a/b")
	}
}

func TestPackageItems(t *testing.T) {
	good := Item{
		Kind: KindPackage, Component: "debian", Version: "1:2.6-1+b1", Arch: "amd64", System: "debian/12", Name: "haproxy",
		Path: "os/debian/12/amd64/haproxy_2.6-1+b1_amd64.deb", Blob: oci.BlobOf(nil), Source: "debian:bookworm",
	}
	if err := good.validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Item){
		"another directory":   func(i *Item) { i.Path = "os/debian/13/amd64/haproxy_2.6-1+b1_amd64.deb" },
		"out of the bundle":   func(i *Item) { i.System = "debian/.." },
		"out by the arch":     func(i *Item) { i.Arch = "../../.." },
		"a file with a mark":  func(i *Item) { i.Path = "os/debian/12/amd64/haproxy_1%3a2.deb" },
		"no package file":     func(i *Item) { i.Path = "os/debian/12/amd64/Packages" },
		"another component":   func(i *Item) { i.Component = "ubuntu" },
		"an option as a name": func(i *Item) { i.Name = "-o" },
		"an image's digest":   func(i *Item) { i.Digest = "sha256:" + i.SHA256 },
		"a program in os": func(i *Item) {
			i.Kind, i.Component, i.System, i.Version, i.Path = KindBinary, "os", "", "v1", "os/v1/amd64/haproxy"
		},
		"an index of other name": func(i *Item) { i.Kind, i.Name, i.Version = KindIndex, "Sources", "12" },
	} {
		i := good
		change(&i)
		if err := i.validate(); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}
