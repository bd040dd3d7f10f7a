// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// restriction is what a run has to keep to.
type restriction struct {
	policy *spec.Disruption
	// approved is the digest of what somebody has agreed to.
	approved string
	// installed is whether the host was ever as planned, and known whether it was ever run. What a status does not know, because it was
	// lost when objects were moved, the host does.
	installed, known bool
	// turns is whether the host takes turns with those of its pool, and queued what it waits for then, nil if nothing.
	turns  bool
	queued *hold
}

// hold is why a run is held back: for somebody's approval or a maintenance window, or else for hosts of the same pool.
type hold struct {
	*spec.Wait
	reason, message string
	// remedy is what to do about it, "" if it is over by itself.
	remedy string
}

func (s *scope) restriction() restriction {
	r := restriction{
		policy:    spec.DisruptionOf(&s.clusterConfig.Spec.Cluster, &s.config.Spec.Node),
		approved:  s.config.Annotations[bootstrapv1.ApprovedDisruptionAnnotation],
		installed: s.config.Status.PlanDigest != "", known: !s.config.Status.Operation(bootstrapv1.ConvergeOperation).StartTime.IsZero(),
	}
	if s.machine != nil && isRemediated(s.machine) {
		r.policy = &spec.Disruption{}
	}
	r.turns = s.takesTurns()
	return r
}

// isRemediated reports whether a Machine was found unhealthy, and somebody repairs it or is to replace it. What does that waits for
// nothing.
func isRemediated(m *clusterv1.Machine) bool {
	return conditions.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition) &&
		(conditions.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition) ||
			conditions.IsFalse(m, clusterv1.MachineExternallyRemediatedCondition))
}

// weight is what a look has found that a run would disrupt.
type weight struct {
	input string
	at    time.Time
	acts  []act
	// inUse is whether the host is a Node, and open whether a savepoint is, or the Node is held for one: it is being changed already.
	inUse, open bool
	// follows is whether something differs by which the host keeps up with the others of its cluster.
	follows bool
}

// act is a step that would disrupt: its node, what it would make there, its name and what it says of itself.
type act struct{ Node, Digest, Step, Disrupts string }

func (w *weight) digest() string {
	var what []string
	for _, a := range w.acts {
		what = append(what, a.Node, a.Digest, a.Disrupts)
	}
	return spec.Digest(what...)
}

// followsOthers reports whether a step is one of those by which a host follows the others of its cluster, whatever else waits.
func followsOthers(n plan.Node) bool {
	about := n.Meta()
	return about.Follows == step.FollowsAlways || about.Follows != "" && about.Disrupts == ""
}

// uncordon is the step that differs while a Node is held for what is done to its host.
const uncordon = "node/uncordon"

// weigh says what a run would disrupt, after a look.
func weigh(out *outcome, at time.Time) *weight {
	w := &weight{input: out.input, at: at}
	nodes := map[string]plan.Node{}
	g := out.plan.Graph()
	for i := range g.Len() {
		n := g.Node(i).Value
		nodes[n.ID] = n
	}
	if len(out.report.Hosts) > 0 {
		w.inUse, w.open = out.plan.Savepoint(out.report.Hosts[0].Host, out.report.Hosts[0].Facts)
	}
	for _, c := range out.report.Checks {
		n := nodes[c.Node]
		if about := n.Meta(); n.Host != plan.Controller && about.Disrupts != "" && about.Follows != step.FollowsAlways {
			w.acts = append(w.acts, act{Node: n.ID, Digest: n.Digest, Step: n.Name, Disrupts: about.Disrupts})
		}
		w.follows = w.follows || followsOthers(n) && n.Meta().Follows != step.FollowsOthers
		// Nothing but a drain of ours holds a Node, and one that failed does not any more: a run that is gone has begun with the host.
		w.open = w.open || n.Host == plan.Controller && n.Name == uncordon && len(c.Diff) > 0
	}
	return w
}

// hasBegun reports whether a run has changed the host, or may have: of a step that disrupts, and has failed or was cut, a part may be done.
// What was only waited for on the controller changes nothing, and a drain that has failed, or that nothing followed, was rolled back; one
// that was cut was not.
func hasBegun(p *plan.Plan, report *engine.Report, err error) bool {
	if slices.ContainsFunc(report.Hosts, func(h engine.HostReport) bool { return h.Changed > 0 }) {
		return true
	}
	var ended *engine.Error
	if !errors.As(err, &ended) {
		return false
	}
	disrupts := func(id string) bool {
		i, known := p.Graph().Index(id)
		if !known {
			return false // it is the host, which was not observed yet
		}
		return p.Graph().Node(i).Value.Meta().Disrupts != "" || drains(p, i)
	}
	return ended.Cause != nil && report.Controller.Changed > 0 || slices.ContainsFunc(ended.Interrupted, disrupts) ||
		slices.ContainsFunc(ended.Failures, func(f engine.Failure) bool {
			kind := host.KindOf(f.Err)
			return f.Host != "" && kind != host.KindLocked && kind != host.KindUndecided && disrupts(f.Node)
		})
}

