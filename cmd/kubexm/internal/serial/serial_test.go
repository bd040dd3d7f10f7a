// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package serial_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/serial"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

var roles = map[string]spec.Role{
	"cp1": spec.RoleControlPlane, "cp2": spec.RoleControlPlane, "etcd1": spec.RoleEtcd, "w1": spec.RoleWorker, "lb1": spec.RoleLoadBalancer,
}

// authorities are the cluster's, made once: keys take their time.
var authorities = sync.OnceValues(func() (pki.Authorities, error) { return pki.NewAuthorities(pki.CARequest{}) })

// cluster is hosts, with those who have copies of the cluster's state.
type cluster struct {
	t     *testing.T
	hosts map[string]*fake.Machine
	// down are hosts that cannot be reached.
	down map[string]bool
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, hosts: map[string]*fake.Machine{}, down: map[string]bool{}}
	for name := range roles {
		c.hosts[name] = fake.New(name)
	}
	return c
}

// dial reaches a host that is not down.
func (c *cluster) dial(_ context.Context, name string) (host.Host, error) {
	if c.down[name] {
		return nil, &host.Error{Kind: host.KindUnreachable, Host: name, Message: "it is down"}
	}
	return c.hosts[name].Connect(), nil
}

// admin has a copy of the state.
type admin struct {
	*cluster
	name  string
	dir   clusterdir.Dir
	notes []string
}

// first is alice, who makes the cluster.
func (c *cluster) first() *admin {
	c.t.Helper()
	dir, err := clusterdir.Of(c.t.TempDir(), "prod")
	if err != nil {
		c.t.Fatal(err)
	}
	made, err := authorities()
	if err == nil {
		err = dir.WriteAuthorities(made)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return &admin{cluster: c, name: "alice", dir: dir}
}

// copy is somebody else with a copy of the state as it is now.
func (a *admin) copy(name string) *admin {
	a.t.Helper()
	root := a.t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "prod"), os.DirFS(a.dir.Path())); err != nil {
		a.t.Fatal(err)
	}
	dir, err := clusterdir.Of(root, "prod")
	if err != nil {
		a.t.Fatal(err)
	}
	return &admin{cluster: a.cluster, name: name, dir: dir}
}

func (a *admin) owners() planner.Owners {
	return planner.Owners{Cluster: "prod", Authority: a.dir.Authority, Roles: roles}
}

func (a *admin) engine() *engine.Engine {
	return engine.New(engine.Options{Holder: a.name, Dial: a.dial, Ownership: a.owners().Of})
}

// guard is what a command of the admin's works with.
func (a *admin) guard(isCurrent bool) *serial.Guard {
	return &serial.Guard{
		Dir: a.dir, Hosts: serial.Hosts(roles), Engine: a.engine(), Dial: a.dial, Owners: a.owners().Of,
		Holder: a.name, By: a.name, IsCurrent: isCurrent,
		Note: func(text string) { a.notes = append(a.notes, text) },
	}
}

// take makes hosts the cluster's, as a run does.
func (a *admin) take(names ...string) {
	a.t.Helper()
	for _, name := range names {
		claim, err := a.owners().Of(a.t.Context(), name)
		if err != nil {
			a.t.Fatal(err)
		}
		s, err := a.hosts[name].Connect().Begin(a.t.Context(), host.Run{ID: "run", Holder: a.name, Ownership: claim})
		if err != nil {
			a.t.Fatal(err)
		}
		if err := s.End(a.t.Context(), true); err != nil {
			a.t.Fatal(err)
		}
	}
}

// runs is a command of the admin's that changes hosts: all of them are the cluster's in the end.
func (a *admin) runs(isCurrent bool) {
	a.t.Helper()
	g := a.guard(isCurrent)
	if err := g.Begin(a.t.Context(), nil); err != nil {
		a.t.Fatalf("%s: %v", a.name, err)
	}
	a.take("cp1", "cp2", "etcd1", "w1", "lb1")
	if err := g.End(a.t.Context()); err != nil {
		a.t.Fatalf("%s: %v", a.name, err)
	}
}

