// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
)

// ownerOf is the owner that a cluster is to the host n1.
func ownerOf(cluster, digit string) host.Owner {
	return host.Owner{Cluster: cluster, Authority: "sha256:" + strings.Repeat(digit, 64), Role: "worker", Host: "n1"}
}

// owning is an engine that works on m for an owner.
func owning(m *fake.Machine, o host.Ownership) *engine.Engine {
	return engine.New(engine.Options{
		Holder: "test", Dial: func(context.Context, string) (host.Host, error) { return m.Connect(), nil },
		Ownership: func(context.Context, string) (host.Ownership, error) { return o, nil },
	})
}

// TestForeignHost: whatever is to be done with a host that is another cluster's, it ends before anything is decided.
func TestForeignHost(t *testing.T) {
	ctx, m := t.Context(), fake.New("n1")
	first, second := ownerOf("prod", "a"), ownerOf("other", "b")
	mine := owning(m, host.Ownership{Owner: first})
	if r, err := mine.Run(ctx, mustPlan(t, "n1 os/files: /etc/a")); err != nil || r.Total().Changed != 1 {
		t.Fatalf("%+v, %v", r.Total(), err)
	}
	theirs := owning(m, host.Ownership{Owner: second})
	want := mustPlan(t, "n1 os/files: /etc/a /etc/b")
	undo := engine.Undo{Intent: "ResetNode", Hosts: []string{"n1"}}
	for what, act := range map[string]func() (engine.Report, error){
		"run":   func() (engine.Report, error) { return theirs.Run(ctx, want) },
		"check": func() (engine.Report, error) { return theirs.Check(ctx, want) },
		"undo":  func() (engine.Report, error) { return theirs.Undo(ctx, undo) },
		"look": func() (engine.Report, error) {
			_, err := theirs.Look(ctx, []string{"n1"}, func(string) host.Query { return host.Query{} })
			return engine.Report{}, err
		},
	} {
		exchanges := m.Stats().Exchanges
		r, err := act()
		if host.KindOf(err) != host.KindForeign || !strings.Contains(err.Error(), "prod") {
			t.Errorf("%s: %v", what, err)
		}
		var failed *engine.Error
		if !errors.As(err, &failed) || len(failed.Failures) != 1 || !strings.Contains(failed.Failures[0].Remedy, "adopt") {
			t.Errorf("%s: the failures of %v", what, err)
		}
		if total := r.Total(); total.Changed > 0 && what == "run" {
			t.Errorf("%s: %d changes", what, total.Changed)
		}
		if took := m.Stats().Exchanges - exchanges; took != 1 {
			t.Errorf("%s: took %d exchanges", what, took)
		}
	}
	if r, err := mine.Check(ctx, mustPlan(t, "n1 os/files: /etc/a")); err != nil || !r.Converged() {
		t.Errorf("the owner's host was changed: %+v, %v", r.Checks, err)
	}
}

// TestAdoption: a host is taken over by the owner's name alone. What the other cluster's runs have finished does not count.
func TestAdoption(t *testing.T) {
	ctx, m := t.Context(), fake.New("n1")
	first, second := ownerOf("prod", "a"), ownerOf("other", "b")
	if _, err := owning(m, host.Ownership{Owner: first}).Run(ctx, mustPlan(t, "n1 os/files: /etc/a")); err != nil {
		t.Fatal(err)
	}
	want := mustPlan(t, "n1 os/files: /etc/a /etc/b")
	if _, err := owning(m, host.Ownership{Owner: second, Adopt: "pro"}).Run(ctx, want); host.KindOf(err) != host.KindForeign {
		t.Errorf("adopting another: %v", err)
	}
	adopting := owning(m, host.Ownership{Owner: second, Adopt: "prod"})
	if r, err := adopting.Check(ctx, want); err != nil || r.Hosts[0].Adopted != nil || r.Converged() {
		t.Errorf("a check: adopted %v, converged %v, %v", r.Hosts[0].Adopted, r.Converged(), err)
	}
	r, err := adopting.Run(ctx, want)
	if err != nil || r.Hosts[0].Adopted == nil || r.Hosts[0].Adopted.Cluster != "prod" {
		t.Errorf("the run adopted %v, %v", r.Hosts[0].Adopted, err)
	}
	if r, err = adopting.Run(ctx, want); err != nil || r.Hosts[0].Adopted != nil || !r.Converged() || r.Hosts[0].Exchanges != 1 {
		t.Errorf("the run after: adopted %v, %+v, %v", r.Hosts[0].Adopted, r.Total(), err)
	}
	if _, err := owning(m, host.Ownership{Owner: first}).Run(ctx, want); host.KindOf(err) != host.KindForeign {
		t.Errorf("the former owner: %v", err)
	}
	undone, err := adopting.Undo(ctx, engine.Undo{Intent: "ResetNode", Hosts: []string{"n1"}})
	if err != nil || undone.Hosts[0].Restored == 0 {
		t.Errorf("the undo: %+v, %v", undone.Hosts, err)
	}
}

// TestOwnerNotKnown: without knowing for whom, no host is dialled.
func TestOwnerNotKnown(t *testing.T) {
	e := engine.New(engine.Options{
		Dial: func(context.Context, string) (host.Host, error) { t.Error("dialled"); return nil, errors.New("no") },
		Ownership: func(context.Context, string) (host.Ownership, error) {
			return host.Ownership{}, errors.New("no authority")
		},
	})
	if _, err := e.Run(t.Context(), mustPlan(t, "n1 os/files: /etc/a")); err == nil || !strings.Contains(err.Error(), "no authority") {
		t.Errorf("got %v", err)
	}
}