// drains reports whether a node of the plan makes on the controller what a step that disrupts takes: it drains the Node.
func drains(p *plan.Plan, i int) bool {
	n := p.Graph().Node(i)
	return n.Value.Host == plan.Controller && slices.ContainsFunc(p.Graph().Downstream(i), func(d int) bool {
		down := p.Graph().Node(d)
		takes := func(made string) bool { return slices.Contains(down.Takes, made) }
		return down.Value.Meta().Disrupts != "" && slices.ContainsFunc(n.Makes, takes)
	})
}

// fresh is how long a look is counted on. What is agreed to is what would be done now.
const fresh = 30 * time.Second

// admit is pure: what becomes of a run that is due, and what it waits for. every is how often a host that waits is observed.
func (m hostCache) admit(r restriction, input string, now time.Time, every time.Duration) (need, *hold) {
	w := m.weight
	switch {
	case !r.policy.Restricts() && !r.turns, !r.installed && r.known:
		return need{act: converges}, nil
	case m.begun == input:
		return need{act: converges}, nil // what has begun is finished
	case w == nil || w.input != input:
		return need{act: weighs}, nil
	}
	age := now.Sub(w.at)
	var held *hold
	disrupts := len(w.acts) > 0 && (r.installed || w.inUse)
	if disrupts && !w.open {
		held = r.queued
		if wait := r.policy.Awaits(w.digest(), r.approved, now); wait != nil {
			held = &hold{Wait: wait}
		}
	}
	turn := disrupts && r.turns && held == nil
	switch {
	case held == nil && age <= fresh:
		return need{act: converges, turn: turn}, nil
	case held == nil:
		return need{act: weighs, turn: turn}, nil // so that not all look that may not begin then
	case age >= every:
		return need{act: weighs}, held
	}
	after := every - age
	if w.follows {
		due := m.followsAfter(now)
		if due <= 0 {
			return need{act: catchUp}, held
		}
		after = min(after, due)
	}
	switch {
	case held.Wait == nil:
		after = min(after, askAgain) // who gives a turn back tells nobody
	case !held.Until.IsZero():
		after = min(after, held.Until.Sub(now))
	}
	return need{act: rest, after: after}, held
}

// showHold says what waits, and what would be done.
func (r *KubexmConfigReconciler) showHold(s *scope, w *weight, held *hold) {
	if held == nil {
		conditions.Delete(s.config, bootstrapv1.DisruptionAllowedCondition)
		return
	}
	reason, what := held.reason, held.message
	if held.Wait != nil {
		reason, what = bootstrapv1.OutsideMaintenanceWindowReason, held.Wait.String()
		if held.Approval {
			reason = bootstrapv1.WaitingForApprovalReason
		}
	}
	lines := []string{fmt.Sprintf("%s, which is in use, %s. It would be changed so:", s.host.Name, what)}
	for _, a := range w.acts {
		lines = append(lines, fmt.Sprintf("* %s: %s", a.Step, a.Disrupts))
	}
	if held.Wait != nil && held.Approval {
		lines = append(lines, fmt.Sprintf("To approve this, and nothing else: kubectl annotate kubexmconfig -n %s %s %s=%s --overwrite",
			s.config.Namespace, s.config.Name, bootstrapv1.ApprovedDisruptionAnnotation, w.digest()))
	}
	if held.remedy != "" {
		lines = append(lines, held.remedy)
	}
	before, message := conditions.GetReason(s.config, bootstrapv1.DisruptionAllowedCondition), strings.Join(lines, "\n")
	changed := setFalse(s.config, bootstrapv1.DisruptionAllowedCondition, reason, message)
	// In a large pool, whose turn it is changes often, and all that wait would tell of it.
	if before != reason || held.Wait != nil && changed {
		kind := corev1.EventTypeNormal
		if reason == bootstrapv1.PoolStoppedReason {
			kind = corev1.EventTypeWarning
		}
		r.Events.Eventf(s.config, nil, kind, reason, converging, "%s", short(message))
	}
}
