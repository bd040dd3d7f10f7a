// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package kube_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// A turn is one host's until it ends it, or somebody has seen that it was not renewed.
func TestTurn(t *testing.T) {
	c, client := api(t)
	take := func(holder string, over step.Turn) step.Turn {
		t.Helper()
		has, err := c.TakeTurn(t.Context(), "test", step.Turn{Holder: holder, Term: time.Minute}, over)
		if err != nil {
			t.Fatal(err)
		}
		return has
	}
	first := take("n1", step.Turn{})
	if first.Holder != "n1" || first.Term != time.Minute {
		t.Fatalf("it is %+v, want that of n1", first)
	}
	if has := take("n2", step.Turn{}); has != first {
		t.Errorf("n2 sees %+v, want %+v", has, first)
	}
	renewed := take("n1", step.Turn{})
	if renewed.Version == first.Version {
		t.Error("a renewal does not show")
	}
	if has := take("n2", first); has != renewed {
		t.Errorf("n2 takes over what was renewed, and sees %+v", has)
	}
	if has := take("n2", renewed); has.Holder != "n2" {
		t.Errorf("n2 cannot take over what was not renewed, and sees %+v", has)
	}
	if has := take("n1", step.Turn{}); has.Holder != "n2" {
		t.Errorf("n1 sees %+v, want that its turn is lost", has)
	}
	for holder, want := range map[string]bool{"n1": false, "n2": true} {
		if has, err := c.HasTurn(t.Context(), "test", holder); err != nil || has != want {
			t.Errorf("%s has the turn: %t, %v; want %t", holder, has, err, want)
		}
	}
	for _, holder := range []string{"n1", "n2", "n2"} { // another's, one's own, and none
		if err := c.EndTurn(t.Context(), "test", holder); err != nil {
			t.Fatal(err)
		}
		_, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "kubexm-test", metav1.GetOptions{})
		if gone := apierrors.IsNotFound(err); gone != (holder == "n2") {
			t.Errorf("after %s has ended its turn: %v", holder, err)
		}
	}
	if has, err := c.HasTurn(t.Context(), "test", "n2"); err != nil || has {
		t.Errorf("n2 has a turn that has ended: %t, %v", has, err)
	}
}

// Of many that ask at once, one has it.
func TestTurnIsOnes(t *testing.T) {
	c, _ := api(t)
	var have atomic.Int32
	var together sync.WaitGroup
	for i := range 20 {
		together.Go(func() {
			want := step.Turn{Holder: fmt.Sprint("n", i), Term: time.Minute}
			has, err := c.TakeTurn(t.Context(), "race", want, step.Turn{})
			if err != nil {
				t.Error(err)
			}
			if has.Holder == want.Holder {
				have.Add(1)
			}
		})
	}
	together.Wait()
	if have.Load() != 1 {
		t.Errorf("%d hosts have the turn", have.Load())
	}
}
