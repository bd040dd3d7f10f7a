// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// A server that takes a connection and does not get round to more is asked again; a step whose own time is over is not.
func TestUnanswered(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ask := func(ctx context.Context, handshake time.Duration) error {
		client := http.Client{Transport: &http.Transport{TLSHandshakeTimeout: handshake}}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+silent.Addr().String(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err == nil {
			_ = answer.Body.Close()
		}
		return fmt.Errorf("Node n1: %w", err)
	}
	if err := ask(t.Context(), 20*time.Millisecond); !unanswered(err) {
		t.Errorf("%v counts as an answer", err)
	}
	over, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := ask(over, time.Minute); unanswered(err) {
		t.Errorf("%v is tried again", err)
	}
}

// hangs is an API server that takes requests about turns and answers none.
type hangs struct{ step.Cluster }

func (hangs) TakeTurn(ctx context.Context, _ string, _, _ step.Turn) (step.Turn, error) {
	<-ctx.Done()
	return step.Turn{}, fmt.Errorf("Lease: %w", ctx.Err())
}

// An API server that hangs, as one does whose etcd was restarted, does not end the turn of a host that has it: it lasts for its term.
func TestTurnOfAServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{o: Options{Clock: clock.RealClock{}}, api: &api{cluster: hangs{}}}
		has := &turn{w: w, group: "control-plane", holder: "n1", recorded: true, renewed: time.Now()}
		if err := has.keep(t.Context(), time.Minute); err != nil {
			t.Errorf("with its whole term before it: %v", err)
		}
		has.renewed = time.Now().Add(-turnTerm)
		if err := has.keep(t.Context(), time.Minute); err == nil {
			t.Error("it goes on when its term is over")
		}
	})
}
