// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	// connectionGrace is for how long what was seen of a cluster counts after its API has ceased to answer, as for
	// KubeadmControlPlanes (--remote-conditions-grace-period).
	connectionGrace = 5 * time.Minute
	// problemGrace is how old a problem is that an available control plane is said to have: parts that begin have some.
	problemGrace = 10 * time.Second
)

// silence is for how long a cluster's API has not answered. Of one that never did, it is since it was first asked.
func (r *KubexmControlPlaneReconciler) silence(id types.UID, answers bool, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered == nil {
		r.answered = map[types.UID]time.Time{}
	}
	if last, known := r.answered[id]; known && !answers {
		return max(now.Sub(last), 1)
	}
	r.answered[id] = now
	if answers {
		return 0
	}
	return 1
}

func (r *KubexmControlPlaneReconciler) forget(id types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.answered, id)
	delete(r.asked, id)
}

// isPatient reports whether the cluster's API does not answer, and not for so long that nothing is known any more.
func (s *scope) isPatient() bool {
	return s.connectionDown() != nil && s.silence < connectionGrace
}

// connectionDown is why nothing is known of the cluster; nil if its API answers, or was not asked.
func (s *scope) connectionDown() *decision.Blocker {
	w := s.ControlPlane.Workload
	if w == nil || w.Err == nil {
		return nil
	}
	return decision.Block(controlplanev1.ConnectionDownReason,
		"the API server has not answered for %s: %v", s.silence.Truncate(time.Second), w.Err)
}

// setAvailable says whether the control plane takes requests, as KubeadmControlPlanes do: by the conditions of its Machines.
func (s *scope) setAvailable() {
	set := func(status metav1.ConditionStatus, reason, message string) {
		s.set(controlplanev1.AvailableCondition, status, reason, message)
	}
	if !s.Object.DeletionTimestamp.IsZero() {
		set(metav1.ConditionFalse, clusterv1.DeletingReason, s.deleting.String())
		return
	}
	for _, needed := range []string{controlplanev1.CertificatesAvailableCondition, controlplanev1.InitializedCondition} {
		if now := conditions.Get(s.Object, needed); now == nil || now.Status != metav1.ConditionTrue {
			message := needed
			if now != nil && now.Message != "" {
				message += ": " + now.Message
			}
			set(metav1.ConditionFalse, controlplanev1.NotAvailableReason, message)
			return
		}
	}
	down := s.connectionDown()
	switch {
	case down != nil && !s.isPatient():
		set(metav1.ConditionUnknown, down.Reason, down.Message)
		return
	case (down != nil || s.ControlPlane.Workload == nil) && conditions.Has(s.Object, controlplanev1.AvailableCondition):
		return // nothing new was seen
	}
	parts, quorum := s.parts(), 0
	if parts.members > 0 {
		quorum = parts.members/2 + 1
	}
	switch {
	case parts.well == 0 && parts.silent == 0:
		set(metav1.ConditionFalse, controlplanev1.NotAvailableReason,
			lines("no control plane Machine has all of its components healthy", parts.problems(0, s.Now)))
	case parts.membersWell+parts.membersSilent < quorum: // of those that are silent, the API server tells: it answers from etcd
		set(metav1.ConditionFalse, controlplanev1.NotAvailableReason, lines(
			fmt.Sprintf("%d of %d etcd members are healthy, and quorum is %d", parts.membersWell, parts.members, quorum),
			parts.problems(0, s.Now)))
	case parts.well == 0:
		set(metav1.ConditionUnknown, controlplanev1.HealthUnknownReason,
			lines("of no control plane Machine it is known that all of its components are healthy", parts.problems(0, s.Now)))
	default:
		set(metav1.ConditionTrue, controlplanev1.AvailableReason, strings.Join(parts.problems(problemGrace, s.Now), "\n"))
	}
}

func lines(first string, others []string) string {
	return strings.Join(append([]string{first}, others...), "\n")
}

// parts are what a control plane consists of.
type parts struct {
	// well is how many Machines have all of their components healthy, and silent how many others may have: their hosts do not answer.
	well, silent int
	// members is how many members of etcd are known, membersWell how many of them are healthy, and membersSilent how many others may be.
	members, membersWell, membersSilent int
	ill                                 []problem
}

// problem is what is wrong with a part, and since when.
type problem struct {
	since time.Time
	text  string
}

// problems are those that are so old, at most some.
func (p *parts) problems(age time.Duration, now time.Time) []string {
	const most = 10
	var texts []string
	for _, i := range p.ill {
		if now.Sub(i.since) >= age {
			texts = append(texts, "* "+i.text)
		}
	}
	if len(texts) > most {
		texts = append(texts[:most], fmt.Sprintf("* and %d more", len(texts)-most))
	}
	return texts
}

func (s *scope) parts() *parts {
	p := &parts{}
	kinds := snapshot.ComponentConditions
	if !s.Stacked() {
		kinds = []string{snapshot.APIServerPodHealthy, snapshot.ControllerManagerPodHealthy, snapshot.SchedulerPodHealthy}
		s.countEtcdHosts(p)
	}
	for _, m := range s.Own() {
		if config := s.ConfigOf(&m); config != nil && conditions.Has(config, bootstrapv1.HostResetCondition) {
			continue // it has left
		}
		worst := metav1.ConditionTrue
		for _, kind := range kinds {
			now := conditions.Get(&m, kind)
			if now == nil || now.Status == metav1.ConditionUnknown && now.Reason == controlplanev1.HealthUnknownReason {
				worst = metav1.ConditionFalse
				continue // it is not there yet
			}
			if kind == snapshot.EtcdPodHealthy {
				said := conditions.Get(&m, snapshot.EtcdMemberHealthy)
				if now.Status == metav1.ConditionTrue && said != nil && said.Status == metav1.ConditionFalse {
					now = said
				}
				p.countMember(now.Status)
			}
			if now.Status == metav1.ConditionTrue {
				continue
			}
			p.ill = append(p.ill, problem{now.LastTransitionTime.Time, fmt.Sprintf("%s: %s: %s", m.Name, now.Type, now.Message)})
			if worst != metav1.ConditionFalse {
				worst = now.Status
			}
		}
		switch worst {
		case metav1.ConditionTrue:
			p.well++
		case metav1.ConditionUnknown:
			p.silent++
		}
	}
	return p
}

// countMember counts a member of etcd that is healthy, or is not, or of which that is not known.
func (p *parts) countMember(healthy metav1.ConditionStatus) {
	p.members++
	switch healthy {
	case metav1.ConditionTrue:
		p.membersWell++
	case metav1.ConditionUnknown:
		p.membersSilent++
	}
}

// countEtcdHosts counts etcd's members on hosts of their own. Of an etcd that others run, nothing is known but that API servers work.
func (s *scope) countEtcdHosts(p *parts) {
	for i := range s.Configs {
		config := &s.Configs[i]
		if config.Spec.HostRef.Role != spec.RoleEtcd || !config.DeletionTimestamp.IsZero() {
			continue
		}
		why, healthy := snapshot.ProblemOf(config), metav1.ConditionTrue
		switch {
		case snapshot.IsSilent(config):
			healthy = metav1.ConditionUnknown
		case why != nil:
			healthy = metav1.ConditionFalse
		}
		p.countMember(healthy)
		if why != nil {
			p.ill = append(p.ill, problem{text: config.Spec.HostRef.Name + ": " + why.Message})
		}
	}
}
