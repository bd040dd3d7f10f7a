// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package remediation

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/fleet"
)

// repairing is how long one fault may last.
const repairing = 8 * time.Minute

// cluster is one whose unhealthy Machines are found, with a host to spare.
type cluster struct{ *fleet.Fleet }

// watch has Machines with a label found unhealthy whose Nodes have not been ready for 20 s, and repaired as a template says, if any.
func (c cluster) watch(name, label string, template *bootstrapv1.KubexmRemediationTemplate) {
	c.T.Helper()
	check := &clusterv1.MachineHealthCheck{ObjectMeta: fleet.Of(name), Spec: clusterv1.MachineHealthCheckSpec{
		ClusterName: fleet.Name, Selector: metav1.LabelSelector{MatchLabels: map[string]string{label: ""}},
		Checks: clusterv1.MachineHealthCheckChecks{
			NodeStartupTimeoutSeconds: ptr.To[int32](1800),
			UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: ptr.To[int32](20)},
				{Type: corev1.NodeReady, Status: corev1.ConditionFalse, TimeoutSeconds: ptr.To[int32](20)},
			},
		},
	}}
	if template != nil {
		check.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{
			APIVersion: bootstrapv1.GroupVersion.String(), Kind: "KubexmRemediationTemplate", Name: template.Name,
		}
	}
	c.Create(check)
}

// suffers does one fault after the other, and wants each to be repaired.
func (c cluster) suffers(faults ...fault) {
	c.T.Helper()
	c.Await(time.Minute, func(context.Context) error { return c.unhealthy() }) // until all have been checked
	for _, f := range faults {
		if !c.T.Run(f.name, func(t *testing.T) { cluster{c.In(t)}.suffer(f) }) {
			c.T.FailNow() // what comes next would not tell anything
		}
	}
}

func (c cluster) suffer(f fault) {
	ctx, h := c.T.Context(), c.Pool.Hosts[f.host]
	before := c.uids()
	known := c.Events(nil)
	began := time.Now()
	var err error
	if f.script == "" {
		err = h.Kill(ctx)
	} else {
		_, err = h.Exec(ctx, "sh", "-euc", f.script)
	}
	if err != nil {
		c.T.Fatal(err)
	}
	defer func() { c.T.Logf("events:\n%s", c.Told(known, began)) }()
	c.Await(repairing, func(context.Context) error {
		for _, reason := range f.by {
			if !slices.ContainsFunc(c.Events(known), func(e eventsv1.Event) bool { return e.Reason == reason }) {
				return fmt.Errorf("there is no event %s", reason)
			}
		}
		return c.unhealthy()
	})
	if f.repaired != "" {
		if out, err := h.Exec(ctx, "sh", "-euc", f.repaired); err != nil {
			c.T.Errorf("the host is not as it was: %v\n%s", err, out)
		}
	}
	if slices.Contains(f.by, logsKept) {
		c.wantLogs(h.Name)
	}
	c.T.Logf("healthy after %.1f s", time.Since(began).Seconds())
	for _, e := range c.Events(known) {
		if slices.Contains(f.never, e.Reason) {
			c.T.Errorf("%s: %s", e.Reason, e.Note)
		}
	}
	kept := 0
	for name, uid := range c.uids() {
		if before[name] == uid {
			kept++
		}
	}
	want := c.Options.ControlPlanes + c.Options.Workers
	if slices.Contains(f.by, replaces) || slices.Contains(f.by, leaves) {
		want--
	}
	if kept != want {
		c.T.Errorf("%d Machines are still those from before, want %d", kept, want)
	}
}

// unhealthy is what is wrong with the cluster, nil if it is healthy and was found to be. Machines whose MachineHealthCheck has a
// template do not say that they are healthy, unless they were unhealthy before.
func (c cluster) unhealthy() error {
	checks := &clusterv1.MachineHealthCheckList{}
	c.List(checks)
	for _, check := range checks.Items {
		if want, found := ptr.Deref(check.Status.ExpectedMachines, 0), ptr.Deref(check.Status.CurrentHealthy, 0); want == 0 ||
			found != want {
			return fmt.Errorf("the MachineHealthCheck %s has found %d of %d Machines healthy", check.Name, found, want)
		}
	}
	for _, m := range c.Machines() {
		if now := conditions.Get(&m, clusterv1.MachineHealthCheckSucceededCondition); now != nil && now.Status != "True" {
			return fmt.Errorf("the Machine %s: %v", m.Name, now)
		}
	}
	return c.Unhealthy()
}

// uids are the Machines' UIDs, by name.
func (c cluster) uids() map[string]types.UID {
	uids := map[string]types.UID{}
	for _, m := range c.Machines() {
		uids[m.Name] = m.UID
	}
	return uids
}