// refused wants a command of the admin's to be refused with all of the words, and to leave the hosts and the state as they were.
func (a *admin) refused(words ...string) {
	a.t.Helper()
	hosts, file := a.serials(), a.file()
	err := a.guard(false).Begin(a.t.Context(), nil)
	var behind *serial.Behind
	if !errors.As(err, &behind) {
		a.t.Fatalf("%s: %v, want it to be refused", a.name, err)
	}
	for _, word := range append(words, "no host was changed", "--state-is-current", a.dir.Path()) {
		if !strings.Contains(err.Error(), word) {
			a.t.Errorf("%s: the refusal does not say %q:\n%v", a.name, word, err)
		}
	}
	if diff := cmp.Diff(hosts, a.serials()); diff != "" {
		a.t.Errorf("%s was refused, and has changed hosts:\n%s", a.name, diff)
	}
	if diff := cmp.Diff(file, a.file()); diff != "" {
		a.t.Errorf("%s was refused, and the state was changed:\n%s", a.name, diff)
	}
}

// facts is what all hosts that answer say.
func (a *admin) facts() map[string]*host.Facts {
	facts, _ := a.engine().Look(a.t.Context(), serial.Hosts(roles), func(string) host.Query { return host.Query{} })
	return facts
}

// serials are the numbers that hosts have, 0 for none.
func (a *admin) serials() map[string]int64 {
	all := map[string]int64{}
	for name, m := range a.hosts {
		f, err := m.Connect().Observe(a.t.Context(), host.Query{})
		if err != nil {
			a.t.Fatal(err)
		}
		if all[name] = 0; f.Serial != nil {
			all[name] = f.Serial.Number
		}
	}
	return all
}

func (a *admin) file() string {
	content, err := a.dir.Read("serial.json")
	if err != nil {
		a.t.Fatal(err)
	}
	return string(content)
}

// has wants the copy to have a number, and hosts of the control plane and etcd to have one: no others do.
func (a *admin) has(local int64, pending bool, onHosts int64) {
	a.t.Helper()
	s, err := a.dir.Serial()
	if err != nil || s == nil || s.Number != local || s.Pending != pending {
		a.t.Errorf("%s has the serial %+v (%v), want %d, pending %v", a.name, s, err, local, pending)
	}
	want := map[string]int64{"cp1": onHosts, "cp2": onHosts, "etcd1": onHosts, "w1": 0, "lb1": 0}
	if diff := cmp.Diff(want, a.serials()); diff != "" {
		a.t.Errorf("serials of hosts (-want +got):\n%s", diff)
	}
}

// TestTwoCopies: of two copies of a state, the one that is behind is refused, until a person takes it for the truth.
func TestTwoCopies(t *testing.T) {
	alice := newCluster(t).first()
	alice.runs(false)
	alice.has(1, false, 1)
	bob := alice.copy("bob")
	bob.runs(false)
	bob.has(2, false, 2)

	alice.refused("is an older copy", "cp1", "serial 2, written by bob at ", "this copy has serial 1, written by alice")
	alice.guard(false).Warn(t.Context(), nil)
	if len(alice.notes) != 1 || !strings.Contains(alice.notes[0], "serial 2, written by bob") {
		t.Errorf("alice is warned of %q", alice.notes)
	}
	bob.runs(false)
	bob.has(3, false, 3)
	bob.guard(false).Warn(t.Context(), nil)
	if len(bob.notes) != 0 {
		t.Errorf("bob is warned of %q", bob.notes)
	}

	alice.runs(true)
	alice.has(4, false, 4)
	bob.refused("serial 4, written by alice", "this copy has serial 3")
	alice.runs(false)
	alice.has(5, false, 5)
}

// TestOlder: hosts and states of a program that wrote no serials go on; a state without one is behind once a host has one.
func TestOlder(t *testing.T) {
	alice := newCluster(t).first()
	alice.take("cp1", "cp2", "etcd1", "w1", "lb1")
	bob := alice.copy("bob")
	alice.runs(false)
	alice.has(1, false, 1)
	bob.refused("serial 1, written by alice", "this copy has none")
}

