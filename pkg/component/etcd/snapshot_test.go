// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package etcd_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// save runs a command that saves a snapshot, by this member's files, in its own directory.
func (p *process) save(c step.Command, also ...string) (string, bool) {
	p.t.Helper()
	return p.run(c.Argv, append([]string{
		"dir=" + p.path("snapshots"), "ca=" + p.path("ssl/ca.pem"),
		"cert=" + p.path("ssl/admin-"+p.settings.Name+".pem"), "key=" + p.path("ssl/admin-"+p.settings.Name+"-key.pem"),
	}, also...)...)
}

// snapshots are the names of those that are there, the oldest first.
func (p *process) snapshots() []string {
	p.t.Helper()
	found, err := filepath.Glob(p.path("snapshots/*"))
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

// TestSnapshot saves what etcd has, so that another etcd begins with it.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	all := processes(t, 2, spec.Etcd{})
	first, second := all[0], all[1]
	first.must(first.member(), "no voting member answers here")
	second.must(second.member(), "no voting member answers here")
	first.ctl("put", "before", "the upgrade")
	save := first.settings.Access().Save()

	for _, old := range []string{"20250101T000000Z.db", "20250102T000000Z.db", "20250103T000000Z.db"} {
		first.put("snapshots/"+old, []byte("old"))
	}
	first.put("snapshots/.new.part", []byte("cut"))
	if said, ok := first.save(save); !ok {
		t.Fatal(said)
	}
	kept := first.snapshots()
	if len(kept) != 3 || !strings.HasSuffix(kept[0], "20250102T000000Z.db") {
		t.Errorf("three snapshots are kept, and nothing else: %q", kept)
	}
	newest := kept[len(kept)-1]
	for path, want := range map[string]os.FileMode{first.path("snapshots"): 0o700, newest: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}

	// What etcdutl restores verifies the sum as well.
	restored := filepath.Join(t.TempDir(), "data")
	restore := exec.CommandContext(t.Context(), filepath.Join(first.programs, "etcdutl"), "snapshot", "restore", newest, "--data-dir", restored)
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	db, err := os.ReadFile(filepath.Join(restored, "member", "snap", "db"))
	if err != nil || !strings.Contains(string(db), "the upgrade") {
		t.Errorf("what was written before the snapshot is not in it (%v)", err)
	}

	t.Log("another member gives it where this one does not answer")
	first.stop()
	if said, ok := first.save(save); !ok {
		t.Error(said)
	}
	second.stop()
	before := first.snapshots()
	said, ok := first.save(save)
	if ok || !strings.Contains(said, "without one nothing is replaced") || !strings.Contains(said, second.address) {
		t.Errorf("without an etcd: %t, %s", ok, said)
	}
	if now := first.snapshots(); len(now) != len(before) {
		t.Errorf("of what failed something is left: %q", now)
	}
	if said, ok := first.save(save, "cert="+first.path("ssl/none.pem")); !ok {
		t.Errorf("a host without a certificate was never finished, and has nothing to save: %s", said)
	}
}

// TestSnapshotAsked is one that somebody counts on: a host that cannot give it says so.
func TestSnapshotAsked(t *testing.T) {
	t.Parallel()
	p := processes(t, 1, spec.Etcd{})[0]
	p.must(p.member(), "no voting member answers here")
	parts := p.settings.Access().SaveAsked(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)).(step.Sequence).Parts
	save := parts[len(parts)-1].(step.Command)
	if said, ok := p.save(save, "cert="+p.path("ssl/none.pem")); ok || !strings.Contains(said, "which lacks "+p.path("ssl/none.pem")) {
		t.Errorf("a host without a certificate: %t, %s", ok, said)
	}
	if said, ok := p.save(save); !ok || len(p.snapshots()) != 1 {
		t.Errorf("there are %q: %s", p.snapshots(), said)
	}
}

// TestSnapshotIsRefused by an etcd that others run: the upgrade goes on, and of their own etcd it does not.
func TestSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	p := processes(t, 1, spec.Etcd{})[0]
	p.must(p.member(), "no voting member answers here")
	p.ctl("user", "add", "root", "--no-password")
	p.ctl("user", "grant-role", "root", "root")
	p.ctl("auth", "enable")
	client := component.EtcdClient{
		Endpoints: []string{"https://" + p.address + ":2379"}, CA: "ca.crt", Certificate: "client.crt", Key: "client.key",
	}
	if said, ok := p.save(etcd.ClientAccess(client, true).Save()); !ok || !strings.Contains(said, "does not let us have a snapshot") {
		t.Errorf("an etcd that others run: %t, %s", ok, said)
	}
	if said, ok := p.save(etcd.ClientAccess(client, false).Save()); ok {
		t.Errorf("our own etcd: %s", said)
	}
	if found := p.snapshots(); len(found) != 0 {
		t.Errorf("there are %q", found)
	}
}

// TestSnapshotBefore another etcd is installed, and not before the first or the same.
func TestSnapshotBefore(t *testing.T) {
	t.Parallel()
	p := processes(t, 1, spec.Etcd{})[0]
	p.must(p.member(), "no voting member answers here")
	here := func(digest string) step.Step {
		return etcd.Snapshot(p.settings, []step.Artifact{{Path: "etcd/etcd", Digest: digest}})
	}
	content, err := os.ReadFile(filepath.Join(p.programs, "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	same := "sha256:" + hex.EncodeToString(sum[:])
	also := []string{
		"dir=" + p.path("snapshots"), "ca=" + p.path("ssl/ca.pem"), "cert=" + p.path("ssl/admin-n1.pem"), "key=" + p.path("ssl/admin-n1-key.pem"),
	}
	p.must(here(same), "", also...)
	p.must(here("sha256:"+strings.Repeat("0", 64)), "to be replaced", also...)
	p.must(here("sha256:"+strings.Repeat("0", 64)), "", also...)
	p.must(here("sha256:"+strings.Repeat("1", 64)), "", append(also, "program="+p.path("none"))...)
	if found := p.snapshots(); len(found) != 1 {
		t.Errorf("there are %q", found)
	}
}
