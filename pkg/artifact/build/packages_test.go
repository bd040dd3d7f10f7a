// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPackagesValidate(t *testing.T) {
	for want, p := range map[string]Packages{
		"must not be empty":                      {Suite: "bookworm"},
		"suite and names":                        {Names: []string{"curl"}},
		`"curl; id" is not the name of a Debian`: {Suite: "bookworm", Names: []string{"curl; id"}},
		`"-o" is not the name`:                   {Suite: "bookworm", Names: []string{"-o"}},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// apt names what it downloads with the epoch of the version, which a bundle's paths must not have.
func TestTakePackages(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	if err := takePackages(from, to); err == nil {
		t.Error("nothing was downloaded, and nobody said so")
	}
	for _, name := range []string{"keepalived_1%3a2.2.7-1+b2_amd64.deb", "curl_7.88.1-10+deb12u14_amd64.deb"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := takePackages(from, to); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"keepalived_2.2.7-1+b2_amd64.deb", "curl_7.88.1-10+deb12u14_amd64.deb"} {
		if _, err := os.Stat(filepath.Join(to, name)); err != nil {
			t.Error(err)
		}
	}
}
