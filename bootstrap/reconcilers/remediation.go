// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/remediation"
)

// remediationCase is an unhealthy Machine, and all that is decided on.
type remediationCase struct {
	remediation *bootstrapv1.KubexmRemediation
	// machine is nil if there is none.
	machine *clusterv1.Machine
	// config is the Machine's KubexmConfig, nil if it has none.
	config *bootstrapv1.KubexmConfig
}

// attempts are what is tried, in order, with a host that has a KubexmConfig.
func (p *remediationCase) attempts() []remediation.Attempt {
	spec, status := &p.remediation.Spec, &p.remediation.Status
	converge := remediation.Attempt{
		Stage: remediation.Converge, Timeout: spec.ConvergeTimeout(), Field: "spec.convergeTimeoutSeconds",
		Asked: p.asked(bootstrapv1.ConvergeAnnotation, status.LastConvergeTime).Time, Config: p.config,
	}
	reboot := remediation.Attempt{
		Stage: remediation.Reboot, Timeout: spec.RebootTimeout(), Field: "spec.rebootTimeoutSeconds",
		Asked: p.asked(bootstrapv1.RebootAnnotation, status.LastRebootTime).Time, Config: p.config,
	}
	if !hosthealth.CanReboot(p.config) {
		reboot.Blocker = decision.Block(bootstrapv1.UnreachableReason, "its host does not answer, and has no management controller to reset it by")
	}
	return []remediation.Attempt{converge, reboot}
}

// asked is when the host was asked for what an annotation is for, because of what is wrong with the Machine. That is as the status has it,
// unless who asked was killed before it was written; or it was because of what was wrong with the Machine before, as what comes back soon
// is the same.
func (p *remediationCase) asked(annotation string, noted metav1.Time) metav1.Time {
	since := p.remediation.CreationTimestamp.Add(-p.remediation.Spec.MinHealthyPeriod())
	isOld := noted.IsZero() || noted.Time.Before(hosthealth.LeftAloneUntil(p.config)) // what was asked before may have been asked again
	if asked := p.config.Asked(annotation); isOld && asked.After(noted.Time) && !asked.Before(since) {
		return metav1.NewTime(asked)
	}
	return noted
}

// remediationDecision is what becomes of a Machine.
type remediationDecision struct {
	// ask is what its host is asked for now, nil if for nothing.
	ask *remediation.Attempt
	// converge and reboot are when its host was asked for that, this time included; zero times if it was not, or that is not known.
	converge, reboot metav1.Time
	// handsOn is whether its MachineSet learns now that it replaces the Machine.
	handsOn bool
	// onMachine is whether the Machine says what is done with it.
	onMachine bool
	// after is when to decide again if nothing changes until then, 0 if only a change counts.
	after time.Duration
	// The condition Remediating.
	status metav1.ConditionStatus
	decision.Blocker
}

// nothing is that nothing is done.
func nothing(reason, message string) remediationDecision {
	return remediationDecision{status: metav1.ConditionFalse, Blocker: decision.Blocker{Reason: reason, Message: message}}
}

// decide is pure.
func (p *remediationCase) decide(now time.Time) remediationDecision {
	m := p.machine
	switch {
	case m == nil:
		return nothing(bootstrapv1.MachineNotFoundReason,
			"no Machine owns this, or it is gone: MachineHealthChecks make KubexmRemediations, for Machines that they find unhealthy")
	case util.IsControlPlaneMachine(m):
		return nothing(bootstrapv1.ControlPlaneMachineReason,
			"a KubexmControlPlane remediates its Machines itself, one after the other and only where etcd keeps its quorum, and is not "+
				"asked to by this: take spec.remediation.templateRef off the MachineHealthCheck that selects them, and delete this")
	case !m.DeletionTimestamp.IsZero():
		return p.leaves()
	case annotations.HasPaused(m):
		return nothing(bootstrapv1.RemediationSkippedReason, "the Machine has the annotation "+clusterv1.PausedAnnotation)
	case annotations.HasSkipRemediation(m):
		return nothing(bootstrapv1.RemediationSkippedReason, "the Machine has the annotation "+clusterv1.MachineSkipRemediationAnnotation)
	case !conditions.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition):
		return nothing(bootstrapv1.WaitingForHealthCheckReason,
			"the Machine does not say that it is unhealthy: its HealthCheckSucceeded is not False. If it is, "+
				"delete this to have the MachineHealthCheck create another")
	}
	if why := hosthealth.LeftAlone(p.config); why != nil { // whoever asks for what, it waits
		return remediationDecision{status: metav1.ConditionFalse, onMachine: true, after: unwatchedAgain, Blocker: *why}
	}
	if why := p.notRemediable(); why != nil {
		return p.replace(why.Message)
	}
	attempts := p.attempts()
	d := p.nextStage(remediation.Next(now, attempts...))
	d.converge, d.reboot = metav1.NewTime(attempts[0].Asked), metav1.NewTime(attempts[1].Asked)
	return d
}

