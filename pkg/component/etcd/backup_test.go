// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package etcd_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// manifest is what is said of a backup beside it.
type manifest struct {
	Cluster, Authority, KubernetesVersion, EtcdVersion, EtcdClusterID, Host, SHA256 string
	Revision, Size                                                                  int64
}

var backupTime = time.Date(2026, 11, 23, 21, 0, 0, 0, time.UTC)

// backUp saves a backup in the member's own directory, as if it were asked for so many hours after the first.
func (p *process) backUp(hours int, keep int32, also ...string) (name, said string, ok bool) {
	p.t.Helper()
	p.put("owner", []byte(`{"cluster":"prod","authority":"SHA256:abc","role":"ControlPlane","host":"n1"}`+"\n"))
	asked := backupTime.Add(time.Duration(hours) * time.Hour)
	s := etcd.SaveBackup(p.settings, etcd.Backup{Directory: p.path("backups"), Keep: keep, KubernetesVersion: "v1.36.3"}, asked)
	said, ok = p.run(commandOf(s).Argv, append([]string{"owner=" + p.path("owner")}, also...)...)
	return p.path("backups/" + p.settings.BackupName(asked)), said, ok
}

// restore runs the steps of a restore on all members, each step on all of them before the next, as the pipeline has them.
func restore(t *testing.T, all []*process, r etcd.Restore, snapshot string, only ...string) {
	t.Helper()
	for _, act := range restoreActs(r, only...) {
		for _, p := range all {
			if said, ok := p.restoreAct(act(p.settings), snapshot); !ok {
				t.Fatalf("%s: %s: %s", p.settings.Name, act(p.settings).Meta().Name, said)
			}
		}
	}
}

func restoreActs(r etcd.Restore, only ...string) []func(etcd.Settings) step.Step {
	acts := []func(etcd.Settings) step.Step{
		func(s etcd.Settings) step.Step { return etcd.PrepareRestore(s, r, "x") },
		func(s etcd.Settings) step.Step { return etcd.StopForRestore(s, r) },
		func(s etcd.Settings) step.Step { return etcd.RestoreData(s, r, "x") },
		func(s etcd.Settings) step.Step { return etcd.StartRestored(s, r, "x") },
		func(s etcd.Settings) step.Step { return etcd.VerifyRestored(s, r, "x") },
		func(s etcd.Settings) step.Step { return etcd.EndRestore(s, r) },
	}
	if len(only) == 0 {
		return acts
	}
	var some []func(etcd.Settings) step.Step
	for _, act := range acts {
		for _, name := range only {
			if act(etcd.Settings{}).Meta().Name == "etcd/restore-"+name {
				some = append(some, act)
			}
		}
	}
	return some
}

func (p *process) restoreEnv(snapshot string) []string {
	return []string{"restore=" + p.path("restore"), "restoring=" + p.path("restore/under-way"), "snapshot=" + snapshot}
}

func (p *process) restoreAct(s step.Step, snapshot string) (said string, ok bool) {
	p.t.Helper()
	return p.run(commandOf(s).Argv, p.restoreEnv(snapshot)...)
}

func restoreOf(t *testing.T, id, snapshot string) etcd.Restore {
	t.Helper()
	content, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return etcd.Restore{ID: id, Bump: time.Now().UnixMilli(), Snapshot: step.Artifact{
		Path: "snapshot", Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(content)),
	}}
}