// TestFresh: what is no host of the cluster's yet is not touched before the run has taken it.
func TestFresh(t *testing.T) {
	alice := newCluster(t).first()
	g := alice.guard(false)
	if err := g.Begin(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	alice.has(1, true, 0)
	for name, m := range alice.hosts {
		f, err := m.Connect().Observe(t.Context(), host.Query{Paths: []host.PathQuery{{Path: host.StateDir}}})
		if err != nil || f.Owner != nil || f.Paths[host.StateDir].Exists {
			t.Errorf("host %s was changed: %v, %v", name, f.Paths, err)
		}
	}
	alice.take("cp1")
	if err := g.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := alice.serials(); got["cp1"] != 1 || got["cp2"] != 0 {
		t.Errorf("serials of hosts: %v", got)
	}
}

// TestCut: a run that ended between its write to the state and that to hosts leaves the state ahead. It goes on with the same number, as
// often as it is cut, so that a copy that went on meanwhile is noticed.
func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alice := newCluster(t).first()
		alice.runs(false)
		bob := alice.copy("bob")
		cut := func() {
			t.Helper()
			facts := alice.facts()
			for _, name := range serial.Hosts(roles) {
				alice.down[name] = true
			}
			if err := alice.guard(false).Begin(t.Context(), facts); host.KindOf(err) != host.KindUnreachable {
				t.Fatalf("it was not cut: %v", err)
			}
			clear(alice.down)
			alice.has(2, true, 1)
		}
		cut()
		cut()
		carol := alice.copy("carol")
		alice.runs(false)
		alice.has(2, false, 2)
		alice.runs(false)
		alice.has(3, false, 3)

		t.Log("who has copied a number that was on its way goes on above it, where it has arrived")
		carol.refused("serial 3, written by alice", "this copy has serial 2")
		bob.refused("serial 3")
	})
}

// TestConnectionIsLost: a host that answers again soon gets the serial all the same.
func TestConnectionIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alice := newCluster(t).first()
		alice.runs(false)
		facts := alice.facts()
		g, dials := alice.guard(false), atomic.Int32{}
		dial := g.Dial
		g.Dial = func(ctx context.Context, name string) (host.Host, error) {
			if dials.Add(1) <= 2 {
				return nil, &host.Error{Kind: host.KindUnreachable, Host: name, Message: "the connection is lost"}
			}
			return dial(ctx, name)
		}
		if err := g.Begin(t.Context(), facts); err != nil {
			t.Fatal(err)
		}
		alice.has(2, false, 2)
	})
}

// TestHostsAreReplaced: hosts that were reset in a run have the serial in its end.
func TestHostsAreReplaced(t *testing.T) {
	alice := newCluster(t).first()
	alice.runs(false)
	bob := alice.copy("bob")
	g := alice.guard(false)
	if err := g.Begin(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range serial.Hosts(roles) {
		alice.hosts[name] = fake.New(name)
		alice.take(name)
	}
	if err := g.Again(t.Context()); err != nil {
		t.Fatal(err)
	}
	alice.has(2, false, 2)
	bob.refused("serial 2, written by alice")
}

// TestCutAndOvertaken: whoever was cut is refused once another copy has gone on from the same number.
func TestCutAndOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alice := newCluster(t).first()
		alice.runs(false)
		bob := alice.copy("bob")
		facts := alice.facts()
		for _, name := range serial.Hosts(roles) {
			alice.down[name] = true
		}
		for range 3 {
			if err := alice.guard(false).Begin(t.Context(), facts); host.KindOf(err) != host.KindUnreachable {
				t.Fatalf("it was not cut: %v", err)
			}
		}
		clear(alice.down)
		bob.runs(false)
		bob.has(2, false, 2)
		alice.refused("both have gone on from serial 1", "serial 2, written by bob")
		bob.runs(false)
		alice.refused("serial 3, written by bob")
		alice.runs(true)
		alice.has(4, false, 4)
		bob.refused("serial 4, written by alice")
	})
}

// TestAtOnce: of two copies that have seen the same hosts, the one that comes second to the first host is refused, and stays where it was.
func TestAtOnce(t *testing.T) {
	alice := newCluster(t).first()
	alice.runs(false)
	bob := alice.copy("bob")
	facts, before := alice.facts(), bob.file()
	if err := alice.guard(false).Begin(t.Context(), facts); err != nil {
		t.Fatal(err)
	}
	err := bob.guard(false).Begin(t.Context(), facts)
	if host.KindOf(err) != host.KindSuperseded || !strings.Contains(err.Error(), "serial 2, written by alice") ||
		!strings.Contains(err.Error(), "--state-is-current") {
		t.Errorf("bob: %v, want it to be superseded", err)
	}
	if diff := cmp.Diff(before, bob.file()); diff != "" {
		t.Errorf("bob's state was changed:\n%s", diff)
	}
	alice.has(2, false, 2)
	bob.refused("serial 2, written by alice", "this copy has serial 1")
}

