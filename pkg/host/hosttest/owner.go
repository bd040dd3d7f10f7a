// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"cmp"
	"context"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// prod and other are two clusters that want the same host.
var (
	prod  = host.Owner{Cluster: "default/prod", Authority: "sha256:" + strings.Repeat("a1", 32), Role: "worker", Host: "w-1"}
	other = host.Owner{Cluster: "team-b/other", Authority: "sha256:" + strings.Repeat("b2", 32), Role: "worker", Host: "w-1"}
)

// owned is a new run for an owner, who takes the host over from another if adopt names that.
func owned(o host.Owner, adopt string) host.Run {
	run := newRun()
	run.Ownership = host.Ownership{Owner: o, Adopt: adopt}
	return run
}

// recordFile is where the fixture's host keeps its owner.
func (r *rig) recordFile() string { return cmp.Or(r.StateDir, host.StateDir) + "/" + host.OwnerFile }

// refused asserts that the host does not let the run begin because of its owner, and says all of want.
func (r *rig) refused(h host.Host, run host.Run, want ...string) {
	r.t.Helper()
	s, err := h.Begin(r.ctx, run)
	if err == nil {
		r.end(s)
		r.t.Fatal("Begin went through on somebody else's host")
	}
	found := hostErrors(err)
	if host.KindOf(err) != host.KindForeign || len(found) == 0 {
		r.t.Fatalf("Begin: %s, want KindForeign", explain(err))
	}
	for _, text := range append(want, "nothing was changed") {
		if !strings.Contains(err.Error(), text) {
			r.t.Errorf("the refusal does not say %q:\n%v", text, err)
		}
	}
	if remedy := found[0].Remedy; !strings.Contains(remedy, "reset") || !strings.Contains(remedy, "adopt") {
		r.t.Errorf("the refusal's remedy is %q", remedy)
	}
}

// release resets the host for its owner.
func (r *rig) release(o host.Owner) {
	r.t.Helper()
	h := r.dial()
	s := r.begin(h, owned(o, ""))
	r.undo(s, host.Scope{})
	r.end(s)
	if f := r.observe(h, host.Query{}); f.Owner != nil || f.OwnerUnreadable != "" || f.Changed() {
		r.t.Errorf("a host that was reset has the owner %v (%s)", f.Owner, f.OwnerUnreadable)
	}
}

// testOwner is about whose a host is.
func testOwner(t *testing.T, fixture func(t *testing.T) Fixture) {
	for name, test := range map[string]func(r *rig){
		"FirstBegin": firstBegin, "OtherAuthority": otherAuthority, "OtherHost": otherHost, "OtherRole": otherRole, "Cloned": cloned,
		"Adopted": adopted, "Unreadable": unreadable, "NoRecord": noRecord, "NoOwner": noOwner, "NoAuthority": noAuthority,
		"Half": halfRemoved,
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t, fixture)
			test(newRig(t, fixture(t)))
		})
	}
	if fixture(t).CutAt != nil {
		t.Run("Cut", func(t *testing.T) { ownerOfCutRun(newRig(t, fixture(t))) })
	}
}

// firstBegin: the first run leaves the record before it changes anything, later ones leave it as it is, a full undo removes it.
func firstBegin(r *rig) {
	h := r.dial()
	if f := r.observe(h, host.Query{}); f.Owner != nil || f.OwnerUnreadable != "" {
		r.t.Fatalf("a clean host has the owner %v (%s)", f.Owner, f.OwnerUnreadable)
	}
	s := r.begin(h, owned(prod, ""))
	record := r.observe(r.dial(), host.Query{Paths: []host.PathQuery{{Path: r.recordFile(), Digest: true}}})
	want := prod
	want.MachineID = record.System.MachineID
	if diff := gocmp.Diff(&want, record.Owner); diff != "" {
		r.t.Errorf("the record after the first Begin: %s", diff)
	}
	if p := record.Paths[r.recordFile()]; p.Mode != 0o600 || p.Owner != "root" {
		r.t.Errorf("the record is %v", p)
	}
	done := r.do(s, file(r, "n", "t", "f", "x"))
	if diff := gocmp.Diff(&want, done.Owner); diff != "" {
		r.t.Errorf("the owner in an act's facts: %s", diff)
	}
	r.end(s)

	renamed := prod
	renamed.Cluster = "prod" // the same authority: moved to another place that calls it so
	r.end(r.begin(h, owned(renamed, "")))
	if f := r.observe(h, host.Query{}); f.Owner == nil || f.Owner.Cluster != prod.Cluster {
		r.t.Errorf("the record after a second run is %v", f.Owner)
	}
	r.release(renamed)
}

