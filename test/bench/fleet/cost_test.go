// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCallOf(t *testing.T) {
	for _, tt := range []struct{ method, url, want string }{
		{http.MethodGet, "/api", "discover api"},
		{http.MethodGet, "/apis/cluster.x-k8s.io/v1beta2", "discover apis"},
		{http.MethodGet, "/api/v1/nodes", "list nodes"},
		{http.MethodGet, "/api/v1/namespaces/fleet", "get namespaces"},
		{http.MethodGet, "/api/v1/namespaces/fleet/secrets", "list secrets"},
		{http.MethodGet, "/api/v1/namespaces/fleet/secrets/ssh", "get secrets"},
		{http.MethodGet, "/apis/cluster.x-k8s.io/v1beta2/machines?watch=true&timeout=5m", "watch machines"},
		{http.MethodPatch, "/apis/cluster.x-k8s.io/v1beta2/namespaces/fleet/machines/w1/status", "patch machines/status"},
		{http.MethodPost, "/apis/events.k8s.io/v1/namespaces/fleet/events", "create events"},
		{http.MethodPut, "/api/v1/namespaces/fleet/secrets/ssh", "update secrets"},
		{http.MethodDelete, "/api/v1/namespaces/fleet/secrets/ssh", "delete secrets"},
	} {
		u, err := url.Parse(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := callOf(tt.method, u); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.method, tt.url, got, tt.want)
		}
	}
}

func TestSince(t *testing.T) {
	before := Cost{Calls: map[string]int{"get secrets": 2, "list nodes": 1}, Exchanges: 1, Reconciles: 10, Processors: time.Second}
	after := Cost{
		Calls:     map[string]int{"get secrets": 5, "list nodes": 1, "watch nodes": 1, "patch machines/status": 2},
		Exchanges: 4, Reconciles: 30, Processors: 3 * time.Second, Heap: 7,
	}
	want := Cost{
		Calls:     map[string]int{"get secrets": 3, "watch nodes": 1, "patch machines/status": 2},
		Exchanges: 3, Reconciles: 20, Processors: 2 * time.Second, Heap: 7,
	}
	got := after.Since(before)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if reads, writes := got.CallsOf("get", "list"), got.CallsOf("create", "patch"); reads != 3 || writes != 2 {
		t.Errorf("%d reads and %d writes", reads, writes)
	}
}
