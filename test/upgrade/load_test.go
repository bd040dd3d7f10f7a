// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package upgrade

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/workload"
)

// load is what the cluster is used for while it is upgraded.
type load struct {
	writes *workload.Writes
	budget *workload.Budget
	kept   func() (string, error)
}

// use deploys two Pods of which one may be away, on Nodes that both take any Pod, and begins to write.
func (c *cluster) use() *load {
	c.t.Helper()
	ctx := c.t.Context()
	patch := []byte(`{"spec":{"taints":null}}`)
	if _, err := c.client.CoreV1().Nodes().Patch(ctx, c.controlPlane().Name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
	l := &load{budget: &workload.Budget{Client: c.client, Replicas: 2, Least: 1, Image: "registry.k8s.io/pause:3.10.2"}}
	if err := l.budget.Deploy(ctx); err != nil {
		c.t.Fatal(err)
	}
	var err error
	if l.writes, err = workload.Write(ctx, c.client); err != nil {
		c.t.Fatal(err)
	}
	l.kept = l.budget.Watch(ctx)
	return l
}

// end wants nothing that was acknowledged to be lost, and the Pods to have been kept.
func (l *load) end(c *cluster) {
	c.t.Helper()
	seen, err := l.kept()
	if err != nil {
		c.t.Error(err)
	}
	c.t.Log(seen)
	o, err := l.writes.Stop(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Log(o)
	if o.Acknowledged == 0 || len(o.Lost) > 0 {
		c.t.Errorf("writes that were acknowledged and are lost: %v, of %d", o.Lost, o.Acknowledged)
	}
}

// pods are the Pods' names, with the Nodes that they are on.
func (l *load) pods(c *cluster) map[string]string {
	c.t.Helper()
	on, err := l.budget.Pods(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return on
}

// await waits until f returns nil.
func await(t *testing.T, patience time.Duration, f func() error) {
	t.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(patience)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not so after %s: %v", patience, err)
		}
		<-tick.C
	}
}
