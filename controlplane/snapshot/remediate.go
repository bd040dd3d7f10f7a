// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/remediation"
)

// defaultMinHealthy is minHealthy if nothing is said.
const defaultMinHealthy = time.Hour

// Record is what is kept of a Machine that is replaced because it is unhealthy: on the control plane until its successor
// exists, and then on that. It is JSON, in annotations that Cluster API's own control plane has, too.
type Record struct {
	// Machine is the name of the Machine that is replaced.
	Machine string `json:"machine"`
	// Timestamp is when that began.
	Timestamp metav1.Time `json:"timestamp"`
	// RetryCount is how many Machines before it were replaced, each soon after it was made.
	RetryCount int32 `json:"retryCount"`
}

// ParseRecord reads a record from an annotation's value, nil if it is none.
func ParseRecord(value string) *Record {
	r := &Record{}
	if err := json.Unmarshal([]byte(value), r); err != nil || r.Machine == "" {
		return nil
	}
	return r
}

// Annotation is the record as the value of an annotation.
func (r *Record) Annotation() (string, error) {
	raw, err := json.Marshal(r)
	return string(raw), err
}

// InProgress is the record of the Machine whose successor does not exist yet, nil if there is none.
func (c *ControlPlane) InProgress() *Record {
	r := ParseRecord(c.Object.Annotations[controlplanev1.RemediationInProgressAnnotation])
	if r == nil {
		return nil
	}
	own := c.Own()
	made := slices.ContainsFunc(own, func(m clusterv1.Machine) bool {
		of := ParseRecord(m.Annotations[controlplanev1.RemediationForAnnotation])
		return of != nil && of.Machine == r.Machine && of.Timestamp.Equal(&r.Timestamp)
	})
	i := slices.IndexFunc(own, func(m clusterv1.Machine) bool { return m.Name == r.Machine })
	switch {
	case made:
		return nil
	case i >= 0 && own[i].DeletionTimestamp.IsZero() && !IsToBeRemediated(&own[i]):
		return nil // it got well before it was deleted
	case i < 0 && len(own) >= c.Replicas():
		return nil // it needs no successor any more
	}
	return r
}

// LastRemediation is the newest of all records, nil if there is none. Of a Machine that is gone, the status has it.
func (c *ControlPlane) LastRemediation() *Record {
	last := c.InProgress()
	if was := c.Object.Status.LastRemediation; was.Machine != "" && (last == nil || was.Time.After(last.Timestamp.Time)) {
		last = &Record{Machine: was.Machine, Timestamp: was.Time, RetryCount: ptr.Deref(was.RetryCount, 0)}
	}
	for _, m := range c.Own() {
		if r := ParseRecord(m.Annotations[controlplanev1.RemediationForAnnotation]); r != nil &&
			(last == nil || r.Timestamp.After(last.Timestamp.Time)) {
			last = r
		}
	}
	return last
}

// ForNew is the record that a Machine gets which is made now: of the unhealthy one that it succeeds, or of one that was replaced a short
// while ago. A rollout, too, replaces successors, and for all that is known, what is unhealthy in their place is so for the same reason.
func (c *ControlPlane) ForNew() *Record {
	if begun := c.InProgress(); begun != nil {
		return begun
	}
	if last := c.LastRemediation(); last != nil && c.Now.Sub(last.Timestamp.Time) < c.minHealthy() {
		return last
	}
	return nil
}

// minHealthy is after what time an unhealthy Machine has nothing to do any more with the one that it replaced.
func (c *ControlPlane) minHealthy() time.Duration {
	return seconds(c.Object.Spec.Remediation.MinHealthyPeriodSeconds, defaultMinHealthy)
}

// IsToBeRemediated reports whether a MachineHealthCheck has found a Machine unhealthy, and leaves it to its owner.
func IsToBeRemediated(m *clusterv1.Machine) bool {
	return conditions.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition) &&
		conditions.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition)
}

// Remediation is what becomes of the unhealthy Machine whose turn it is. The zero value is that all are well.
type Remediation struct {
	Machine *clusterv1.Machine
	// Reboot says to reboot its host, and Stage what is said of that then. If it is false, the Machine is replaced.
	Reboot bool
	Stage  remediation.Action
	// Record is kept when it is replaced.
	Record Record
	// Ask are Machines on whose hosts etcd is to be asked how it is, before this one is replaced.
	Ask []clusterv1.Machine
	// Blocked is why neither is done now; nil if one is.
	Blocked *decision.Blocker
}

