// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// syncMachines brings changes to the Machines that exist: labels and annotations, timeouts, taints, readiness gates, and what
// the KubexmConfig's host follows. One that is being deleted still follows timeouts: somebody may have to end a drain that hangs.
// Hosts that are no Nodes follow by themselves, but for who watches them, and the hook that keeps those of etcd.
func (r *KubexmControlPlaneReconciler) syncMachines(ctx context.Context, s *scope) error {
	for _, m := range s.Own() {
		before := m.DeepCopy()
		desired.Propagate(s.ControlPlane, &m)
		if err := r.patch(ctx, before, &m); err != nil {
			return fmt.Errorf("update the Machine %s: %w", m.Name, err)
		}
		if !m.DeletionTimestamp.IsZero() {
			continue // its host is left as it is
		}
		if err := r.syncConfig(ctx, s, m.Spec.Bootstrap.ConfigRef.Name); err != nil {
			return err
		}
		if err := r.syncInfrastructure(ctx, s, m.Name); err != nil {
			return err
		}
	}
	return r.syncInventory(ctx, s)
}

// syncInventory sees to it that hosts that are no Nodes are watched by whom the control plane is, also on their way out, and that each of
// etcd's own hosts that stays waits for its member when it leaves: a move may have left a deletion behind that had released it.
func (r *KubexmControlPlaneReconciler) syncInventory(ctx context.Context, s *scope) error {
	for i := range s.Configs {
		config := s.Configs[i].DeepCopy()
		if !s.Controls(config) {
			continue
		}
		desired.PropagateWatchLabel(s.ControlPlane, config)
		if config.Spec.HostRef.Role == spec.RoleEtcd && config.DeletionTimestamp.IsZero() {
			metav1.SetMetaDataAnnotation(&config.ObjectMeta, controlplanev1.EtcdMemberRemovalHook, "")
		}
		if err := r.patch(ctx, &s.Configs[i], config); err != nil {
			return fmt.Errorf("label and annotate the KubexmConfig %s: %w", config.Name, err)
		}
	}
	return nil
}

func (r *KubexmControlPlaneReconciler) syncConfig(ctx context.Context, s *scope, name string) error {
	config := &bootstrapv1.KubexmConfig{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: name}, config); err != nil {
		return client.IgnoreNotFound(err) // the cache may not show it yet
	}
	before := config.DeepCopy()
	desired.PropagateConfig(s.ControlPlane, config)
	if err := r.patch(ctx, before, config); err != nil {
		return fmt.Errorf("update the KubexmConfig %s: %w", name, err)
	}
	return nil
}

func (r *KubexmControlPlaneReconciler) syncInfrastructure(ctx context.Context, s *scope, name string) error {
	machine, known := s.infrastructure[name]
	if !known {
		return nil
	}
	before := machine.DeepCopy()
	desired.PropagateMetadata(s.ControlPlane, machine)
	if err := r.patch(ctx, before, machine); err != nil {
		return fmt.Errorf("update the %s %s: %w", machine.GetKind(), machine.GetName(), err)
	}
	return nil
}

// patch writes what differs, if anything does.
func (r *KubexmControlPlaneReconciler) patch(ctx context.Context, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Patch(ctx, after, client.MergeFrom(before)))
}

// reportOnMachines writes what was seen of each Machine's part of the control plane.
func (r *KubexmControlPlaneReconciler) reportOnMachines(ctx context.Context, s *scope) error {
	for _, m := range s.Own() {
		helper, err := patch.NewHelper(&m, r.Client)
		if err != nil {
			return err
		}
		told := s.tell(&m)
		if err := helper.Patch(ctx, &m, patch.WithOwnedConditions{Conditions: told}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("write the conditions of the Machine %s: %w", m.Name, err)
		}
		// What is said of the control plane is summed up from them.
		if i := slices.IndexFunc(s.Machines, func(other clusterv1.Machine) bool { return other.UID == m.UID }); i >= 0 {
			s.Machines[i] = m
		}
	}
	return nil
}

// tell sets a Machine's conditions, and returns their types.
func (s *scope) tell(m *clusterv1.Machine) []string {
	conditions.Set(m, s.upToDate(m))
	told := []string{clusterv1.MachineUpToDateCondition}
	seen := map[string]snapshot.Component{}
	if s.ControlPlane.Workload != nil {
		for _, c := range s.ControlPlane.Workload.Components[m.Name] {
			seen[c.Condition] = c
		}
	}
	for _, kind := range snapshot.ComponentConditions {
		condition := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: controlplanev1.HealthyReason}
		c, known := seen[kind]
		if !known && s.isPatient() && conditions.Has(m, kind) {
			continue // what was seen last is likely to be so still
		}
		switch {
		case !known:
			condition.Status, condition.Reason = metav1.ConditionUnknown, controlplanev1.HealthUnknownReason
			if down := s.connectionDown(); down != nil {
				condition.Reason, condition.Message = down.Reason, down.Message
			}
		case c.Unknown:
			condition.Status, condition.Reason = metav1.ConditionUnknown, controlplanev1.InspectionFailedReason
			condition.Message = c.Problem
		case c.Problem != "":
			condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, controlplanev1.NotHealthyReason, c.Problem
		}
		conditions.Set(m, condition)
		told = append(told, kind)
	}
	s.tellMember(m)
	return append(told, snapshot.EtcdMemberHealthy)
}

// tellMember says what etcd says of its member on a Machine's host, where it has one.
func (s *scope) tellMember(m *clusterv1.Machine) {
	if !s.Stacked() {
		conditions.Delete(m, snapshot.EtcdMemberHealthy)
		return
	}
	condition := metav1.Condition{Type: snapshot.EtcdMemberHealthy, Reason: controlplanev1.HealthUnknownReason}
	switch condition.Status, condition.Message = s.EtcdMember(m); condition.Status {
	case metav1.ConditionTrue:
		condition.Reason = controlplanev1.HealthyReason
	case metav1.ConditionFalse:
		condition.Reason = controlplanev1.NotHealthyReason
	}
	conditions.Set(m, condition)
}

// differences are why a Machine and its host are not up to date. Of a Machine that is, the host may be updating still.
func (s *scope) differences(m *clusterv1.Machine) (differs []snapshot.Change, reason string) {
	if changes := s.Changes(m); len(changes) > 0 {
		return changes, clusterv1.MachineNotUpToDateReason
	}
	if following := s.Following(m); len(following) > 0 {
		return following, clusterv1.MachineUpToDateUpdatingReason
	}
	return nil, clusterv1.MachineUpToDateReason
}

// upToDate is whether a Machine and its host are up to date.
func (s *scope) upToDate(m *clusterv1.Machine) metav1.Condition {
	differs, reason := s.differences(m)
	condition := metav1.Condition{
		Type: clusterv1.MachineUpToDateCondition, Status: metav1.ConditionTrue, Reason: reason,
		LastTransitionTime: metav1.NewTime(s.Now), // by the clock that decides for how long it has been so
	}
	var lines []string
	for _, change := range differs {
		condition.Status = metav1.ConditionFalse
		lines = append(lines, "* "+change.Text)
	}
	condition.Message = strings.Join(lines, "\n")
	return condition
}

// ownedBy adds the Cluster to an object's owners, and reports whether it was not among them.
func ownedBy(owners []metav1.OwnerReference, cluster *clusterv1.Cluster) ([]metav1.OwnerReference, bool) {
	if slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == cluster.UID }) {
		return owners, false
	}
	return append(slices.Clone(owners), metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID,
	}), true
}
