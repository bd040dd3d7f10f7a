// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// gather writes all of a state.
func gather(t *testing.T, d clusterdir.Dir) {
	t.Helper()
	made, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.WriteAuthorities(made), d.WriteInventory(&clusterdir.Inventory{Cluster: "prod"})); err != nil {
		t.Fatal(err)
	}
}

// TestRecovery: a state that is gathered is none before it is moved, whenever the process is killed; what such a process leaves is no
// part of the next one's; keys of hosts that were accepted before stay.
func TestRecovery(t *testing.T) {
	d := dir(t)
	if err := d.Write([]byte("node1 ssh-ed25519 AAAA\n"), "known_hosts"); err != nil {
		t.Fatal(err)
	}
	killed := d.Recovering()
	gather(t, killed)
	for file, content := range map[string]string{"kubeconfig": "left", "known_hosts": "node2 ssh-ed25519 BBBB\n"} {
		if err := killed.Write([]byte(content), file); err != nil {
			t.Fatal(err)
		}
	}
	if known, err := d.Known(); err != nil || known {
		t.Errorf("the cluster is known before its state is whole (%v)", err)
	}
	root := filepath.Dir(d.Path())
	if found, err := clusterdir.List(root); err != nil || len(found) > 0 {
		t.Errorf("clusters %v (%v)", found, err)
	}

	next, err := d.BeginRecovery()
	if err != nil {
		t.Fatal(err)
	}
	defer next.End()
	var locked *clusterdir.LockedError
	if _, err := d.BeginRecovery(); !errors.As(err, &locked) {
		t.Errorf("a second one begins beside the first: %v", err)
	}
	if left := files(t, next.Dir); len(left) != 2 || left["known_hosts"] != "node2 ssh-ed25519 BBBB\nnode1 ssh-ed25519 AAAA\n" {
		t.Fatalf("there is %v", left)
	}
	gather(t, next.Dir)
	gathered := files(t, next.Dir)
	if err := next.Move(); err != nil {
		t.Fatal(err)
	}
	moved := files(t, d)
	for name, content := range gathered {
		if moved[name] != content {
			t.Errorf("%s is %q", name, moved[name])
		}
	}
	if len(moved) != len(gathered) || !d.HasAuthorities() {
		t.Errorf("there are %d files, not %d", len(moved), len(gathered))
	}
	if info, err := os.Stat(d.Path()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(root, ".recovering")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is left where the state was gathered: %v", err)
	}
}

// TestRecoveryOfAKnownCluster: what there is of a state is never overwritten, and what completes it is said.
func TestRecoveryOfAKnownCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		lose []string
		want string
	}{
		"all is there":      {nil, "nothing is missing"},
		"no inventory":      {[]string{"inventory.json"}, "what is missing (inventory.json) is written by: kubexm create cluster"},
		"half of a pair":    {[]string{"secrets/ca.key"}, "kubexm certs recover prod"},
		"the plane alone":   {[]string{"inventory.json", "secrets"}, "kubexm certs recover prod"},
		"no plane, no keys": {[]string{"plane", "secrets"}, "kubexm certs recover prod"},
	} {
		t.Run(name, func(t *testing.T) {
			d := dir(t)
			r, err := d.BeginRecovery()
			if err != nil {
				t.Fatal(err)
			}
			gather(t, r.Dir)
			gather(t, d) // meanwhile
			if err := d.Write([]byte("x"), "plane", "kubeconfig"); err != nil {
				t.Fatal(err)
			}
			for _, path := range tc.lose {
				if err := os.RemoveAll(d.Path(path)); err != nil {
					t.Fatal(err)
				}
			}
			before := files(t, d)
			var known *clusterdir.KnownError
			if err := d.CheckUnknown(); !errors.As(err, &known) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err := r.Move(); !errors.As(err, &known) {
				t.Errorf("moved over what is there: %v", err)
			}
			r.End()
			after := files(t, d)
			delete(after, "lock")
			if len(after) != len(before) {
				t.Errorf("there were %d files, and are %d", len(before), len(after))
			}
			for file, content := range before {
				if after[file] != content {
					t.Errorf("%s was changed", file)
				}
			}
			if r.Exists() {
				t.Error("what was gathered is left, with its keys")
			}
		})
	}
}

// TestBackupsStay: backups of etcd outlive the cluster, are no state of it, and are there again beside a state that is read back.
func TestBackupsStay(t *testing.T) {
	d := dir(t)
	gather(t, d)
	if err := d.Write([]byte("snapshot"), "etcd-backups", "a.db"); err != nil {
		t.Fatal(err)
	}
	if kept, err := d.Remove(); err != nil || !kept {
		t.Fatalf("kept: %v, %v", kept, err)
	}
	wantBackup := func(of clusterdir.Dir) {
		t.Helper()
		if content, err := os.ReadFile(filepath.Join(of.Backups(), "a.db")); err != nil || string(content) != "snapshot" {
			t.Fatalf("%q, %v", content, err)
		}
	}
	wantBackup(d)
	if left := files(t, d); len(left) != 1 {
		t.Errorf("there are %v", left)
	}
	if known, err := d.Known(); known || err != nil {
		t.Errorf("known: %v, %v", known, err)
	}
	for range 2 { // one that is cut, and one that is not
		r, err := d.BeginRecovery()
		if err != nil {
			t.Fatal(err)
		}
		gather(t, r.Dir)
		r.End()
		wantBackup(d)
	}
	r, err := d.BeginRecovery()
	if err != nil {
		t.Fatal(err)
	}
	gather(t, r.Dir)
	if err := r.Move(); err != nil {
		t.Fatal(err)
	}
	r.End()
	wantBackup(d)
	if known, err := d.Known(); !known || err != nil {
		t.Errorf("known: %v, %v", known, err)
	}
	if err := os.RemoveAll(filepath.Join(d.Backups(), "a.db")); err != nil {
		t.Fatal(err)
	}
	if kept, err := d.Remove(); kept || err != nil || d.Exists() {
		t.Errorf("kept: %v, %v", kept, err)
	}
}
