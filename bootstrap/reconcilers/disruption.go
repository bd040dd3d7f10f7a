// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// restriction is what a run has to keep to.
type restriction struct {
	policy *spec.Disruption
	// approved is the digest of what somebody has agreed to.
	approved string
	// installed is whether the host was ever as planned, and known whether it was ever run. What a status does not know, because it was
	// lost when objects were moved, the host does.
	installed, known bool
}

func (s *scope) restriction() restriction {
	r := restriction{
		policy:    spec.DisruptionOf(&s.clusterConfig.Spec.Cluster, &s.config.Spec.Node),
		approved:  s.config.Annotations[bootstrapv1.ApprovedDisruptionAnnotation],
		installed: s.config.Status.PlanDigest != "", known: !s.config.Status.LastRun.StartTime.IsZero(),
	}
	if s.machine != nil && isMended(s.machine) {
		r.policy = &spec.Disruption{}
	}
	return r
}

// isMended reports whether a Machine was found unhealthy, and somebody mends it or is to replace it. What does that waits for nothing.
func isMended(m *clusterv1.Machine) bool {
	return conditions.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition) &&
		(conditions.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition) || conditions.IsFalse(m, clusterv1.MachineExternallyRemediatedCondition))
}

// weight is what a look has found that a run would disrupt.
type weight struct {
	input string
	at    time.Time
	acts  []act
	// inUse is whether the host is a Node, and underWay whether its programs are being replaced already.
	inUse, underWay bool
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

// keepUp are steps by which hosts keep up with the members of their cluster, and by which a full etcd takes writes again: to have
// them wait would harm more than they do.
var keepUp = []string{"haproxy/config", "haproxy/pod", "nginx/config", "nginx/pod", "keepalived/config", "kubevip/pod", "etcd/maintenance"}

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
		w.inUse, w.underWay = out.plan.Changeover(out.report.Hosts[0].Host, out.report.Hosts[0].Facts)
	}
	for _, c := range out.report.Checks {
		n := nodes[c.Node]
		if about := n.Meta(); n.Host != plan.Controller && about.Disrupts != "" && !slices.Contains(keepUp, n.Name) {
			w.acts = append(w.acts, act{Node: n.ID, Digest: n.Digest, Step: n.Name, Disrupts: about.Disrupts})
		}
	}
	return w
}

// fresh is how long a look is counted on. What is agreed to is what would be done now.
const fresh = 30 * time.Second

// admit is pure: what becomes of a run that is due, and what it waits for. every is how often a host that waits is looked at.
func (m memory) admit(r restriction, input string, now time.Time, every time.Duration) (decision, *spec.Wait) {
	w := m.weight
	switch {
	case !r.policy.Restricts(), !r.installed && r.known:
		return decision{act: run}, nil
	case m.begun == input:
		return decision{act: run}, nil // what has begun is finished
	case w == nil || w.input != input:
		return decision{act: weighs}, nil
	}
	age := now.Sub(w.at)
	var wait *spec.Wait
	if len(w.acts) > 0 && !w.underWay && (r.installed || w.inUse) {
		wait = r.policy.Awaits(w.digest(), r.approved, now)
	}
	switch {
	case wait == nil && age <= fresh:
		return decision{act: run}, nil
	case wait == nil || age >= every:
		return decision{act: weighs}, wait
	}
	after := every - age
	if !wait.Until.IsZero() {
		after = min(after, wait.Until.Sub(now))
	}
	return decision{act: rest, after: after}, wait
}

// showWait says what waits, and what would be done.
func (r *Config) showWait(s *scope, w *weight, wait *spec.Wait) {
	if wait == nil {
		conditions.Delete(s.config, bootstrapv1.DisruptionAllowedCondition)
		return
	}
	reason := bootstrapv1.OutsideMaintenanceWindowReason
	if wait.Approval {
		reason = bootstrapv1.WaitingForApprovalReason
	}
	lines := []string{fmt.Sprintf("%s, which is in use, %s. It would be changed so:", s.host.Name, wait)}
	for _, a := range w.acts {
		lines = append(lines, fmt.Sprintf("* %s: %s", a.Step, a.Disrupts))
	}
	if wait.Approval {
		lines = append(lines, fmt.Sprintf("To approve this, and nothing else: kubectl annotate kubexmconfig -n %s %s %s=%s --overwrite",
			s.config.Namespace, s.config.Name, bootstrapv1.ApprovedDisruptionAnnotation, w.digest()))
	}
	before := conditions.GetMessage(s.config, bootstrapv1.DisruptionAllowedCondition)
	setFalse(s.config, bootstrapv1.DisruptionAllowedCondition, reason, strings.Join(lines, "\n"))
	if now := conditions.GetMessage(s.config, bootstrapv1.DisruptionAllowedCondition); now != before {
		r.Events.Eventf(s.config, nil, corev1.EventTypeNormal, reason, converging, "%s", short(now))
	}
}
