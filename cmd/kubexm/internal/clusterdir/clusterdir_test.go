// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdir_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func dir(t *testing.T) clusterdir.Dir {
	t.Helper()
	d, err := clusterdir.Of(t.TempDir(), "prod")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Make(); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestNames(t *testing.T) {
	for _, name := range []string{"", "..", "a/b", "Prod", "-x"} {
		if _, err := clusterdir.Of(t.TempDir(), name); err == nil {
			t.Errorf("%q must be refused: it becomes a directory", name)
		}
	}
}

// TestAuthorities: they are made once, and only their owner may read them.
func TestAuthorities(t *testing.T) {
	d := dir(t)
	if d.HasAuthorities() {
		t.Fatal("there are none yet")
	}
	first, err := d.EnsureAuthorities(pki.CARequest{}, true)
	if err != nil {
		t.Fatal(err)
	}
	if !d.HasAuthorities() {
		t.Error("all were made")
	}
	again, err := d.EnsureAuthorities(pki.CARequest{}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(clusterdir.AuthorityNames(), pki.EncryptionName) {
		a, _ := first.Get(name)
		b, _ := again.Get(name)
		if string(a.Cert) != string(b.Cert) || !a.Key.Equal(b.Key) {
			t.Errorf("%s was made again", name)
		}
		for _, file := range []string{name + ".crt", name + ".key"} {
			if file == "encryption.crt" {
				continue // there is nothing of it to publish
			}
			info, err := os.Stat(d.Path("secrets", file))
			if err != nil {
				t.Fatal(err)
			}
			if mode := info.Mode().Perm(); mode != 0o600 {
				t.Errorf("%s has mode %04o", file, mode)
			}
		}
	}
	if info, err := os.Stat(d.Path()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v (%v)", info.Mode(), err)
	}
}

// TestLock: one command at a time, and the second learns who the first is.
func TestLock(t *testing.T) {
	d := dir(t)
	unlock, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Lock()
	var locked *clusterdir.LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Fatalf("got %v, want a LockedError that names this process", err)
	}
	unlock()
	unlock, err = d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestInventory(t *testing.T) {
	d := dir(t)
	if got, err := d.Inventory(); err != nil || got != nil {
		t.Fatalf("got %v, %v of a cluster that nothing is known of", got, err)
	}
	want := &clusterdir.Inventory{
		Cluster: "prod", KubernetesVersion: "v1.36.3", Server: "https://172.16.0.2:6443", ReadyTime: time.Unix(1, 0).UTC(),
		Hosts: []clusterdir.Host{{Name: "node1", Role: spec.RoleControlPlane, Address: "172.16.0.2", Port: 22, User: "ops", NeedsPassword: true}},
	}
	if err := d.WriteInventory(want); err != nil {
		t.Fatal(err)
	}
	got, err := d.Inventory()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
