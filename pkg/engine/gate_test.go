// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
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
