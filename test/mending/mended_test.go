// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package mending

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
)

// mending is how long one fault may last.
const mending = 8 * time.Minute

// suffers does one fault after the other, and wants each to be mended.
func (c *cluster) suffers(faults ...fault) {
	c.t.Helper()
	for _, f := range faults {
		if !c.t.Run(f.name, func(t *testing.T) { c.in(t).suffer(f) }) {
			c.t.FailNow() // what comes next would not tell anything
		}
	}
}

// in is the cluster for a part of the test.
func (c *cluster) in(t *testing.T) *cluster {
	part := *c
	part.t = t
	return &part
}

func (c *cluster) suffer(f fault) {
	ctx, h := c.t.Context(), c.pool.Hosts[f.host]
	before := c.machines()
	known := c.events(nil)
	began := time.Now()
	if f.script == "" {
		must(c.t, h.Kill(ctx))
	} else {
		_, err := h.Exec(ctx, "sh", "-euc", f.script)
		must(c.t, err)
	}
	defer func() { c.t.Logf("events:\n%s", strings.Join(c.told(known, began), "\n")) }()
	c.await(mending, func(context.Context) error {
		for _, reason := range f.by {
			if !slices.ContainsFunc(c.events(known), func(e eventsv1.Event) bool { return e.Reason == reason }) {
				return fmt.Errorf("there is no event %s", reason)
			}
		}
		return c.unhealthy()
	})
	if f.mended != "" {
		if out, err := h.Exec(ctx, "sh", "-euc", f.mended); err != nil {
			c.t.Errorf("the host is not as it was: %v\n%s", err, out)
		}
	}
	c.t.Logf("healthy after %.1f s", time.Since(began).Seconds())
	for _, e := range c.events(known) {
		if slices.Contains(f.never, e.Reason) {
			c.t.Errorf("%s: %s", e.Reason, e.Note)
		}
	}
	kept := 0
	for name, uid := range c.machines() {
		if before[name] == uid {
			kept++
		}
	}
	want := c.size.hosts()
	if slices.Contains(f.by, replaces) || slices.Contains(f.by, leaves) {
		want--
	}
	if kept != want {
		c.t.Errorf("%d Machines are still those from before, want %d", kept, want)
	}
}

func (c *cluster) awaitHealthy(within time.Duration) {
	c.t.Helper()
	c.await(within, func(context.Context) error { return c.unhealthy() })
}

// await waits until nothing is wrong any more.
func (c *cluster) await(within time.Duration, wrong func(context.Context) error) {
	c.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(c.t.Context(), 500*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		last = wrong(ctx)
		return last == nil, nil
	})
	if err != nil {
		c.t.Fatalf("after %s: %v", within, last)
	}
}

// unhealthy is what is wrong with the cluster, nil if it is healthy.
func (c *cluster) unhealthy() error {
	controlPlane := &controlplanev1.KubexmControlPlane{}
	c.get(clusterName, controlPlane)
	for _, kind := range []string{
		controlplanev1.AvailableCondition, controlplanev1.ControlPlaneComponentsHealthyCondition, controlplanev1.EtcdClusterHealthyCondition,
		controlplanev1.MachinesReadyCondition,
	} {
		if now := conditions.Get(controlPlane, kind); now == nil || now.Status != "True" {
			return fmt.Errorf("KubexmControlPlane: %v", now)
		}
	}
	all := &clusterv1.MachineList{}
	must(c.t, c.api.List(c.t.Context(), all, client.InNamespace(namespace)))
	if len(all.Items) != c.size.hosts() {
		return fmt.Errorf("there are %d Machines", len(all.Items))
	}
	for i := range all.Items {
		m := &all.Items[i]
		for _, kind := range []string{clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineNodeReadyCondition} {
			if now := conditions.Get(m, kind); now == nil || now.Status != "True" {
				return fmt.Errorf("the Machine %s: %s: %v", m.Name, kind, now)
			}
		}
		config := &bootstrapv1.KubexmConfig{}
		c.get(m.Spec.Bootstrap.ConfigRef.Name, config)
		if now := conditions.Get(config, bootstrapv1.ReadyCondition); now == nil || now.Status != "True" {
			return fmt.Errorf("the KubexmConfig %s: %v", config.Name, now)
		}
	}
	return nil
}

// machines are the Machines' UIDs, by name.
func (c *cluster) machines() map[string]types.UID {
	all := &clusterv1.MachineList{}
	must(c.t, c.api.List(c.t.Context(), all, client.InNamespace(namespace)))
	uids := map[string]types.UID{}
	for _, m := range all.Items {
		uids[m.Name] = m.UID
	}
	return uids
}

// events are those that were told since others were known, in order. One that was told again counts.
func (c *cluster) events(known []eventsv1.Event) []eventsv1.Event {
	all := &eventsv1.EventList{}
	must(c.t, c.api.List(context.WithoutCancel(c.t.Context()), all, client.InNamespace(namespace)))
	is := func(a, b eventsv1.Event) bool { return a.UID == b.UID && at(a).Equal(at(b)) }
	found := slices.DeleteFunc(all.Items, func(e eventsv1.Event) bool {
		return slices.ContainsFunc(known, func(k eventsv1.Event) bool { return is(e, k) })
	})
	slices.SortFunc(found, func(a, b eventsv1.Event) int { return at(a).Compare(at(b)) })
	return found
}

// at is when an event was told last.
func at(e eventsv1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case e.EventTime.IsZero(): // it was told by the API of old
		return e.DeprecatedLastTimestamp.Time
	}
	return e.EventTime.Time
}

// told are events as a person would read them.
func (c *cluster) told(known []eventsv1.Event, began time.Time) []string {
	var lines []string
	for _, e := range c.events(known) {
		kind := ""
		if e.Type == corev1.EventTypeWarning {
			kind = "! "
		}
		note, _, more := strings.Cut(e.Note, "\n")
		if more {
			note += " …"
		}
		lines = append(lines, fmt.Sprintf("%6.1f s  %s/%s  %s%s: %s", at(e).Sub(began).Seconds(), e.Regarding.Kind, e.Regarding.Name, kind, e.Reason, note))
	}
	return lines
}