// settle makes the host prod's, with one change.
func settle(r *rig) host.Host {
	h := r.dial()
	s := r.begin(h, owned(prod, ""))
	r.do(s, file(r, "n", "t", "f", "of prod"))
	r.end(s)
	return h
}

// same asserts that the host is prod's as settle left it.
func (r *rig) same(h host.Host) {
	r.t.Helper()
	if got := content(r, h, "f"); got != "of prod" {
		r.t.Errorf("the owner's file is %q", got)
	}
	f := r.observe(h, host.Query{})
	if _, journaled := f.Journal["n"]; !journaled || f.UndoEntries == 0 {
		r.t.Errorf("the owner's journal is %v, its undo store has %d entries", f.Journal, f.UndoEntries)
	}
}

func otherAuthority(r *rig) {
	h := settle(r)
	before := r.observe(h, host.Query{}).Owner
	r.refused(h, owned(other, ""), prod.Cluster, prod.Authority, other.Authority)
	r.refused(h, owned(other, "another/cluster"), prod.Cluster)
	after := r.observe(h, host.Query{}).Owner
	if diff := gocmp.Diff(before, after); diff != "" {
		r.t.Errorf("the refusal changed the record: %s", diff)
	}
	r.same(h)
	r.release(prod)
}

func otherHost(r *rig) {
	h := settle(r)
	moved := prod
	moved.Host = "lb-1"
	r.refused(h, owned(moved, ""), "w-1", "lb-1")
	r.same(h)
	r.release(prod)
}

func otherRole(r *rig) {
	h := settle(r)
	moved := prod
	moved.Role = "etcd"
	r.refused(h, owned(moved, ""), "worker", "etcd")
	r.same(h)
	r.release(prod)
}

// cloned: the record says that it was written on another machine.
func cloned(r *rig) {
	h := settle(r)
	const id = "00000000000000000000000000c0ffee"
	was := r.observe(h, host.Query{}).Owner
	r.Put(r.t, r.recordFile(), `{"cluster":"default/prod","authority":"`+prod.Authority+`","role":"worker","host":"w-1","machineID":"`+id+`"}`, 0o600)
	r.refused(h, owned(prod, ""), id, "cloned")
	r.same(h)
	r.end(r.begin(h, owned(prod, prod.Cluster)))
	if is := r.observe(h, host.Query{}).Owner; is == nil || was == nil || is.MachineID != was.MachineID {
		r.t.Errorf("after the adoption the record is %v, want the machine of %v", is, was)
	}
	r.same(h)
	r.release(prod)
}

// adopted: by its name or its authority, once. What another cluster has finished is not done; what it replaced is kept.
func adopted(r *rig) {
	for _, name := range []string{prod.Cluster, prod.Authority} {
		h := settle(r)
		entries := r.observe(h, host.Query{}).UndoEntries
		s := r.begin(h, owned(other, name))
		f := r.observe(h, host.Query{})
		if f.Owner == nil || f.Owner.Authority != other.Authority || len(f.Journal) != 0 || f.UndoEntries != entries {
			r.t.Errorf("adopted by %s: the owner is %v, the journal %v, the undo store has %d entries", name, f.Owner, f.Journal, f.UndoEntries)
		}
		if done := r.do(s, file(r, "n2", "t", "g", "of other")); len(done.Journal) != 1 || done.Owner.Authority != other.Authority {
			r.t.Errorf("an act's facts after the adoption: owner %v, journal %v", done.Owner, done.Journal)
		}
		r.end(s)
		r.refused(h, owned(prod, ""), other.Cluster)
		r.release(other)
		if got := content(r, h, "f"); got != "(absent)" {
			r.t.Errorf("after the new owner's reset, the former owner's file is %q", got)
		}
	}
}