// TestBackup saves backups that say what they are, and keeps as many of the cluster as it should.
func TestBackup(t *testing.T) {
	t.Parallel()
	p := processes(t, 1, spec.Etcd{})[0]
	p.must(p.member(), "no voting member answers here")
	p.ctl("put", "color", "blue")

	name, said, ok := p.backUp(0, 2)
	if !ok {
		t.Fatal(said)
	}
	text, err := os.ReadFile(name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	db, err := os.ReadFile(name + ".db")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(db)
	id := p.record()[1]
	if m.Cluster != "prod" || m.Authority != "SHA256:abc" || m.KubernetesVersion != "v1.36.3" || m.Host != "n1" || m.EtcdClusterID != id ||
		m.Size != int64(len(db)) || m.SHA256 != hex.EncodeToString(sum[:]) || m.Revision < 2 || !strings.HasPrefix(m.EtcdVersion, "3.") {
		t.Errorf("the manifest says %s; the cluster is %s", text, id)
	}
	for path, want := range map[string]os.FileMode{p.path("backups"): 0o700, name + ".db": 0o600, name + ".json": 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}

	t.Log("others' backups, and what is not whole, are neither counted nor removed")
	for file, content := range map[string]string{
		"etcd-prod-20200101T000000Z-n1.db":     "not whole",
		"etcd-other-20200101T000000Z-n1.json":  strings.Replace(string(text), `"prod"`, `"other"`, 1),
		"etcd-other-20200101T000000Z-n1.db":    string(db),
		"etcd-prod-20200102T000000Z-n1.json":   strings.Replace(string(text), "SHA256:abc", "SHA256:def", 1),
		"etcd-prod-20200102T000000Z-n1.db":     string(db),
		"etcd-prod-20200103T000000Z-n1.json":   string(text),
		"etcd-prod-20200103T000000Z-n1.db":     "cut short",
		".etcd-prod-20200104T000000Z-n1.new":   "of a run that was cut",
		".etcd-prod-20200104T000000Z-n2.new":   "of another host that is at it",
		"etcd-prod-of-somebody-else-a-file.db": "",
	} {
		p.put("backups/"+file, []byte(content))
	}
	for hours := 1; hours <= 3; hours++ {
		if _, said, ok := p.backUp(hours, 2); !ok {
			t.Fatal(said)
		}
	}
	var there []string
	for _, path := range append(glob(t, p.path("backups/etcd-*")), glob(t, p.path("backups/.etcd-*"))...) {
		there = append(there, filepath.Base(path))
	}
	want := []string{
		"etcd-other-20200101T000000Z-n1.db", "etcd-other-20200101T000000Z-n1.json", "etcd-prod-20200101T000000Z-n1.db",
		"etcd-prod-20200102T000000Z-n1.db", "etcd-prod-20200102T000000Z-n1.json", "etcd-prod-20200103T000000Z-n1.db",
		"etcd-prod-20200103T000000Z-n1.json", "etcd-prod-20261123T230000Z-n1.db", "etcd-prod-20261123T230000Z-n1.json",
		"etcd-prod-20261124T000000Z-n1.db", "etcd-prod-20261124T000000Z-n1.json", "etcd-prod-of-somebody-else-a-file.db",
		".etcd-prod-20200104T000000Z-n2.new",
	}
	if fmt.Sprint(there) != fmt.Sprint(want) {
		t.Errorf("there are\n%v, want\n%v", there, want)
	}

	t.Log("what was just saved stays, although a clock was ahead when others were saved")
	late, said, ok := p.backUp(-1, 2)
	if !ok {
		t.Fatal(said)
	}
	for path, stays := range map[string]bool{
		late: true, p.path("backups/etcd-prod-20261124T000000Z-n1"): true, p.path("backups/etcd-prod-20261123T230000Z-n1"): false,
	} {
		for _, end := range []string{".db", ".json"} {
			if _, err := os.Stat(path + end); (err == nil) != stays {
				t.Errorf("%s%s: %v, and it should stay: %t", path, end, err, stays)
			}
		}
	}
	if _, said, ok := p.backUp(-2, 1); !ok {
		t.Fatal(said)
	}
	if left := glob(t, p.path("backups/etcd-prod-2026*.json")); len(left) != 1 || !strings.Contains(left[0], "20261123T190000Z") {
		t.Errorf("one is to be kept, the one that was just saved, and there are %v", left)
	}

	t.Log("without an etcd that answers, or without an owner, nothing is saved")
	if _, said, ok := p.backUp(9, 2, "owner="+p.path("none")); ok || !strings.Contains(said, "does not say whose") {
		t.Errorf("without an owner: %t, %s", ok, said)
	}
	p.stop()
	if _, said, ok := p.backUp(9, 2); ok || !strings.Contains(said, "does not answer with quorum") {
		t.Errorf("without an etcd: %t, %s", ok, said)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestRestore of three members: what was there at the backup is there, what came later is not, under later revisions than any that
// were given, and in another cluster.
func TestRestore(t *testing.T) {
	t.Parallel()
	all := processes(t, 3, spec.Etcd{})
	for _, p := range all {
		p.must(p.member(), "no voting member answers here")
	}
	first := all[0]
	first.ctl("put", "color", "blue")
	name, said, ok := first.backUp(0, 0)
	if !ok {
		t.Fatal(said)
	}
	snapshot := name + ".db"
	first.ctl("put", "color", "green")
	first.ctl("put", "later", "yes")
	was := first.record()

	r := restoreOf(t, "aaaaaaaa", snapshot)
	restore(t, all, r, snapshot, "prepare", "stop", "data")
	t.Log("nothing makes the host a member meanwhile")
	if _, failure := first.converge(first.member(), first.restoreEnv(snapshot)...); !strings.Contains(failure, "is being restored") {
		t.Errorf("a member is made of a host that is being restored: %q", failure)
	}
	restore(t, all, r, snapshot, "start", "verify", "end")
	for _, p := range all {
		p.wantThree()
		if got := p.ctl("get", "color", "--print-value-only"); got != "blue" {
			t.Errorf("%s: color is %q", p.settings.Name, got)
		}
		if got := p.ctl("get", "later"); got != "" {
			t.Errorf("%s: what came after the backup is there: %q", p.settings.Name, got)
		}
		// It is as it should be, and what was before is set aside.
		p.must(p.member(), "")
		if _, err := os.Stat(filepath.Join(p.settings.Spec.DataDir, "replaced.aaaaaaaa", "member", "snap", "db")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(p.path("restore")); !os.IsNotExist(err) {
			t.Errorf("of the restore something is left: %v", err)
		}
	}
	if now := first.record(); now[1] == was[1] || now[2] == was[2] {
		t.Errorf("the restored cluster has IDs of the one before: %v, %v", was, now)
	}
	// Who watches from what was known before learns that it is gone, and lists anew.
	if out, err := first.tryCtl("get", "color", "--rev=3"); err == nil || !strings.Contains(out, "compacted") {
		t.Errorf("a revision from before the restore is answered: %s", out)
	}
	first.ctl("put", "color", "red")

	t.Log("restored once more, of the same snapshot")
	again := restoreOf(t, "bbbbbbbb", snapshot)
	restore(t, all, again, snapshot)
	if got := all[2].ctl("get", "color", "--print-value-only"); got != "blue" || again.Bump <= r.Bump {
		t.Errorf("color is %q", got)
	}
}

// TestRestoreIsCut at any time, and done again: by the same restore, or by another one.
func TestRestoreIsCut(t *testing.T) {
	t.Parallel()
	p := processes(t, 1, spec.Etcd{})[0]
	p.must(p.member(), "no voting member answers here")
	p.ctl("put", "color", "blue")
	name, said, ok := p.backUp(0, 0)
	if !ok {
		t.Fatal(said)
	}
	snapshot := name + ".db"
	p.ctl("put", "color", "green")
	r := restoreOf(t, "aaaaaaaa", snapshot)
	for _, act := range restoreActs(r) {
		s := act(p.settings)
		for after := 5 * time.Millisecond; ; after = after * 3 / 2 {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			out, err := p.command(ctx, commandOf(s).Argv, p.restoreEnv(snapshot)...).CombinedOutput()
			cut := ctx.Err() != nil
			cancel()
			if err == nil {
				break
			}
			if !cut {
				t.Fatalf("%s: %s", s.Meta().Name, out)
			}
		}
		if said, ok := p.restoreAct(s, snapshot); !ok && s.Meta().Name != "etcd/restore-end" {
			t.Errorf("%s, done again: %s", s.Meta().Name, said)
		}
		if s.Meta().Name == "etcd/restore-data" {
			p.systemctl("start") // as a host that is booted does
		}
	}
	if got := p.ctl("get", "color", "--print-value-only"); got != "blue" {
		t.Errorf("color is %q", got)
	}
	p.must(p.member(), "")

	t.Log("one that nobody goes on with is no obstacle to another")
	p.ctl("put", "color", "green")
	restore(t, []*process{p}, restoreOf(t, "bbbbbbbb", snapshot), snapshot, "prepare", "stop", "data")
	restore(t, []*process{p}, restoreOf(t, "cccccccc", snapshot), snapshot)
	if got := p.ctl("get", "color", "--print-value-only"); got != "blue" {
		t.Errorf("color is %q", got)
	}
	p.must(p.member(), "")
	if aside := glob(t, filepath.Join(p.settings.Spec.DataDir, "replaced.*")); len(aside) != 2 {
		t.Errorf("the last two that were set aside are kept: %v", aside)
	}
}

// TestRestoreWithItsOwnLog restores a member whose write-ahead log is elsewhere.
func TestRestoreWithItsOwnLog(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	p := processes(t, 1, spec.Etcd{ExtraArgs: []spec.Arg{{Name: "wal-dir", Value: filepath.Join(logs, "wal")}}})[0]
	p.must(p.member(), "no voting member answers here")
	p.ctl("put", "color", "blue")
	name, said, ok := p.backUp(0, 0)
	if !ok {
		t.Fatal(said)
	}
	p.ctl("put", "color", "green")
	restore(t, []*process{p}, restoreOf(t, "aaaaaaaa", name+".db"), name+".db")
	if got := p.ctl("get", "color", "--print-value-only"); got != "blue" {
		t.Errorf("color is %q", got)
	}
	p.must(p.member(), "")
	for _, path := range []string{filepath.Join(p.settings.Spec.DataDir, "replaced.aaaaaaaa", "wal"), filepath.Join(logs, "wal")} {
		if found := glob(t, path+"/*.wal"); len(found) == 0 {
			t.Errorf("there is no write-ahead log in %s", path)
		}
	}
}

// TestRestoreRefuses what is no snapshot, or not the one that was sent, before anything ends.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	p := processes(t, 1, spec.Etcd{})[0]
	p.must(p.member(), "no voting member answers here")
	p.put("bad.db", []byte("no snapshot"))
	r := restoreOf(t, "aaaaaaaa", p.path("bad.db"))
	if said, ok := p.restoreAct(etcd.PrepareRestore(p.settings, r, "x"), p.path("bad.db")); ok || !strings.Contains(said, "is no snapshot") {
		t.Errorf("%t, %s", ok, said)
	}
	r.Snapshot.Digest = "sha256:" + strings.Repeat("0", 64)
	if said, ok := p.restoreAct(etcd.PrepareRestore(p.settings, r, "x"), p.path("bad.db")); ok || !strings.Contains(said, "is not what was sent") {
		t.Errorf("%t, %s", ok, said)
	}
	if said, ok := p.restoreAct(etcd.StartRestored(p.settings, r, "x"), p.path("bad.db")); ok || !strings.Contains(said, "is not restored") {
		t.Errorf("%t, %s", ok, said)
	}
	p.must(p.member(), "")
}

// TestBackupsByTimer runs what a host's timer runs.
func TestBackupsByTimer(t *testing.T) {
	t.Parallel()
	p := processes(t, 1, spec.Etcd{})[0]
	p.must(p.member(), "no voting member answers here")
	p.put("owner", []byte(`{"cluster":"prod","authority":"SHA256:abc","role":"ControlPlane","host":"n1"}`+"\n"))
	s := etcd.Backups(p.settings, etcd.Backup{Directory: "/data/backups", Keep: 1, KubernetesVersion: "v1.36.3"}, "*-*-* 03:00:00 UTC")
	script := strings.NewReplacer(
		"/etc/kubexm/etcd", p.dir, "/data/backups", p.path("backups"), "/var/lib/kubexm/owner", p.path("owner"),
	).Replace(fileOf(t, s).Content.String())
	p.put("backup.sh", []byte(script))
	if _, said, ok := p.backUp(-1000, 0); !ok { // an older one
		t.Fatal(said)
	}
	if said, ok := p.run([]string{"/usr/bin/env", "/bin/sh", "-u", p.path("backup.sh")}); !ok {
		t.Fatal(said)
	}
	if found := glob(t, p.path("backups/etcd-prod-*-n1.*")); len(found) != 2 {
		t.Errorf("there are %v: one backup is kept", found)
	}
	if bare, err := exec.CommandContext(t.Context(), "/bin/sh", "-n", p.path("backup.sh")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, bare)
	}
}
