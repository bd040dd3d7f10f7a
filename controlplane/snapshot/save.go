// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	// saveCounts is for how long a snapshot counts as one from before the rollout, and one that was asked for is waited for.
	saveCounts = time.Hour
	// saveAgain is when one that has failed is tried again.
	saveAgain = time.Minute
)

// begins reports whether a decision is the first act of the rollout of another version: no Machine has that yet. What only repairs the
// control plane is not kept waiting.
func (c *ControlPlane) begins(d Decision) bool {
	return c.Changing() && c.InProgress() == nil && (d.Follow != nil || c.replaces(d))
}

// replaces reports whether a decision makes a Machine, or makes room for one.
func (c *ControlPlane) replaces(d Decision) bool {
	return d.Create && d.BootstrapMode == spec.BootstrapJoin || d.Delete != nil && len(c.Own()) <= c.Replicas()
}

// Changing reports whether another version is declared than all Machines have, and nothing has begun yet.
func (c *ControlPlane) Changing() bool {
	own, version := c.Own(), c.Object.Spec.Version
	return c.Initialized() && len(own) > 0 && !slices.ContainsFunc(own, func(m clusterv1.Machine) bool { return m.Spec.Version == version })
}

// save has a snapshot of etcd saved before the first Machine is replaced by one with another version, once for each rollout. Hosts that
// follow in place save their own.
//
// It is on the host that goes last: with it, the snapshot goes.
func (c *ControlPlane) save(d Decision) Decision {
	version := c.Object.Spec.Version
	if !c.replaces(d) || c.RolledOut() || c.InProgress() != nil || c.Object.Annotations[controlplanev1.EtcdSavedAnnotation] == version {
		return d
	}
	if first, _ := c.first(); c.Object.Spec.Rollout.Strategy.Type == controlplanev1.InPlaceStrategy && first != nil {
		return d // it has saved it
	}
	last, next := c.saves()
	waits := func(format string, args ...any) Decision {
		why := decision.Block(controlplanev1.EtcdNotSavedReason, format, args...)
		return Decision{Blocked: why, Preflight: why}
	}
	if last != nil {
		asked, result := c.ConfigOf(last).Asked(bootstrapv1.SaveEtcdAnnotation),
			c.ConfigOf(last).Status.Operation(bootstrapv1.SaveEtcdOperation)
		done := result.RequestTime.Time.Equal(asked)
		switch {
		case done && result.Outcome == bootstrapv1.RunSucceeded:
			d.EtcdSaved = true
			return d
		case !done:
			return waits("a snapshot of etcd is being saved on the host of the Machine %s, before the first is replaced for %s", last.Name, version)
		}
		d = waits("no snapshot of etcd could be saved on the host of the Machine %s, and without one no Machine is replaced for %s: %s. "+
			"It is tried again every minute. To replace them without one: kubectl annotate kubexmcontrolplane -n %s %s %s=%s --overwrite",
			last.Name, version, result.Message, c.Object.Namespace, c.Object.Name, controlplanev1.EtcdSavedAnnotation, version)
		if c.Now.Sub(result.EndTime.Time) >= saveAgain {
			d.Save = next
		}
		return d
	}
	if next == nil {
		return waits("a snapshot of etcd must be saved before the first Machine is replaced for %s, and none has a Node and a KubexmConfig", version)
	}
	d = waits("a snapshot of etcd is saved on the host of the Machine %s, before the first is replaced for %s", next.Name, version)
	d.Save = next
	return d
}

// saves are the Machine whose host was asked last for a snapshot that counts, nil if none was, and the one to ask next: the one that
// goes last, or after one that has failed another.
func (c *ControlPlane) saves() (last, next *clusterv1.Machine) {
	var able []clusterv1.Machine
	for _, m := range c.Own() {
		if m.DeletionTimestamp.IsZero() && m.Status.NodeRef.IsDefined() && c.ConfigOf(&m) != nil {
			able = append(able, m)
		}
	}
	asked := func(m *clusterv1.Machine) time.Time { return c.ConfigOf(m).Asked(bootstrapv1.SaveEtcdAnnotation) }
	for _, m := range able {
		if at := asked(&m); c.Now.Sub(at).Abs() <= saveCounts && (last == nil || at.After(asked(last))) {
			last = &m
		}
	}
	for len(able) > 0 {
		leaves := c.nextToLeave(able)
		if next == nil || last == nil || leaves.Name != last.Name {
			next = leaves
		}
		able = slices.DeleteFunc(able, func(m clusterv1.Machine) bool { return m.Name == leaves.Name })
	}
	return last, next
}

// hasSaved reports whether a Machine's host has the snapshot from before a rollout that goes on.
func (c *ControlPlane) hasSaved(m *clusterv1.Machine) bool {
	config := c.ConfigOf(m)
	if c.Object.Annotations[controlplanev1.EtcdSavedAnnotation] != c.Object.Spec.Version || config == nil {
		return false
	}
	last := config.Status.Operation(bootstrapv1.SaveEtcdOperation)
	return last.Outcome == bootstrapv1.RunSucceeded && last.RequestTime.Time.Equal(config.Asked(bootstrapv1.SaveEtcdAnnotation))
}

// RolledOut reports whether all Machines have the declared version: the record of a snapshot from before is none of the next rollout.
func (c *ControlPlane) RolledOut() bool {
	return !slices.ContainsFunc(c.Own(), func(m clusterv1.Machine) bool { return m.Spec.Version != c.Object.Spec.Version })
}
