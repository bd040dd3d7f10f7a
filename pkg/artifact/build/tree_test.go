// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTreeRun: files of a module are where they are said to be, and programs where they are said to be that.
func TestTreeRun(t *testing.T) {
	moduleProxy(t)
	tree := Tree{
		Module:      Module{Path: "example.com/hello/v2", Version: "v2.0.1"},
		Directories: map[string]string{"charts/hello/templates": "/etc/hello", "c": "/usr/sbin"},
		Executable:  []string{"/usr/sbin/*"},
	}
	if err := tree.Validate(); err != nil {
		t.Error(err)
	}
	job := newJob(t)
	if err := tree.Run(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(job.Out, RootFS))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var got []string
	for tr := tar.NewReader(f); ; {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%04o %s", hdr.Mode, hdr.Name))
	}
	want := []string{"0755 etc/", "0755 etc/hello/", "0644 etc/hello/x.yaml", "0755 usr/", "0755 usr/sbin/", "0755 usr/sbin/hello.c"}
	if !slices.Equal(got, want) {
		t.Errorf("it has %q, want %q", got, want)
	}

	for want, change := range map[string]func(*Tree){
		"no such file or directory": func(t *Tree) { t.Directories = map[string]string{"none": "/etc"} },
		"/bin/* is no file of its":  func(t *Tree) { t.Executable = []string{"/bin/*"} },
		"v2.9.9":                    func(t *Tree) { t.Module.Version = "v2.9.9" },
	} {
		broken := tree
		change(&broken)
		if err := broken.Run(t.Context(), newJob(t), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, invalid := range []Tree{
		{},
		{Module: tree.Module, Directories: map[string]string{"../c": "/etc"}},
		{Module: tree.Module, Directories: map[string]string{"c": "etc"}},
		{Module: tree.Module, Directories: tree.Directories, Executable: []string{"sbin/*"}},
		{Module: tree.Module, Directories: tree.Directories, Executable: []string{"/sbin/["}},
	} {
		if err := invalid.Validate(); err == nil {
			t.Errorf("%+v is valid", invalid)
		}
	}
}
