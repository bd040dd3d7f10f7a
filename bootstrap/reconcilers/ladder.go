// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// patient is an unhealthy Machine, and all that is decided on.
type patient struct {
	remediation *bootstrapv1.KubexmRemediation
	// machine is nil if there is none.
	machine *clusterv1.Machine
	// config is the Machine's KubexmConfig, nil if it has none.
	config *bootstrapv1.KubexmConfig
}

// rung is one thing that is tried with a host before its Machine is replaced.
type rung struct {
	// annotation asks for it, and reason is that of the condition meanwhile.
	annotation, reason string
	// timeout is how long it may take to help; with 0 it is not tried. field says where that is declared.
	timeout time.Duration
	field   string
	// asked is when it was asked for, the zero time if it was not.
	asked metav1.Time
	// cannot is why it is not begun, "" if it can be.
	cannot string
	// doing is what the host does, and done what it has done then.
	doing, done string
}

// rungs are what is tried, in order, with a host that has a KubexmConfig.
func (p *patient) rungs() (converge, reboot *rung) {
	spec, status := &p.remediation.Spec, &p.remediation.Status
	converge = &rung{
		annotation: bootstrapv1.ConvergeAnnotation, reason: bootstrapv1.HostConvergesReason,
		timeout: spec.ConvergeTimeout(), field: "spec.convergeTimeoutSeconds",
		asked: p.asked(bootstrapv1.ConvergeAnnotation, status.LastConvergeTime),
		doing: "its host is brought to what it must be once more", done: "bringing its host to what it must be",
	}
	reboot = &rung{
		annotation: bootstrapv1.RebootAnnotation, reason: bootstrapv1.HostRebootsReason,
		timeout: spec.RebootTimeout(), field: "spec.rebootTimeoutSeconds",
		asked: p.asked(bootstrapv1.RebootAnnotation, status.LastRebootTime),
		doing: "its host reboots", done: "rebooting its host",
	}
	if !p.config.Answers() {
		reboot.cannot = "its host does not answer, and cannot be told to reboot"
	}
	return converge, reboot
}

// asked is when the host was asked for what an annotation is for, because of what ails the Machine. That is as the status has it,
// unless who asked was killed before it was written; or it was because of what ailed the Machine before, as what comes back soon is
// the same.
func (p *patient) asked(annotation string, noted metav1.Time) metav1.Time {
	since := p.remediation.CreationTimestamp.Add(-p.remediation.Spec.MinHealthyPeriod())
	if asked := p.config.Asked(annotation); noted.IsZero() && !asked.IsZero() && !asked.Before(since) {
		return metav1.NewTime(asked)
	}
	return noted
}

// remedy is what becomes of a Machine.
type remedy struct {
	// ask is what its host is asked for now, nil if for nothing.
	ask *rung
	// converge and reboot are when its host was asked for that, this time included; zero times if it was not, or that is not known.
	converge, reboot metav1.Time
	// handsOn is whether its MachineSet is told now that it replaces the Machine.
	handsOn bool
	// tells is whether the Machine says what is done with it.
	tells bool
	// after is when to decide again if nothing changes until then, 0 if only a change counts.
	after time.Duration
	// The condition Remediating.
	status          metav1.ConditionStatus
	reason, message string
}

// nothing is that nothing is done.
func nothing(reason, message string) remedy {
	return remedy{status: metav1.ConditionFalse, reason: reason, message: message}
}

