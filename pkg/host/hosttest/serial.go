// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"cmp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// serialOf is the serial of prod's state with this number.
func serialOf(number int64, token string) *host.Serial {
	return &host.Serial{
		Number: number, Token: token, Authority: prod.Authority, By: "kubexm 4711@laptop", Time: time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC),
	}
}

// with is a new run of prod's with a state.
func with(s *host.Serial) host.Run {
	run := owned(prod, "")
	run.Serial = s
	return run
}

// serialFile is where the fixture's host keeps the serial.
func (r *rig) serialFile() string { return cmp.Or(r.StateDir, host.StateDir) + "/" + host.SerialFile }

// hasSerial asserts that the host says that it has the serial, nil for none.
func (r *rig) hasSerial(h host.Host, want *host.Serial) {
	r.t.Helper()
	f := r.observe(h, host.Query{})
	if diff := gocmp.Diff(want, f.Serial); diff != "" || f.SerialUnreadable != "" {
		r.t.Errorf("the host's serial (unreadable because %q) (-want +got):\n%s", f.SerialUnreadable, diff)
	}
}

// superseded asserts that the host does not let a run begin that has an older state, and says all of want.
func (r *rig) superseded(h host.Host, run host.Run, want ...string) {
	r.t.Helper()
	s, err := h.Begin(r.ctx, run)
	if err == nil {
		r.end(s)
		r.t.Fatal("Begin went through with a state that is superseded")
	}
	if host.KindOf(err) != host.KindSuperseded {
		r.t.Fatalf("Begin: %s, want KindSuperseded", explain(err))
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			r.t.Errorf("the refusal does not say %q:\n%v", text, err)
		}
	}
}

// testSerial is about with which state a host was changed.
func testSerial(t *testing.T, fixture func(t *testing.T) Fixture) {
	for name, test := range map[string]func(r *rig){
		"Goes": serialGoesUp, "Refused": serialRefused, "Unreadable": serialUnreadable, "OtherAuthority": serialOfOther, "Invalid": serialInvalid,
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t, fixture)
			test(newRig(t, fixture(t)))
		})
	}
}

// serialGoesUp: a run with a state leaves its serial, one without leaves what is there, a full undo removes it.
func serialGoesUp(r *rig) {
	h := settle(r)
	r.hasSerial(h, nil)
	s := r.begin(h, with(serialOf(1, "a")))
	if done := r.do(s, file(r, "n", "t", "f", "of prod")); done.Serial == nil || done.Serial.Number != 1 {
		r.t.Errorf("the serial in an act's facts is %v", done.Serial)
	}
	r.end(s)
	r.hasSerial(h, serialOf(1, "a"))
	f := r.observe(h, host.Query{Paths: []host.PathQuery{{Path: r.serialFile()}}})
	if p := f.Paths[r.serialFile()]; p.Mode != 0o600 || p.Owner != "root" {
		r.t.Errorf("the record is %v", p)
	}
	r.end(r.begin(h, owned(prod, "")))
	r.hasSerial(h, serialOf(1, "a"))
	r.end(r.begin(h, with(serialOf(1, "a"))))
	r.end(r.begin(h, with(serialOf(3, "c"))))
	r.hasSerial(h, serialOf(3, "c"))
	r.release(prod)
	r.hasSerial(h, nil)
}

// serialRefused: a state that is behind, or has gone on from the same number by itself, changes nothing.
func serialRefused(r *rig) {
	h := settle(r)
	r.end(r.begin(h, with(serialOf(5, "a"))))
	r.superseded(h, with(serialOf(4, "x")), "serial 5, written by kubexm 4711@laptop at 2026-11-26T09:00:00Z", "this run has 4")
	r.superseded(h, with(serialOf(5, "b")))
	r.hasSerial(h, serialOf(5, "a"))
	r.same(h)
	r.end(r.begin(h, owned(prod, ""))) // the refused have left the lock
	r.release(prod)
}

// serialUnreadable: what cannot be read is reported, and written over.
func serialUnreadable(r *rig) {
	h := settle(r)
	for _, record := range []string{"", "{", "null", `{"number":1}`, "\x1b[2J", strings.Repeat("x", host.MaxSerial+1)} {
		r.Put(r.t, r.serialFile(), record, 0o600)
		if f := r.observe(h, host.Query{}); f.SerialUnreadable == "" || f.Serial != nil {
			r.t.Errorf("record %q: the serial is %v, unreadable because %q", record, f.Serial, f.SerialUnreadable)
		}
	}
	r.end(r.begin(h, with(serialOf(2, "a"))))
	r.hasSerial(h, serialOf(2, "a"))
	r.release(prod)
}

// serialOfOther: what the host's former owner wrote says nothing to another.
func serialOfOther(r *rig) {
	h := settle(r)
	r.end(r.begin(h, with(serialOf(9, "a"))))
	run := owned(other, prod.Cluster)
	run.Serial = serialOf(1, "o")
	run.Serial.Authority = other.Authority
	r.end(r.begin(h, run))
	r.hasSerial(h, run.Serial)
	r.release(other)
}

// serialInvalid: nothing is written that could not be read.
func serialInvalid(r *rig) {
	h := settle(r)
	for _, bad := range []*host.Serial{{}, serialOf(0, "a"), serialOf(1, ""), serialOf(1, "a\nb")} {
		s, err := h.Begin(r.ctx, with(bad))
		if err == nil {
			r.end(s)
		}
		if host.KindOf(err) != host.KindInvalid {
			r.t.Errorf("Begin with %+v: %v, want KindInvalid", bad, err)
		}
	}
	r.hasSerial(h, nil)
	r.release(prod)
}