// Remediate decides on it. A Machine is replaced where it did not help to converge its host again (see ToConverge) and to reboot it,
// where the control plane and etcd live on without it, and not more often than spec.remediation allows.
func (c *ControlPlane) Remediate() Remediation {
	m := c.mostBroken()
	if m == nil || !m.DeletionTimestamp.IsZero() {
		return Remediation{}
	}
	if begun := c.InProgress(); begun != nil {
		own := c.Own()
		i := slices.IndexFunc(own, func(m clusterv1.Machine) bool { return m.Name == begun.Machine })
		switch {
		case i < 0 || !own[i].DeletionTimestamp.IsZero():
			return Remediation{Machine: m}.deferred(fmt.Sprintf("the Machine %s is being replaced", begun.Machine))
		case c.Maintained(&own[i]) == nil: // the process ended before it was deleted
			if r := c.resume(Remediation{Machine: &own[i], Record: *begun}); m.Name == begun.Machine || !r.isImpossible() {
				return r
			}
		}
	}
	return c.remediate(Remediation{Machine: m})
}

// resume goes on with a replacement that was begun. All of it was decided then, but others may have failed since.
func (c *ControlPlane) resume(r Remediation) Remediation {
	if !c.Begun() {
		return r
	}
	return c.safely(r)
}

// remediate decides on a Machine that no replacement was begun of.
func (c *ControlPlane) remediate(r Remediation) Remediation {
	next := c.nextStage(r.Machine)
	if next.Attempt != nil && next.Attempt.Stage == remediation.Converge {
		return r.deferred(next.Message)
	}
	if why := c.awaitsTopology(); why != nil {
		return r.deferred(why.Message)
	}
	switch {
	case next.Attempt != nil && next.Ask:
		r.Reboot, r.Stage = true, next
		return r
	case next.Attempt != nil:
		return r.deferred(next.Message)
	}
	r = c.retry(r)
	if r.Blocked != nil || !c.Begun() {
		return r
	}
	return c.safely(r)
}

// Maintained is that nobody is to touch the host of an unhealthy Machine now, which is left alone until that ends; nil if somebody may.
func (c *ControlPlane) Maintained(m *clusterv1.Machine) *decision.Blocker {
	why := hosthealth.LeftAlone(c.ConfigOf(m))
	if why == nil || !IsToBeRemediated(m) || !m.DeletionTimestamp.IsZero() {
		return nil
	}
	return decision.Block(controlplanev1.RemediationDeferredReason, "%s", why.Message)
}

// ToConverge are the unhealthy Machines whose hosts are to be brought to what they must be once more: what has stopped is started
// by that, and what was changed is put right. It is asked for once for each trouble; one that comes back soon is the same.
func (c *ControlPlane) ToConverge() []clusterv1.Machine {
	return slices.DeleteFunc(c.Own(), func(m clusterv1.Machine) bool {
		next := c.nextStage(&m)
		return !next.Ask || next.Attempt.Stage != remediation.Converge
	})
}

// isForThis reports whether what was asked for then was asked for because of what ails the Machine now. A trouble that comes back
// soon is the same.
func (c *ControlPlane) isForThis(m *clusterv1.Machine, asked time.Time) bool {
	since := conditions.GetLastTransitionTime(m, clusterv1.MachineHealthCheckSucceededCondition)
	return !asked.IsZero() && (since == nil || !asked.Before(since.Time) || c.Now.Sub(asked) < c.minHealthy())
}

// isRemediable reports whether a Machine is unhealthy and has a host that was a part of the control plane, so that converging or
// rebooting it may help: others are on their way there anyway. One that somebody wants replaced is not.
func (c *ControlPlane) isRemediable(m *clusterv1.Machine) bool {
	_, asked := m.Annotations[clusterv1.RemediateMachineAnnotation]
	return IsToBeRemediated(m) && m.DeletionTimestamp.IsZero() && !asked && m.Status.NodeRef.IsDefined() && c.ConfigOf(m) != nil &&
		c.Maintained(m) == nil
}

func (r Remediation) deferred(why string) Remediation {
	r.Blocked = decision.Block(controlplanev1.RemediationDeferredReason, "%s", why)
	return r
}

func (r Remediation) impossible(why string) Remediation {
	r.Blocked = decision.Block(controlplanev1.CannotBeRemediatedReason, "%s", why)
	return r
}

// isImpossible reports whether there is no use in waiting: another unhealthy Machine may have to go before this one.
func (r Remediation) isImpossible() bool {
	return r.Blocked != nil && r.Blocked.Reason == controlplanev1.CannotBeRemediatedReason
}

