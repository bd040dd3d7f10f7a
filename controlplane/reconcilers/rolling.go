// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
)

// setScaling says how many Machines are on their way in or out, which hosts that are no Nodes are to leave, and what that waits for.
func (s *scope) setScaling(own []clusterv1.Machine) {
	want, have := s.Replicas(), len(own)
	var coming []string
	if have < want {
		coming = append(coming, fmt.Sprintf("%d of %d Machines exist", have, want))
	}
	waiting := s.waiting(own)
	if have < want || len(waiting) > 0 {
		coming = append(coming, cmp.Or(strings.Join(waiting, "; "), s.blocked.String()))
		s.set(controlplanev1.ScalingUpCondition, metav1.ConditionTrue, clusterv1.ScalingUpReason, joined(coming, "; "))
	} else {
		s.set(controlplanev1.ScalingUpCondition, metav1.ConditionFalse, clusterv1.NotScalingUpReason, "")
	}
	var going []string
	if have > want {
		going = append(going, fmt.Sprintf("%d Machines exist, %d are wanted", have, want), s.blocked.String())
	}
	for _, why := range s.staying {
		going = append(going, why.Message)
	}
	if len(going) > 0 {
		s.set(controlplanev1.ScalingDownCondition, metav1.ConditionTrue, clusterv1.ScalingDownReason, joined(going, "; "))
	} else {
		s.set(controlplanev1.ScalingDownCondition, metav1.ConditionFalse, clusterv1.NotScalingDownReason, "")
	}
}

// waiting is what new Machines wait for, such as a free host.
func (s *scope) waiting(own []clusterv1.Machine) []string {
	if !s.Object.DeletionTimestamp.IsZero() {
		return nil
	}
	var all []string
	for i := range own {
		if m := &own[i]; m.DeletionTimestamp.IsZero() && !m.Status.NodeRef.IsDefined() {
			all = append(all, s.HasNoNode(m).Message)
		}
	}
	return all
}

// setRollingOut says which changes are on their way to Machines, and what they wait for.
func (s *scope) setRollingOut(own []clusterv1.Machine) {
	count := 0
	var changes []snapshot.Change
	for i := range own {
		differs, _ := s.differences(&own[i])
		if len(differs) > 0 {
			count++
		}
		changes = append(changes, differs...)
	}
	if count == 0 {
		s.set(controlplanev1.RollingOutCondition, metav1.ConditionFalse, clusterv1.NotRollingOutReason, "")
		return
	}
	slices.SortFunc(changes, func(a, b snapshot.Change) int {
		return cmp.Or(cmp.Compare(precedence(a), precedence(b)), cmp.Compare(a.Text, b.Text))
	})
	changes = slices.CompactFunc(changes, func(a, b snapshot.Change) bool { return a.Text == b.Text })
	lines := []string{fmt.Sprintf("Rolling out %d not up-to-date replicas", count)}
	for _, change := range changes {
		lines = append(lines, "* "+change.Text)
	}
	if s.blocked != nil {
		lines = append(lines, "* Waiting: "+s.blocked.Message)
	}
	s.set(controlplanev1.RollingOutCondition, metav1.ConditionTrue, clusterv1.RollingOutReason, strings.Join(lines, "\n"))
}

// setDisruptionAllowed says what waits that would replace Machines, or have hosts follow.
func (s *scope) setDisruptionAllowed() {
	if s.wait == nil {
		conditions.Delete(s.Object, controlplanev1.DisruptionAllowedCondition)
		return
	}
	s.set(controlplanev1.DisruptionAllowedCondition, metav1.ConditionFalse, s.wait.Reason, s.wait.Message)
}

// setPreflight says what must be repaired before another version is rolled out.
func (s *scope) setPreflight() {
	if s.preflight == nil {
		conditions.Delete(s.Object, controlplanev1.PreflightPassedCondition)
		return
	}
	s.set(controlplanev1.PreflightPassedCondition, metav1.ConditionFalse, s.preflight.Reason, s.preflight.Message)
}

// precedence has changes of the version come first, as Cluster API's tools expect.
func precedence(change snapshot.Change) int {
	if change.Version {
		return 0
	}
	return 1
}

// joined are the parts that are not empty.
func joined(parts []string, by string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), by)
}
