// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Wait is what an act waits for that nothing else stands in the way of.
type Wait struct {
	// Blocker is what DisruptionAllowed says.
	*decision.Blocker
	// Until is when it is over by itself, if it is.
	Until time.Time
}

// admit lets the replacement of a Machine begin, or says what it waits for. What is begun is finished: a Machine that was made beside
// the others takes the place of one of them, and one that is missing is made.
func (c *ControlPlane) admit(d Decision, outdated []clusterv1.Machine) Decision {
	if !d.Create && d.Delete == nil || d.Delete != nil && len(c.Own()) > c.Replicas() {
		return d
	}
	digest := c.rollout(outdated)
	wait := spec.DisruptionOf(&c.Object.Spec.Cluster, &c.Object.Spec.Node.Node).Awaits(digest, c.approved(), c.Now)
	if wait == nil {
		return d
	}
	return c.waits(fmt.Sprintf("The replacement of Machines %s. One after the other, these would be replaced:", wait), wait, digest, outdated)
}

// rollout is the digest of what a rollout is for. It stays the same until all Machines are up to date, or something else is declared:
// so it is agreed to once.
func (c *ControlPlane) rollout(outdated []clusterv1.Machine) string {
	s := c.Object.Spec
	machine := s.MachineTemplate.Spec.InfrastructureRef
	what := []string{"rollout", string(c.Object.UID), s.Version, machine.Kind, machine.Name}
	if !s.Rollout.After.IsZero() {
		what = append(what, s.Rollout.After.UTC().Format(time.RFC3339))
	}
	for i := range outdated {
		if ends, soon := c.certificatesEndSoon(&outdated[i]); soon {
			what = append(what, outdated[i].Name, ends.UTC().Format(time.RFC3339)) // whose end comes with time, not by a declaration
		}
	}
	return spec.Digest(what...)
}

// canary lets another host follow, or says what it waits for: that the first one has shown how it goes.
func (c *ControlPlane) canary(d Decision, outdated []clusterv1.Machine) Decision {
	canary := c.Object.Spec.Rollout.Strategy.InPlace.Canary
	first, since := c.first()
	if d.Follow == nil || first == nil || canary == (controlplanev1.Canary{}) {
		return d
	}
	version := c.Object.Spec.Version
	digest := spec.Digest("canary", string(c.Object.UID), version)
	approval := (&spec.Disruption{Approval: canary.Approval}).Awaits(digest, c.approved(), c.Now)
	settled := since.Add(time.Duration(canary.SettleSeconds) * time.Second)
	switch {
	case approval != nil:
		return c.waits(fmt.Sprintf("The Machine %s has %s, and the update of the other hosts %s. These would be updated:", first.Name, version, approval), approval, digest, outdated)
	case canary.SettleSeconds > 0 && settled.After(c.Now):
		message := fmt.Sprintf("The Machine %s has %s since %s; the others are updated from %s", first.Name, version,
			since.UTC().Format(time.RFC3339), settled.UTC().Format(time.RFC3339))
		why := decision.Block(controlplanev1.CanarySettlingReason, "%s", message)
		return Decision{Blocked: why, Wait: &Wait{Blocker: why, Until: settled}}
	}
	return d
}

// first is the Machine that has had the declared version for longest, and since when; nil if none has it.
func (c *ControlPlane) first() (*clusterv1.Machine, time.Time) {
	var first *clusterv1.Machine
	var since time.Time
	for _, m := range c.Own() {
		config := c.ConfigOf(&m)
		if m.Spec.Version != c.Object.Spec.Version || config == nil || config.Status.KubernetesVersion != m.Spec.Version {
			continue
		}
		at := config.Status.Operation(bootstrapv1.ConvergeOperation).EndTime.Time
		if at.IsZero() {
			at = c.Now // it is not known
		}
		if first == nil || at.Before(since) {
			first, since = &m, at
		}
	}
	return first, since
}

// approved is the digest of what somebody has agreed to.
func (c *ControlPlane) approved() string {
	return c.Object.Annotations[controlplanev1.ApprovedDisruptionAnnotation]
}

// waits is the decision to wait.
func (c *ControlPlane) waits(what string, wait *spec.Wait, digest string, machines []clusterv1.Machine) Decision {
	blocked, _, _ := strings.Cut(what, ". ")
	lines := []string{what}
	for i := range machines {
		lines = append(lines, fmt.Sprintf("* %s: %s", machines[i].Name, c.why(machines[i:i+1])))
	}
	w := &Wait{Blocker: &decision.Blocker{Reason: controlplanev1.OutsideMaintenanceWindowReason}, Until: wait.Until}
	if wait.Approval {
		w.Reason, w.Until = controlplanev1.WaitingForApprovalReason, time.Time{}
		lines = append(lines, fmt.Sprintf("To approve this, and nothing else: kubectl annotate kubexmcontrolplane -n %s %s %s=%s --overwrite",
			c.Object.Namespace, c.Object.Name, controlplanev1.ApprovedDisruptionAnnotation, digest))
	}
	w.Message = strings.Join(lines, "\n")
	return Decision{Blocked: &decision.Blocker{Reason: w.Reason, Message: blocked}, Wait: w}
}

// Approved reports whether what somebody has agreed to is done: nothing is out of date any more.
func (c *ControlPlane) Approved() bool {
	replace, follow := c.outdated()
	return c.approved() != "" && len(replace)+len(follow) == 0 && len(c.Own()) == c.Replicas()
}
