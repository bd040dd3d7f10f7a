// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package etcd_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	firstRun = "no voting member answers here"
	noData   = "has begun before"
)

// moveAway ends the member and moves its data to a place where nobody looks for it, as a file system that is not mounted.
func (p *process) moveAway() (moveBack func()) {
	p.t.Helper()
	p.stop()
	aside := filepath.Join(p.dir, "elsewhere")
	if err := os.Rename(p.settings.Spec.DataDir, aside); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Mkdir(p.settings.Spec.DataDir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	return func() {
		p.t.Helper()
		p.stop()
		if err := os.RemoveAll(p.settings.Spec.DataDir); err != nil {
			p.t.Fatal(err)
		}
		if err := os.Rename(aside, p.settings.Spec.DataDir); err != nil {
			p.t.Fatal(err)
		}
	}
}

// begun reports whether the data directory has a write-ahead log.
func (p *process) begun() bool {
	p.t.Helper()
	found, err := filepath.Glob(filepath.Join(p.settings.Spec.DataDir, "member", "wal", "*.wal"))
	if err != nil {
		p.t.Fatal(err)
	}
	return len(found) > 0
}

func (p *process) wantNoData() {
	p.t.Helper()
	if p.begun() {
		p.t.Fatalf("%s has begun anew", p.settings.Name)
	}
}

// record is what is remembered of the member: its state, and the IDs of the cluster and the member.
func (p *process) record() []string {
	p.t.Helper()
	return strings.Fields(string(read(p.t, p.path("member"))))
}

func (p *process) wantValue(key, value string) {
	p.t.Helper()
	if got := p.ctl("get", key, "--print-value-only"); got != value {
		p.t.Errorf("%s has %s=%q, want %q", p.settings.Name, key, got, value)
	}
}

// A member that was the only one and finds no data begins nothing: neither by the step nor by anyone who starts etcd.
func TestOneMemberDoesNotBeginTwice(t *testing.T) {
	t.Parallel()
	n1 := processes(t, 1, spec.Etcd{})[0]
	n1.must(n1.member(), firstRun)
	n1.ctl("put", "color", "blue")
	record := n1.record()
	if len(record) != 3 || record[0] != "member" {
		t.Fatalf("the record is %v", record)
	}

	moveBack := n1.moveAway()
	for range 2 {
		n1.refuses(n1.member(), noData)
		n1.wantNoData()
	}
	n1.refuses(n1.member(), "as the member "+record[2]+" of the cluster "+record[1])
	n1.refuses(n1.member(), n1.settings.Spec.DataDir)
	n1.systemctl("start")
	n1.ends()
	n1.wantNoData()

	moveBack()
	n1.must(n1.member(), firstRun)
	n1.wantValue("color", "blue")
	if got := n1.record(); strings.Join(got, " ") != strings.Join(record, " ") {
		t.Errorf("the record is %v, and was %v", got, record)
	}

	// Where the host is reset, the record goes with its directory: then another cluster is begun, which has other IDs.
	n1.moveAway()
	for _, name := range []string{"member", "initial.env"} {
		if err := os.Remove(n1.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	n1.must(n1.member(), firstRun)
	if again := n1.record(); again[1] == record[1] || again[2] == record[2] {
		t.Errorf("another cluster has the IDs %v of the first", again)
	}
}

// ends waits until etcd, which was started, has ended by itself.
func (p *process) ends() {
	p.t.Helper()
	p.await(func() bool {
		_, running := p.run([]string{"env", "/bin/sh", "-c", `kill -0 "$(cat "$dir/pid")"`})
		return !running
	})
}

// A run that was cut before etcd was seen to run begins again, whatever is there by then.
func TestBeginningIsCut(t *testing.T) {
	t.Parallel()
	n1 := processes(t, 1, spec.Etcd{})[0]
	parts := n1.member().(step.Sequence).Parts
	begin := parts[len(parts)-1].(step.Command)
	for after := 10 * time.Millisecond; after < 3*time.Second; after = after * 5 / 4 {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		out, err := n1.command(ctx, begin.Argv).CombinedOutput()
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			t.Fatalf("cut after %s it fails: %s", after, out)
		}
	}
	if _, failure := n1.converge(n1.member()); failure != "" {
		t.Fatal(failure)
	}

	// It had said how it was to begin, and nothing more.
	n2 := processes(t, 1, spec.Etcd{})[0]
	n2.put("member", []byte("beginning prod-0011223344556677\n"))
	n2.must(n2.member(), firstRun)
	if token := string(read(t, n2.path("initial.env"))); strings.Contains(token, "prod-0011") {
		t.Errorf("a token is used twice: %s", token)
	}
	if record := n2.record(); record[0] != "member" {
		t.Errorf("the record is %v", record)
	}
	// One that joined something before does not begin, no matter who is said to be the first by now.
	n3 := processes(t, 1, spec.Etcd{})[0]
	n3.put("member", []byte("joining 11 22\n"))
	n3.refuses(n3.member(), "no other member is named")
	n3.wantNoData()
}

// Killed right after its write-ahead log was made, etcd knows no member when it is started again, and would wait for a leader for
// ever: it is begun again, and what there was is kept.
func TestBeginningIsKilled(t *testing.T) {
	t.Parallel()
	n1 := processes(t, 1, spec.Etcd{})[0]
	const token = "prod-0011223344556677"
	log := filepath.Join(n1.settings.Spec.DataDir, "member", "wal", "0000000000000000-0000000000000000.wal")
	hollow := func() bool {
		content, err := os.ReadFile(log)
		return err == nil && !bytes.Contains(content, []byte(`"peerURLs"`))
	}
	for range 50 {
		n1.put("member", []byte("beginning "+token+"\n"))
		n1.put("initial.env", fmt.Appendf(nil, "ETCD_INITIAL_CLUSTER=n1=https://%s:2380\nETCD_INITIAL_CLUSTER_STATE=new\nETCD_INITIAL_CLUSTER_TOKEN=%s\n",
			n1.address, token))
		n1.killedAsItBegins()
		if hollow() {
			break
		}
		if err := os.RemoveAll(filepath.Join(n1.settings.Spec.DataDir, "member")); err != nil {
			t.Fatal(err)
		}
	}
	if !hollow() {
		t.Fatal("etcd was never killed in time")
	}
	n1.must(n1.member(), firstRun)
	n1.must(n1.member(), "")
	n1.ctl("put", "color", "blue")
	if _, err := os.Stat(filepath.Join(n1.settings.Spec.DataDir, "member.removed.1", "wal")); err != nil {
		t.Error(err)
	}
}

// killedAsItBegins starts etcd and kills it as soon as it has given its write-ahead log the log's name. The kernel says when that is:
// who asks again and again, or waits for the script that starts etcd, comes too late on a machine with other work.
func (p *process) killedAsItBegins() {
	p.t.Helper()
	member := filepath.Join(p.settings.Spec.DataDir, "member")
	if err := os.Mkdir(member, 0o700); err != nil {
		p.t.Fatal(err)
	}
	watch, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		p.t.Fatal(err)
	}
	named := os.NewFile(uintptr(watch), "inotify")
	defer named.Close()
	if _, err := syscall.InotifyAddWatch(watch, member, syscall.IN_MOVED_TO); err != nil {
		p.t.Fatal(err)
	}
	if err := named.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		p.t.Fatal(err)
	}
	started := make(chan struct{})
	go func() {
		defer close(started)
		p.systemctl("start")
	}()
	if _, err := named.Read(make([]byte, 4096)); err != nil {
		p.t.Fatalf("etcd does not begin: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(p.pid()))
	if err != nil {
		p.t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
	<-started
	p.stop()
}

// Of three members two are down and one has lost its data: it begins nothing, the others find their cluster as it was, and it
// joins that again.
func TestThreeMembersDoNotBeginTwice(t *testing.T) {
	t.Parallel()
	all := processes(t, 3, spec.Etcd{})
	for _, p := range all {
		p.must(p.member(), firstRun)
	}
	a, b, c := all[0], all[1], all[2]
	a.ctl("put", "color", "blue")
	record := a.record()

	b.stop()
	c.stop()
	a.moveAway()
	a.refuses(a.member(), noData)
	a.wantNoData()

	// Alone, b has no quorum, and nobody tells it that it was removed.
	b.refuses(b.member(), "does not answer at")
	b.wantKept()
	a.refuses(a.member(), noData)
	a.wantNoData()

	// Somebody begins another cluster on a by hand. It does not count for b, whose data is of the first; nor does a join it.
	forced := a.forced()
	b.stop()
	b.refuses(b.member(), "does not answer at")
	b.wantKept()
	forced()
	a.put("member", []byte(strings.Join(record, " ")+"\n"))
	a.refuses(a.member(), noData)

	c.systemctl("start")
	b.await(func() bool { _, err := b.tryCtl("get", "color"); return err == nil })
	b.must(b.member(), "")
	c.must(c.member(), "")
	b.wantKept()
	c.wantKept()
	// The first as well as a later one: it joins the cluster that it was of.
	a.must(a.member(), firstRun)
	for _, p := range all {
		p.wantThree()
		p.wantValue("color", "blue")
		if got := p.record(); got[1] != record[1] {
			t.Errorf("%s is of the cluster %v, not of %s", p.settings.Name, got, record[1])
		}
	}
	if a.record()[2] == record[2] {
		t.Error("it came back with the ID of the member that had the data")
	}
}

// forced begins another cluster with this member's address; what it returns takes that away.
func (p *process) forced() (takeAway func()) {
	p.t.Helper()
	for _, name := range []string{"member", "initial.env"} {
		if err := os.Remove(p.path(name)); err != nil {
			p.t.Fatal(err)
		}
	}
	alone := *p
	alone.settings.Members = p.settings.Members[:1]
	alone.must(alone.member(), firstRun)
	return func() {
		p.stop()
		if err := os.RemoveAll(p.settings.Spec.DataDir); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *process) await(condition func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); {
		if time.Now().After(deadline) {
			p.t.Fatal("it does not come in a minute")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// wantKept wants the member's data to be where it was.
func (p *process) wantKept() {
	p.t.Helper()
	aside, err := filepath.Glob(filepath.Join(p.settings.Spec.DataDir, "member.removed*"))
	if err != nil || len(aside) > 0 || !p.begun() {
		p.t.Fatalf("the data of %s was set aside: %v %v", p.settings.Name, aside, err)
	}
}

// Data of a removed member is set aside each time under a new name, and never deleted.
func TestDataIsSetAside(t *testing.T) {
	t.Parallel()
	all := processes(t, 3, spec.Etcd{})
	n1, n2 := all[0], all[1]
	for _, p := range all {
		p.must(p.member(), firstRun)
	}
	remove := func() {
		t.Helper()
		n2.stop()
		id := n2.record()[2]
		n1.await(func() bool { _, err := n1.tryCtl("member", "remove", id); return err == nil })
	}
	for _, n := range []string{"1", "2", "3"} {
		remove()
		n2.must(n2.member(), firstRun)
		if _, err := os.Stat(filepath.Join(n2.settings.Spec.DataDir, "member.removed."+n, "wal")); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	n2.refuses(n2.member(), "remove what nobody needs any more")
	if !n2.begun() {
		t.Error("its data is gone")
	}
}

// Who has lost the lock while they had it restarts nothing.
func TestLostLock(t *testing.T) {
	t.Parallel()
	n1 := processes(t, 1, spec.Etcd{})[0]
	n1.must(n1.member(), firstRun)
	parts := n1.member().(step.Sequence).Parts
	argv := parts[len(parts)-1].(step.Command).Argv
	before := n1.pid()
	own := "lockers=https://" + n1.address + ":2379"
	restart := slices.Concat(argv[:len(argv)-2], []string{`exec /bin/sh -uc "$restart" etcd`})
	n1.ctl("put", "kubexm/etcd/held", "")
	if said, ok := n1.run(restart, own, "ETCD_LOCK_KEY=kubexm/etcd/lost"); ok || !strings.Contains(said, "has lost the lock") || n1.pid() != before {
		t.Errorf("it says %q", said)
	}
	if said, ok := n1.run(restart, own, "ETCD_LOCK_KEY=kubexm/etcd/held"); !ok || n1.pid() == before {
		t.Errorf("it says %q", said)
	}
}

// A host that is booted before it has joined begins nothing by itself, whatever a power cut has left of how it was to begin; and data that
// it has begun with in some other way is not taken for that of the cluster.
func TestBootedBeforeItJoins(t *testing.T) {
	t.Parallel()
	all := processes(t, 2, spec.Etcd{})
	n1, n2 := all[0], all[1]
	n1.must(n1.member(), firstRun)
	n2.systemctl("start")
	n2.put("initial.env", nil)
	n2.systemctl("start")
	n2.wantNoData()

	n2.put("initial.env", []byte("ETCD_INITIAL_CLUSTER=n2=https://"+n2.address+":2380\n"))
	n2.systemctl("start")
	n2.await(func() bool { _, err := n2.tryCtl("get", "color"); return err == nil })
	for range 2 {
		n2.refuses(n2.member(), "and the cluster to join is "+n1.record()[1])
	}
	n2.stop()
	if err := os.RemoveAll(filepath.Join(n2.settings.Spec.DataDir, "member")); err != nil {
		t.Fatal(err)
	}
	n2.must(n2.member(), firstRun)
	if got := n1.members(); got != "n1 n2" {
		t.Errorf("the members are %q", got)
	}
}

// A member that runs well is not ended because its log is looked for in another place. Once etcd has ended, it is a member without data as
// any other.
func TestLogElsewhere(t *testing.T) {
	t.Parallel()
	n1 := processes(t, 1, spec.Etcd{})[0]
	n1.must(n1.member(), firstRun)
	pid := n1.pid()
	elsewhere := "wal=" + n1.path("another")
	failed := func() {
		t.Helper()
		_, failure := n1.converge(n1.member(), elsewhere, "digest=another")
		if want := "and its write-ahead log is not in " + n1.path("another"); !strings.Contains(failure, want) || !strings.Contains(failure, "wal-dir back") {
			t.Errorf("the failure is %q, it should say %q", failure, want)
		}
		if _, err := n1.tryCtl("endpoint", "status"); err != nil || n1.pid() != pid {
			t.Errorf("etcd was ended: %v", err)
		}
	}
	failed()
	failed()
	n1.must(n1.member(), "")
	n1.stop()
	if _, failure := n1.converge(n1.member(), elsewhere); !strings.Contains(failure, noData) {
		t.Errorf("etcd has ended, and the failure is %q", failure)
	}
	n1.must(n1.member(), firstRun)
}
