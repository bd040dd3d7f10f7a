// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// TestKeepRecovered: what is missing is written, what is there stays, and what differs is replaced only by name.
func TestKeepRecovered(t *testing.T) {
	found, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	found.CompleteEncryption()
	for name, tc := range map[string]struct {
		change  func(t *testing.T, d clusterdir.Dir)
		replace []string
		written int
		refused string
	}{
		"nothing is there": {func(t *testing.T, d clusterdir.Dir) {
			t.Helper()
			if err := os.RemoveAll(d.Path("secrets")); err != nil {
				t.Fatal(err)
			}
		}, nil, 5, ""},
		"all is there": {func(*testing.T, clusterdir.Dir) {}, nil, 0, ""},
		"a key is missing": {func(t *testing.T, d clusterdir.Dir) {
			t.Helper()
			if err := os.Remove(d.Path("secrets", "sa.key")); err != nil {
				t.Fatal(err)
			}
		}, nil, 1, ""},
		"another's key is there alone": {func(t *testing.T, d clusterdir.Dir) {
			t.Helper()
			another(t, d)
			if err := os.Remove(d.Path("secrets", "etcd.crt")); err != nil {
				t.Fatal(err)
			}
		}, nil, 0, "add --replace etcd"},
		"another's certificate is there alone": {func(t *testing.T, d clusterdir.Dir) {
			t.Helper()
			another(t, d)
			if err := os.Remove(d.Path("secrets", "etcd.key")); err != nil {
				t.Fatal(err)
			}
		}, nil, 0, "add --replace etcd"},
		"the encryption key is missing": {func(t *testing.T, d clusterdir.Dir) {
			t.Helper()
			if err := os.Remove(d.Path("secrets", "encryption.key")); err != nil {
				t.Fatal(err)
			}
		}, nil, 1, ""},
		"another encryption key is there":               {anotherKey, nil, 0, "add --replace encryption"},
		"another encryption key is there, and is named": {anotherKey, []string{"encryption"}, 1, ""},
		"a damaged encryption key is there": {func(t *testing.T, d clusterdir.Dir) {
			t.Helper()
			if err := d.Write([]byte("garbage"), "secrets", "encryption.key"); err != nil {
				t.Fatal(err)
			}
		}, nil, 0, "add --replace encryption"},
		"another is there":                       {another, nil, 0, "add --replace etcd"},
		"another is there, and another is named": {another, []string{"ca"}, 0, "add --replace etcd"},
		"another is there, and is named":         {another, []string{"etcd"}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := clusterdir.Of(t.TempDir(), "prod")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range pki.AllNames() {
				pair, _ := found.Get(name)
				if err := d.WriteAuthority(name, pair); err != nil {
					t.Fatal(err)
				}
			}
			tc.change(t, d)
			before, _, err := d.ReadAuthorities()
			if err != nil {
				t.Fatal(err)
			}
			written, err := keepRecovered(d, found, pki.AllNames(), tc.replace)
			after, missing, readErr := d.ReadAuthorities()
			if readErr != nil {
				t.Fatal(readErr)
			}
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) || !after.Etcd.Key.Equal(before.Etcd.Key) ||
					!after.Encryption.Key.Equal(before.Encryption.Key) {
					t.Errorf("got %v, want %q, and nothing to be written", err, tc.refused)
				}
				return
			}
			if err != nil || len(written) != tc.written || len(missing) > 0 ||
				!after.Etcd.Key.Equal(found.Etcd.Key) || !after.Encryption.Key.Equal(found.Encryption.Key) {
				t.Errorf("wrote %v (%v), and %v are missing", written, err, missing)
			}
			for _, name := range pki.Names() {
				for _, end := range []string{".crt", ".key"} {
					if info, err := os.Stat(d.Path("secrets", name+end)); err != nil || info.Mode().Perm() != 0o600 {
						t.Errorf("%s%s: %v, %v", name, end, info, err)
					}
				}
			}
		})
	}
}

// another puts another pair of etcd's there.
func another(t *testing.T, d clusterdir.Dir) {
	t.Helper()
	other, err := pki.NewCA(pki.CARequest{CommonName: "etcd-ca", Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.WriteAuthority(pki.EtcdName, other); err != nil {
		t.Fatal(err)
	}
}

// anotherKey puts another encryption key there.
func anotherKey(t *testing.T, d clusterdir.Dir) {
	t.Helper()
	if err := d.WriteAuthority(pki.EncryptionName, pki.NewEncryptionKey()); err != nil {
		t.Fatal(err)
	}
}