// leaves is what becomes of a Machine that is being deleted: its host is reset, or not, as its reset says.
func (p *remediationCase) leaves() remediationDecision {
	message := "the Machine is being deleted"
	if _, skips := p.machine.Annotations[bootstrapv1.SkipHostResetAnnotation]; skips {
		message += ", and the reset of its host is skipped"
	}
	return remediationDecision{status: metav1.ConditionTrue, Blocker: *decision.Block(bootstrapv1.MachineDeletingReason, "%s", message)}
}

// nextStage is to try what may help still, or to replace the Machine.
func (p *remediationCase) nextStage(next remediation.Action) remediationDecision {
	if next.Attempt == nil {
		return p.replace(next.Message)
	}
	d := remediationDecision{
		status: metav1.ConditionTrue, onMachine: true, after: next.After,
		Blocker: decision.Blocker{Reason: next.Attempt.Stage.Reason, Message: next.Message},
	}
	if next.Ask {
		d.ask = next.Attempt
	}
	return d
}

// notRemediable is why nothing is tried with the Machine's host; nil if something is.
func (p *remediationCase) notRemediable() *decision.Blocker {
	m := p.machine
	switch ref := m.Spec.Bootstrap.ConfigRef; {
	case annotations.HasRemediateMachine(m):
		return decision.Block("ReplacementRequested", "the annotation %s asks for that", clusterv1.RemediateMachineAnnotation)
	case !ref.IsDefined():
		return decision.Block(hosthealth.ConfigNotFoundReason, "it has no KubexmConfig, so nothing here knows its host")
	case p.config == nil:
		return decision.Block(hosthealth.ConfigNotFoundReason, "its bootstrap configuration is the %s %s and no KubexmConfig that exists, so nothing here knows its host",
			ref.Kind, ref.Name)
	case p.config.IsClosed():
		return decision.Block(bootstrapv1.AccessClosedReason, "the access to its host is closed (spec.accessPolicy of its KubexmConfig), so nothing "+
			"can be tried there")
	case !m.Status.NodeRef.IsDefined():
		return decision.Block(bootstrapv1.WaitingForNodeReason, "its host has not become a Node, which is tried anyway")
	}
	return nil
}

// replace leaves the Machine to its MachineSet.
func (p *remediationCase) replace(why string) remediationDecision {
	m := p.machine
	owner, machineSet := metav1.GetControllerOf(m), clusterv1.GroupVersion.WithKind("MachineSet").GroupKind()
	if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != machineSet {
		d := nothing(bootstrapv1.NoOwnerToReplaceReason,
			"no MachineSet owns the Machine, so nobody replaces it: repair its host, or delete it and make another ("+why+")")
		d.onMachine = true
		return d
	}
	d := remediationDecision{
		status: metav1.ConditionTrue, onMachine: true,
		Blocker: *decision.Block(bootstrapv1.WaitingForReplacementReason, "the MachineSet %s is to replace it: %s", owner.Name, why),
	}
	said := conditions.Get(m, clusterv1.MachineOwnerRemediatedCondition)
	switch {
	case said == nil || said.Status != metav1.ConditionFalse:
		d.handsOn = true
	case said.Reason != clusterv1.MachineOwnerRemediatedWaitingForRemediationReason:
		d.Message += ". It says: " + said.Message
	}
	return d
}
