// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// files are all in d, by their paths in it.
func files(t *testing.T, d clusterdir.Dir) map[string]string {
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
	for _, name := range clusterdir.AuthorityNames() {
		remove[name] = []string{"secrets/" + name + ".crt", "secrets/" + name + ".key"}
		remove[name+".crt"] = []string{"secrets/" + name + ".crt"}
		remove[name+".key"] = []string{"secrets/" + name + ".key"}
	}
	remove["encryption"] = []string{"secrets/encryption.key"}
	made, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	made.CompleteEncryption()
	for what, paths := range remove {
		t.Run(what, func(t *testing.T) {
			d := dir(t)
			for _, name := range append(clusterdir.AuthorityNames(), pki.EncryptionName) {
				pair, _ := made.Get(name)
				if err := d.WriteAuthority(name, pair); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := d.EnsureAuthorities(pki.CARequest{}, true); err != nil {
				t.Fatal(err)
			}
			if err := d.WriteInventory(&clusterdir.Inventory{Cluster: "prod"}); err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				if err := os.RemoveAll(d.Path(path)); err != nil {
					t.Fatal(err)
				}
			}
			before := files(t, d)
			_, err := d.EnsureAuthorities(pki.CARequest{}, true)
			var missing *clusterdir.MissingAuthoritiesError
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
			if d.HasAuthorities() && what != pki.EncryptionName { // which is no pair
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
		_, err := d.EnsureAuthorities(pki.CARequest{}, false)
		var missing *clusterdir.MissingAuthoritiesError
		if errors.As(err, &missing) != known || (err == nil) == known {
			t.Errorf("%s: got %v", file, err)
		}
	}
}

// TestEncryptionKeyIsMissed: of a cluster that encrypts, by what is declared or by what is remembered. One that does not has no key.
func TestEncryptionKeyIsMissed(t *testing.T) {
	for name, tc := range map[string]struct {
		declared, remembered, missed bool
	}{
		"neither": {}, "declared": {declared: true, missed: true}, "remembered": {remembered: true, missed: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := dir(t)
			made, err := d.EnsureAuthorities(pki.CARequest{Key: pki.ECDSAP256}, false)
			if err != nil || !made.Encryption.IsZero() {
				t.Fatalf("a key was made, or %v", err)
			}
			known := &clusterdir.Inventory{Cluster: "prod"}
			if tc.remembered {
				known.Encryption.Provider = spec.EncryptionSecretbox
			}
			if err := d.WriteInventory(known); err != nil {
				t.Fatal(err)
			}
			before := files(t, d)
			_, ensured := d.EnsureAuthorities(pki.CARequest{}, tc.declared)
			for what, err := range map[string]error{"ensured": ensured, "checked": d.CheckAuthorities(tc.declared)} {
				var missing *clusterdir.MissingAuthoritiesError
				if errors.As(err, &missing) != tc.missed || tc.missed && !slices.Equal(missing.Files, []string{"secrets/encryption.key"}) {
					t.Errorf("%s: got %v", what, err)
				}
			}
			if after := files(t, d); len(after) != len(before) {
				t.Errorf("there were %d files and are %d", len(before), len(after))
			}
		})
	}
	d := dir(t)
	made, err := d.EnsureAuthorities(pki.CARequest{Key: pki.ECDSAP256}, true)
	if err != nil || made.Encryption.IsZero() {
		t.Fatalf("no key was made: %v", err)
	}
	if info, err := os.Stat(d.Path("secrets", "encryption.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
	if err := d.Write([]byte("garbage"), "secrets", "encryption.key"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Authorities(true); err == nil || strings.Contains(err.Error(), "garbage") {
		t.Errorf("a damaged key: %v", err)
	}
}
