// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

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
	digest, approved := c.rollout(outdated), c.approved()
	if c.covers(approved, outdated) {
		approved = digest
	}
	wait := spec.DisruptionOf(&c.Object.Spec.Cluster, &c.Object.Spec.Node.Node).Awaits(digest, approved, c.Now)
	if wait == nil {
		return d
	}
	return c.waits(fmt.Sprintf("The replacement of Machines %s. One after the other, these would be replaced:", wait), wait, digest, outdated)
}

// rollout is the digest of what a rollout is for: of what is declared, which stays the same until all Machines are up to date or something
// else is declared; and, after points, of each Machine that is replaced for no other reason than that its certificates end. Those become
// fewer as they are replaced, and what was agreed to covers what is left of it (see covers): so it is agreed to once.
func (c *ControlPlane) rollout(outdated []clusterv1.Machine) string {
	what := c.declared("certificates")
	if c.bringsDeclared(outdated...) {
		what = c.declared("rollout")
	}
	return strings.Join(append([]string{what}, c.ending(outdated)...), ".")
}

// covers reports whether what somebody has agreed to is this rollout, or one that it is the rest of. Certificates that come near their end
// meanwhile do not hold up what is declared.
func (c *ControlPlane) covers(approved string, outdated []clusterv1.Machine) bool {
	parts := strings.Split(approved, ".")
	if c.bringsDeclared(outdated...) {
		return parts[0] == c.declared("rollout")
	}
	return (parts[0] == c.declared("rollout") || parts[0] == c.declared("certificates")) &&
		!slices.ContainsFunc(c.ending(outdated), func(one string) bool { return !slices.Contains(parts[1:], one) })
}

// declared is the digest of what is declared, for one of the reasons to replace Machines: who has agreed to Machines whose certificates end
// has not agreed to what comes by itself, such as spec.rollout.after.
func (c *ControlPlane) declared(reason string) string {
	s := c.Object.Spec
	machine := s.MachineTemplate.Spec.InfrastructureRef
	what := []string{reason, string(c.Object.UID), s.Version, machine.Kind, machine.Name}
	if !s.Rollout.After.IsZero() {
		what = append(what, s.Rollout.After.UTC().Format(time.RFC3339))
	}
	return spec.Digest(what...)
}

// bringsDeclared reports whether one of these Machines is replaced because something else is declared than it is.
func (c *ControlPlane) bringsDeclared(outdated ...clusterv1.Machine) bool {
	return slices.ContainsFunc(outdated, func(m clusterv1.Machine) bool {
		return slices.ContainsFunc(c.Changes(&m), func(change Change) bool { return !change.InPlace && !change.ByTime })
	})
}

// ending are the digests of those of these Machines that are replaced for no other reason than that their certificates end.
func (c *ControlPlane) ending(outdated []clusterv1.Machine) []string {
	var all []string
	for i := range outdated {
		m := &outdated[i]
		if ends, soon := c.certificatesEndSoon(m); soon && !c.bringsDeclared(*m) {
			all = append(all, spec.Digest(m.Name, ends.UTC().Format(time.RFC3339)))
		}
	}
	return all
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

// first is the Machine that has had the declared version for longest, and since when; nil if none has it. It is up to date since its host
// got the version, or since it was made with it: another run on the host does not change that.
func (c *ControlPlane) first() (*clusterv1.Machine, time.Time) {
	var first *clusterv1.Machine
	var since time.Time
	for _, m := range c.Own() {
		config := c.ConfigOf(&m)
		if m.Spec.Version != c.Object.Spec.Version || config == nil || config.Status.KubernetesVersion != m.Spec.Version {
			continue
		}
		at := c.Now // as long as it was not seen to be
		if now := conditions.Get(&m, clusterv1.MachineUpToDateCondition); now != nil && now.Status == metav1.ConditionTrue {
			at = now.LastTransitionTime.Time
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