// TestUnanswered: a host that does not answer says nothing, and is warned of; those that do decide.
func TestUnanswered(t *testing.T) {
	alice := newCluster(t).first()
	alice.runs(false)
	bob := alice.copy("bob")
	alice.down["cp1"] = true
	g := alice.guard(false)
	if err := g.Begin(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := g.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	clear(alice.down)
	if len(alice.notes) == 0 || !strings.Contains(alice.notes[0], "host cp1 does not say") {
		t.Errorf("alice is warned of %q", alice.notes)
	}
	if diff := cmp.Diff(map[string]int64{"cp1": 1, "cp2": 2, "etcd1": 2, "w1": 0, "lb1": 0}, alice.serials()); diff != "" {
		t.Error(diff)
	}
	bob.refused("host cp2", "serial 2, written by alice")
	alice.runs(false)
	alice.has(3, false, 3)
}

// TestUnreadable: a record that cannot be read may be of a newer copy.
func TestUnreadable(t *testing.T) {
	alice := newCluster(t).first()
	alice.runs(false)
	alice.hosts["cp2"].Put(host.StateDir+"/"+host.SerialFile, "{", 0o600)
	alice.refused("host cp2", "cannot be read")
	alice.runs(true)
	alice.has(2, false, 2)
}

// TestDamaged: a state whose own serial cannot be read changes nothing.
func TestDamaged(t *testing.T) {
	alice := newCluster(t).first()
	alice.runs(false)
	if err := alice.dir.Write([]byte("{}"), "serial.json"); err != nil {
		t.Fatal(err)
	}
	if err := alice.guard(false).Begin(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "serial.json") {
		t.Errorf("%v", err)
	}
	if err := alice.dir.WriteSerial(nil); err != nil {
		t.Fatal(err)
	}
	alice.refused("this copy has none")
}

// TestReadBack: a state that is read back from hosts is the newest, whatever they were changed with.
func TestReadBack(t *testing.T) {
	alice := newCluster(t).first()
	alice.runs(false)
	bob := alice.copy("bob")
	alice.runs(false)
	if err := bob.dir.WriteSerial(nil); err != nil {
		t.Fatal(err)
	}
	bob.refused("serial 2")
	if err := bob.guard(false).Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	bob.has(2, false, 2)
	bob.runs(false)
	bob.has(3, false, 3)
	alice.refused("serial 3, written by bob")
}

// TestHighest: where two copies have gone on from one number, what is read back goes above both.
func TestHighest(t *testing.T) {
	facts := func(of string, number int64, token string) *host.Facts {
		return &host.Facts{Serial: &host.Serial{Number: number, Token: token, Authority: of, By: "x", Time: time.Unix(1, 0)}}
	}
	for name, tc := range map[string]struct {
		a, b, c *host.Facts
		number  int64
		token   string
		pending bool
	}{
		"none":              {a: &host.Facts{}},
		"another cluster's": {a: facts("other", 7, "a")},
		"all the same":      {a: facts("prod", 2, "a"), b: facts("prod", 2, "a"), c: facts("prod", 2, "a"), number: 2, token: "a"},
		"one is behind":     {a: facts("prod", 2, "a"), b: facts("prod", 3, "b"), c: facts("prod", 2, "a"), number: 3, token: "b"},
		"two of a number":   {a: facts("prod", 2, "a"), b: facts("prod", 2, "b"), c: facts("prod", 2, "a"), number: 3, pending: true},
		"and one above":     {a: facts("prod", 2, "a"), b: facts("prod", 2, "b"), c: facts("prod", 3, "c"), number: 3, token: "c"},
	} {
		t.Run(name, func(t *testing.T) {
			got := serial.Highest([]string{"a", "b", "c"}, map[string]*host.Facts{"a": tc.a, "b": tc.b, "c": tc.c}, "prod")
			switch {
			case got == nil && tc.number == 0:
			case got == nil, got.Number != tc.number, got.Pending != tc.pending, tc.token != "" && got.Token != tc.token,
				tc.pending && (got.Token == "a" || got.Token == "b"):
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestLocked: the lock of a command that was killed is waited for, that of one that goes on is not for ever.
func TestLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alice := newCluster(t).first()
		alice.runs(false)
		claim, err := alice.owners().Of(t.Context(), "cp1")
		if err != nil {
			t.Fatal(err)
		}
		held, err := alice.hosts["cp1"].Connect().Begin(t.Context(), host.Run{ID: "other", Holder: "other", Ownership: claim})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := alice.guard(false).Begin(t.Context(), nil); host.KindOf(err) != host.KindLocked {
			t.Errorf("%v, want KindLocked", err)
		}
		if took := time.Since(began); took < 30*time.Second || took > 40*time.Second {
			t.Errorf("it took %v", took)
		}
		time.AfterFunc(5*time.Second, func() { _ = held.End(t.Context(), true) })
		alice.runs(false)
		alice.has(2, false, 2)
	})
}
