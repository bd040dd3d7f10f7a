// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate/recovery/recoverytest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
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

// recoveredDisk is a host with the files of a control plane host. It does not answer if it has none.
type recoveredDisk struct {
	host.Host
	name  string
	files recoverytest.Disk
}

func (d *recoveredDisk) Name() string { return d.name }

func (d *recoveredDisk) Close() error { return nil }

func (d *recoveredDisk) Exec(_ context.Context, c host.Command) (*host.Result, error) {
	if d.files == nil {
		return nil, &host.Error{Kind: host.KindNoAnswer, Host: d.name, Message: "it does not answer"}
	}
	said := d.files.Exec(c)
	return &said, nil
}

// TestReadKeyPairs: a host whose pairs do not match what it uses is an error, and one that cannot be compared is passed over, and named.
func TestReadKeyPairs(t *testing.T) {
	ours, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	others, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	disk := func(of pki.Authorities, change func(recoverytest.Disk)) recoverytest.Disk {
		t.Helper()
		d, err := recoverytest.Of(of)
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(d)
		}
		for name, content := range maps.Clone(d) {
			d["/etc/kubernetes/pki/"+name] = content
		}
		return d
	}
	foreign := disk(others, nil)
	foreigns := func(name string) func(recoverytest.Disk) {
		return func(d recoverytest.Disk) { d[name] = foreign[name] }
	}
	without := func(name string) func(recoverytest.Disk) { return func(d recoverytest.Disk) { delete(d, name) } }
	for what, c := range map[string]struct {
		second  recoverytest.Disk
		unread  string
		refused string
	}{
		"the same":              {second: disk(ours, nil)},
		"other pairs":           {second: foreign, refused: "the hosts do not have the same key pairs"},
		"another's certificate": {second: disk(ours, foreigns("apiserver.crt")), refused: "host second: key pair ca"},
		"another's key":         {second: disk(ours, foreigns("etcd/ca.key")), refused: "host second: key pair etcd"},
		"all keys alone":        {second: disk(ours, without("apiserver.crt")), refused: "host second: key pair ca: there is no"},
		"all keys but one":      {second: disk(ours, without("ca.key")), unread: "there is no /etc/kubernetes/pki/ca.key"},
		"nothing":               {second: recoverytest.Disk{}, unread: "host second: key pair ca: there is no"},
		"no answer":             {unread: "host second: it does not answer"},
	} {
		for _, order := range [][]string{{"first", "second"}, {"second", "first"}} {
			r := &recoverySource{names: pki.AllNames(), from: order, dial: func(_ context.Context, name string) (host.Host, error) {
				return &recoveredDisk{name: name, files: map[string]recoverytest.Disk{"first": disk(ours, nil), "second": c.second}[name]}, nil
			}}
			found, read, err := r.read(t.Context())
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), "--host") {
					t.Errorf("%s, %s first: read %v, got %v, want %q", what, order[0], read, err, c.refused)
				}
				continue
			}
			if err != nil || !found.Cluster.Key.Equal(ours.Cluster.Key) {
				t.Errorf("%s, %s first: %v", what, order[0], err)
			}
			if unread := errors.Join(r.unread...); c.unread == "" && (unread != nil || len(read) != 2) ||
				c.unread != "" && (unread == nil || !strings.Contains(unread.Error(), c.unread) || !slices.Equal(read, []string{"first"})) {
				t.Errorf("%s, %s first: read %v, passed over %v, want %q", what, order[0], read, unread, c.unread)
			}
		}
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