// retry sees to it that a Machine that replaced an unhealthy one is not replaced for ever for the same reason.
func (c *ControlPlane) retry(r Remediation) Remediation {
	r.Record = Record{Machine: r.Machine.Name, Timestamp: metav1.NewTime(c.Now.UTC().Truncate(time.Second))}
	last := ParseRecord(r.Machine.Annotations[controlplanev1.RemediationForAnnotation])
	limits := c.Object.Spec.Remediation
	if last == nil || c.Now.Sub(last.Timestamp.Time) >= c.minHealthy() {
		return r
	}
	if period := seconds(limits.RetryPeriodSeconds, 0); c.Now.Sub(last.Timestamp.Time) < period {
		return r.deferred(fmt.Sprintf("it replaced the unhealthy Machine %s less than %s ago (spec.remediation.retryPeriodSeconds)", last.Machine, period))
	}
	if most := limits.MaxRetry; most != nil && last.RetryCount >= *most {
		return r.impossible(fmt.Sprintf("it replaced the unhealthy Machine %s, and no more than %d retries are allowed (spec.remediation.maxRetry)", last.Machine, *most))
	}
	r.Record.RetryCount = last.RetryCount + 1
	return r
}

// safely sees to it that the cluster lives on without the Machine.
func (c *ControlPlane) safely(r Remediation) Remediation {
	own := c.Own()
	if len(own) == 1 {
		return r.impossible("it is the only control plane Machine, and without it there is no cluster")
	}
	for i := range own {
		switch m := &own[i]; {
		case !m.DeletionTimestamp.IsZero():
			return r.deferred(beingDeleted(m).Message)
		case !m.Status.NodeRef.IsDefined() && !conditions.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition):
			return r.deferred(c.HasNoNode(m).Message)
		}
	}
	if why := cmp.Or(c.UnknownMember(), c.unseen()); why != nil {
		return r.deferred(why.Message)
	}
	others := slices.DeleteFunc(own, func(m clusterv1.Machine) bool { return m.Name == r.Machine.Name })
	if why := c.wouldLoseQuorum(others, 0); why != nil {
		return r.impossible("without it " + why.Message)
	}
	if !c.Stacked() {
		return r
	}
	if well, ask, why := c.confirmedHealthy(others); well < len(others)/2+1 {
		r.Ask = ask
		return r.deferred(why.Message)
	}
	return r
}

// wouldLoseQuorum is why a control plane of these Machines, and so many new ones that may fail, would not work; nil if it would: one of
// them must be healthy, and where they have etcd's members, a majority of these.
func (c *ControlPlane) wouldLoseQuorum(machines []clusterv1.Machine, joining int) *decision.Blocker {
	var ill []*decision.Blocker
	for i := range machines {
		if why := c.unhealthy(&machines[i]); why != nil {
			ill = append(ill, why)
		}
	}
	healthy, all := len(machines)-len(ill), len(machines)+joining
	switch {
	case healthy == 0:
		return decision.Block(QuorumAtRiskReason, "no control plane Machine would be healthy: %s", ill[0])
	case !c.Stacked(), len(machines) == 1 && len(ill) == 0: // from one member to three there is no other way than by two
		return nil
	case healthy < all/2+1:
		return decision.Block(QuorumAtRiskReason, "%d of %d members of etcd would be healthy: %s", healthy, all, ill[0])
	}
	return nil
}

// mostBroken is the Machine that is replaced first: one that somebody wants replaced, then one without a Node, then one whose
// components are not well, the oldest first. None whose host is in maintenance is.
func (c *ControlPlane) mostBroken() *clusterv1.Machine {
	broken := slices.DeleteFunc(c.Own(), func(m clusterv1.Machine) bool { return !IsToBeRemediated(&m) || c.Maintained(&m) != nil })
	if len(broken) == 0 {
		return nil
	}
	rank := func(m clusterv1.Machine) int {
		_, asked := m.Annotations[clusterv1.RemediateMachineAnnotation]
		switch {
		case asked:
			return 0
		case !m.Status.NodeRef.IsDefined():
			return 1
		case c.isUnhealthy(&m):
			return 2
		}
		return 3
	}
	slices.SortStableFunc(broken, func(a, b clusterv1.Machine) int { return cmp.Compare(rank(a), rank(b)) })
	return &broken[0]
}

func seconds(n *int32, otherwise time.Duration) time.Duration {
	if n == nil {
		return otherwise
	}
	return time.Duration(ptr.Deref(n, 0)) * time.Second
}