// decide is pure.
func (p *patient) decide(now time.Time) remedy {
	m := p.machine
	switch {
	case m == nil:
		return nothing(bootstrapv1.MachineNotFoundReason,
			"no Machine owns this, or it is gone: MachineHealthChecks make KubexmRemediations, for Machines that they find unhealthy")
	case util.IsControlPlaneMachine(m):
		return nothing(bootstrapv1.ControlPlaneMachineReason,
			"a KubexmControlPlane mends its Machines itself, one after the other and only where etcd keeps its quorum, and is not "+
				"asked to by this: take spec.remediation.templateRef off the MachineHealthCheck that selects them, and delete this")
	case !m.DeletionTimestamp.IsZero():
		return p.leaves()
	case annotations.HasPaused(m):
		return nothing(bootstrapv1.RemediationSkippedReason, "the Machine has the annotation "+clusterv1.PausedAnnotation)
	case annotations.HasSkipRemediation(m):
		return nothing(bootstrapv1.RemediationSkippedReason, "the Machine has the annotation "+clusterv1.MachineSkipRemediationAnnotation)
	case !conditions.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition):
		return nothing(bootstrapv1.WaitingForHealthCheckReason,
			"the Machine does not say that it is unhealthy: its HealthCheckSucceeded is not False. If that stays "+
				"so and it is, delete this: its MachineHealthCheck makes another, and says so then")
	}
	if why := p.unmendable(); why != "" {
		return p.replace(why)
	}
	converge, reboot := p.rungs()
	d := p.climb(now, converge, reboot)
	d.converge, d.reboot = converge.asked, reboot.asked
	return d
}

// leaves is what becomes of a Machine that is being deleted: its host is reset, or given up, as its reset says.
func (p *patient) leaves() remedy {
	d := remedy{status: metav1.ConditionTrue, reason: bootstrapv1.MachineDeletingReason, message: "the Machine is being deleted"}
	if _, skips := p.machine.Annotations[bootstrapv1.SkipHostResetAnnotation]; skips {
		d.message += ", and its host given up"
	}
	return d
}

// climb is the first rung that may help still, or that none does.
func (p *patient) climb(now time.Time, rungs ...*rung) remedy {
	var without []string
	for _, r := range rungs {
		if r.timeout == 0 {
			without = append(without, fmt.Sprintf("%s is not wanted (%s)", r.done, r.field))
			continue
		}
		asks := r.asked.IsZero()
		switch {
		case asks && r.cannot != "":
			without = append(without, r.cannot)
			continue
		case asks:
			r.asked = metav1.NewTime(now.UTC().Truncate(time.Second)) // as the annotation has it
		}
		left := r.asked.Add(r.timeout).Sub(now)
		if left <= 0 {
			without = append(without, r.done+" has not helped")
			continue
		}
		d := remedy{
			status: metav1.ConditionTrue, reason: r.reason, tells: true, after: left,
			message: fmt.Sprintf("%s, and has %s from %s for that to help (%s)",
				r.doing, r.timeout, r.asked.UTC().Format(time.RFC3339), r.field),
		}
		if asks {
			d.ask = r
		}
		return d
	}
	return p.replace(strings.Join(without, "; "))
}

// unmendable is why nothing is tried with the Machine's host, "" if something is.
func (p *patient) unmendable() string {
	m := p.machine
	switch ref := m.Spec.Bootstrap.ConfigRef; {
	case annotations.HasRemediateMachine(m):
		return "the annotation " + clusterv1.RemediateMachineAnnotation + " asks for that"
	case !ref.IsDefined():
		return "it has no KubexmConfig, so nothing here knows its host"
	case p.config == nil:
		return fmt.Sprintf("its bootstrap configuration is the %s %s and no KubexmConfig that exists, so nothing here knows its host",
			ref.Kind, ref.Name)
	case !m.Status.NodeRef.IsDefined():
		return "its host has not become a Node, which is tried anyway"
	}
	return ""
}

// replace leaves the Machine to its MachineSet.
func (p *patient) replace(why string) remedy {
	m := p.machine
	owner, machineSet := metav1.GetControllerOf(m), clusterv1.GroupVersion.WithKind("MachineSet").GroupKind()
	if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != machineSet {
		d := nothing(bootstrapv1.NobodyReplacesReason,
			"no MachineSet owns the Machine, so nobody replaces it: mend its host, or delete it and make another ("+why+")")
		d.tells = true
		return d
	}
	d := remedy{
		status: metav1.ConditionTrue, reason: bootstrapv1.WaitingForReplacementReason, tells: true,
		message: fmt.Sprintf("the MachineSet %s is to replace it: %s", owner.Name, why),
	}
	said := conditions.Get(m, clusterv1.MachineOwnerRemediatedCondition)
	switch {
	case said == nil || said.Status != metav1.ConditionFalse:
		d.handsOn = true
	case said.Reason != clusterv1.MachineOwnerRemediatedWaitingForRemediationReason:
		d.message += ". It says: " + said.Message
	}
	return d
}
