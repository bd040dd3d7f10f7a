// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/state"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// files are all in d, by their paths in it.
func files(t *testing.T, d state.Dir) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(d.Path(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, d.Path()+"/")] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAuthoritiesAreNotMadeTwice: whichever file of a pair is missing, and whatever else is left of the cluster, nothing is made, and the
// error names what is missing and what to do.
func TestAuthoritiesAreNotMadeTwice(t *testing.T) {
	remove := map[string][]string{"all": {"secrets"}}
	for _, name := range state.AuthorityNames() {
		remove[name] = []string{"secrets/" + name + ".crt", "secrets/" + name + ".key"}
		remove[name+".crt"] = []string{"secrets/" + name + ".crt"}
		remove[name+".key"] = []string{"secrets/" + name + ".key"}
	}
	made, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	for what, paths := range remove {
		t.Run(what, func(t *testing.T) {
			d := dir(t)
			for _, name := range state.AuthorityNames() {
				pair, _ := made.Get(name)
				if err := d.WriteAuthority(name, pair); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := d.EnsureAuthorities(pki.CARequest{}); err != nil {
				t.Fatal(err)
			}
			if err := d.WriteInventory(&state.Inventory{Cluster: "prod"}); err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				if err := os.RemoveAll(d.Path(path)); err != nil {
					t.Fatal(err)
				}
			}
			before := files(t, d)
			_, err := d.EnsureAuthorities(pki.CARequest{})
			var missing *state.MissingAuthoritiesError
			if !errors.As(err, &missing) {
				t.Fatalf("got %v, want a MissingAuthoritiesError", err)
			}
			for _, path := range paths {
				if path != "secrets" && !slices.Contains(missing.Files, path) {
					t.Errorf("%v must name %s", missing.Files, path)
				}
			}
			for _, want := range []string{"kubexm certs recover prod", "inventory.json", "backup"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q must have %q", err, want)
				}
			}
			if d.HasAuthorities() {
				t.Error("they are not all there")
			}
			if after := files(t, d); len(after) != len(before) {
				t.Errorf("there were %d files and are %d", len(before), len(after))
			}
		})
	}
}

// TestWhatIsKnownOfACluster: anything that is kept of it keeps its authorities from being made; what is there before a command has
// changed anything does not.
func TestWhatIsKnownOfACluster(t *testing.T) {
	for file, known := range map[string]bool{
		"lock": false, "known_hosts": false, "secrets/.tmp-1": false, ".tmp-1/ca.key": false,
		"inventory.json": true, "kubeconfig": true, "plane/pki/ca.crt": true, "secrets/ca.key": true, "plan.json": true,
	} {
		d := dir(t)
		if err := d.Write([]byte("{}"), file); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Known(); err != nil || got != known {
			t.Errorf("%s: known %t (%v), want %t", file, got, err, known)
		}
		_, err := d.EnsureAuthorities(pki.CARequest{})
		var missing *state.MissingAuthoritiesError
		if errors.As(err, &missing) != known || (err == nil) == known {
			t.Errorf("%s: got %v", file, err)
		}
	}
}