func unreadable(r *rig) {
	h := settle(r)
	for _, record := range []string{
		"", "{", "null", `{"cluster":"a"}`, `{"cluster":"a","authority":"b","role":"c","host":"d","more":1}`, "\x1b[2J", strings.Repeat("x", host.MaxOwner+1),
		`{"cluster":"a\u001b","authority":"b","role":"c","host":"d"}`,
	} {
		r.Put(r.t, r.recordFile(), record, 0o600)
		if f := r.observe(h, host.Query{}); f.OwnerUnreadable == "" || f.Owner != nil {
			r.t.Errorf("record %q: the owner is %v, unreadable because %q", record, f.Owner, f.OwnerUnreadable)
		}
		r.refused(h, owned(prod, ""), "cannot be read")
		r.refused(h, owned(prod, prod.Cluster), "cannot be read")
	}
	r.same(h)
	r.end(r.begin(h, owned(prod, host.AdoptUnknown)))
	r.same(h)
	r.release(prod)
}

// noRecord: a host that was changed and does not say for whom is nobody's to take.
func noRecord(r *rig) {
	h := settle(r)
	r.Remove(r.t, r.recordFile())
	r.refused(h, owned(prod, ""), "no record")
	r.refused(h, owned(prod, prod.Cluster), "no record")
	r.same(h)
	r.end(r.begin(h, owned(prod, host.AdoptUnknown)))
	r.same(h)
	r.release(prod)
}

// noOwner: a run for nobody changes no host that has an owner.
func noOwner(r *rig) {
	h := settle(r)
	r.refused(h, newRun(), prod.Cluster)
	r.same(h)
	r.release(prod)
}

// noAuthority: who cannot say who they are does not begin.
func noAuthority(r *rig) {
	h := r.dial()
	nameless := prod
	nameless.Authority = ""
	if _, err := h.Begin(r.ctx, owned(nameless, "")); host.KindOf(err) != host.KindInvalid {
		r.t.Errorf("a run for a cluster without an authority: %v", err)
	}
	if f := r.observe(h, host.Query{Paths: []host.PathQuery{{Path: r.recordFile()}}}); f.Paths[r.recordFile()].Exists {
		r.t.Error("a refused run left a record")
	}
}

// halfRemoved: a full undo that was cut while it removed the state directory has left a log, and nothing in it.
func halfRemoved(r *rig) {
	h := r.dial()
	dir := strings.TrimSuffix(r.recordFile(), "/"+host.OwnerFile)
	r.Put(r.t, dir+"/undo.log", "\n- 1 ;\n", 0o600)
	r.end(r.begin(h, owned(prod, "")))
	if f := r.observe(h, host.Query{}); f.Owner == nil || f.Owner.Host != prod.Host {
		r.t.Errorf("the owner is %v", f.Owner)
	}
	r.release(prod)
}

// ownerOfCutRun: no matter who cut the run, the host is its owner's.
func ownerOfCutRun(r *rig) {
	for n := 1; ; n++ {
		h := r.Dial(r.t)
		s := r.begin(h, owned(prod, ""))
		r.CutAt(n)
		_, err := s.Do(r.ctx, file(r, "n", "t", "f", "of prod"))
		r.CutAt(0)
		_ = h.Close()
		again := r.dial()
		f := r.observe(again, host.Query{Paths: []host.PathQuery{{Path: r.Dir + "/f"}}})
		if f.Owner == nil || f.Owner.Authority != prod.Authority {
			r.t.Fatalf("cut at boundary %d: the owner is %v (%s)", n, f.Owner, f.OwnerUnreadable)
		}
		r.whenFree(again, func() { r.refused(again, owned(other, ""), prod.Cluster) })
		r.release(prod)
		if err == nil {
			return
		}
	}
}

// whenFree calls f when nothing that was cut holds the host any more.
func (r *rig) whenFree(h host.Host, f func()) {
	r.t.Helper()
	s, err := h.Begin(r.ctx, owned(prod, ""))
	for ; host.KindOf(err) == host.KindLocked && r.ctx.Err() == nil; s, err = h.Begin(r.ctx, owned(prod, "")) {
	}
	if err != nil {
		r.t.Fatalf("Begin: %s", explain(err))
	}
	_ = s.End(context.WithoutCancel(r.ctx), true)
	f()
}
