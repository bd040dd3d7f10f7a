// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/patch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
)

// reconcileUnhealthyMachines is what becomes of unhealthy Machines, in order.
func (r *KubexmControlPlaneReconciler) reconcileUnhealthyMachines(ctx context.Context, s *scope) error {
	if !s.Cluster.DeletionTimestamp.IsZero() {
		return nil
	}
	for _, do := range []func(context.Context, *scope) error{
		r.dropRecord,       // of a Machine whose successor exists
		r.settleHealthy,    // before anything is tried with them
		r.deferMaintained,  // whose hosts nobody is to touch
		r.convergeAgain,    // all of them at once: it disrupts nothing
		r.remediateMachine, // one at a time
	} {
		if err := do(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// dropRecord takes the record of a replacement off that is done.
func (r *KubexmControlPlaneReconciler) dropRecord(_ context.Context, s *scope) error {
	if s.InProgress() == nil {
		delete(s.Object.Annotations, controlplanev1.RemediationInProgressAnnotation)
	}
	return nil
}

// remediateMachine reboots the host of the Machine whose turn it is, or deletes the Machine if that did not help either. Its successor is
// made as any Machine that is missing.
func (r *KubexmControlPlaneReconciler) remediateMachine(ctx context.Context, s *scope) error {
	d := s.Remediate()
	switch {
	case d.Machine == nil:
		return nil
	case d.Blocked != nil:
		if err := r.askEtcd(ctx, s, d.Ask); err != nil {
			return err
		}
		return r.reportOwnerRemediated(ctx, s, d.Machine, d.Blocked.Reason, d.Blocked.Message)
	case d.Reboot:
		return r.reboot(ctx, s, d.Machine, d.Stage.Message)
	}
	// The cache may not show yet the Machine that was made or deleted a moment ago.
	var err error
	if s.Machines, err = machinesOf(ctx, r.Reader, s.Cluster); err != nil {
		return err
	}
	if d = s.Remediate(); d.Machine == nil || d.Blocked != nil || d.Reboot {
		return nil
	}
	return r.replaceUnhealthy(ctx, s, d)
}

// deferMaintained says of unhealthy Machines whose hosts are in maintenance that they are left alone.
func (r *KubexmControlPlaneReconciler) deferMaintained(ctx context.Context, s *scope) error {
	for _, m := range s.Own() {
		if why := s.Maintained(&m); why != nil {
			if err := r.reportOwnerRemediated(ctx, s, &m, why.Reason, why.Message); err != nil {
				return err
			}
		}
	}
	return nil
}

// convergeAgain asks the hosts of unhealthy Machines to be converged again: by an annotation of their KubexmConfigs,
// which is the record of it as well.
func (r *KubexmControlPlaneReconciler) convergeAgain(ctx context.Context, s *scope) error {
	for _, m := range s.ToConverge() {
		if err := r.askHost(ctx, s, &m, bootstrapv1.ConvergeAnnotation); err != nil {
			return err
		}
		r.Events.Eventf(s.Object, &m, corev1.EventTypeWarning, "ReconvergingHost", "Remediate",
			"the Machine %s is unhealthy: its host is converged again: %s",
			m.Name, conditions.GetMessage(&m, clusterv1.MachineHealthCheckSucceededCondition))
	}
	return nil
}

// reboot asks the host of an unhealthy Machine to be rebooted, as convergeAgain asks.
func (r *KubexmControlPlaneReconciler) reboot(ctx context.Context, s *scope, m *clusterv1.Machine, message string) error {
	if err := r.askHost(ctx, s, m, bootstrapv1.RebootAnnotation); err != nil {
		return err
	}
	r.Events.Eventf(s.Object, m, corev1.EventTypeWarning, "RebootingHost", "Remediate", "the Machine %s is unhealthy still: its host is rebooted: %s",
		m.Name, conditions.GetMessage(m, clusterv1.MachineHealthCheckSucceededCondition))
	return r.reportOwnerRemediated(ctx, s, m, controlplanev1.RemediationDeferredReason, message)
}

// askHost asks the host of a Machine for what an annotation is for, as of now.
func (r *KubexmControlPlaneReconciler) askHost(ctx context.Context, s *scope, m *clusterv1.Machine, annotation string) error {
	config := s.ConfigOf(m)
	before := config.DeepCopy()
	config.Ask(annotation, s.Now)
	if err := r.Client.Patch(ctx, config, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotate the KubexmConfig %s: %w", config.Name, err)
	}
	return nil
}

// askEtcd has the etcd on the Machines' hosts asked how it is. Their KubexmConfigs say then, and are watched.
func (r *KubexmControlPlaneReconciler) askEtcd(ctx context.Context, s *scope, machines []clusterv1.Machine) error {
	for i := range machines {
		if err := r.askHost(ctx, s, &machines[i], bootstrapv1.AskEtcdAnnotation); err != nil {
			return err
		}
	}
	return nil
}

// replaceUnhealthy keeps the record before it deletes the Machine: whatever happens in between, the next reconcile goes on.
func (r *KubexmControlPlaneReconciler) replaceUnhealthy(ctx context.Context, s *scope, d snapshot.Remediation) error {
	value, err := d.Record.Annotation()
	if err != nil {
		return fmt.Errorf("record of the Machine %s: %w", d.Machine.Name, err)
	}
	// A copy: what the status is to be would be lost by the answer.
	before := s.Object.DeepCopy()
	after := before.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, controlplanev1.RemediationInProgressAnnotation, value)
	if err := r.Client.Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("keep the record of the Machine %s: %w", d.Machine.Name, err)
	}
	metav1.SetMetaDataAnnotation(&s.Object.ObjectMeta, controlplanev1.RemediationInProgressAnnotation, value)
	if err := r.Client.Delete(ctx, d.Machine); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the Machine %s: %w", d.Machine.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Deleted an unhealthy control plane Machine", "Machine", d.Machine.Name, "retry", d.Record.RetryCount)
	r.Events.Eventf(s.Object, d.Machine, corev1.EventTypeWarning, "MachineRemediated", "Remediate", "deleted the unhealthy Machine %s: %s",
		d.Machine.Name, conditions.GetMessage(d.Machine, clusterv1.MachineHealthCheckSucceededCondition))
	return r.reportOwnerRemediated(ctx, s, d.Machine, controlplanev1.RemediationMachineDeletingReason, "the Machine is being deleted, and another takes its place")
}

// reportOwnerRemediated says on an unhealthy Machine what becomes of it.
func (r *KubexmControlPlaneReconciler) reportOwnerRemediated(
	ctx context.Context, s *scope, m *clusterv1.Machine, reason, message string,
) error {
	return r.patchOwnerRemediated(ctx, s, m, func(m *clusterv1.Machine) {
		conditions.Set(m, metav1.Condition{
			Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		})
	})
}

// settleHealthy takes back what was said of Machines that have become healthy by themselves.
func (r *KubexmControlPlaneReconciler) settleHealthy(ctx context.Context, s *scope) error {
	for _, m := range s.Own() {
		if !m.DeletionTimestamp.IsZero() || !conditions.IsTrue(&m, clusterv1.MachineHealthCheckSucceededCondition) ||
			!conditions.IsFalse(&m, clusterv1.MachineOwnerRemediatedCondition) {
			continue
		}
		if err := r.patchOwnerRemediated(ctx, s, &m, func(m *clusterv1.Machine) {
			conditions.Delete(m, clusterv1.MachineOwnerRemediatedCondition)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (r *KubexmControlPlaneReconciler) patchOwnerRemediated(
	ctx context.Context, s *scope, m *clusterv1.Machine, change func(*clusterv1.Machine),
) error {
	helper, err := patch.NewHelper(m, r.Client)
	if err != nil {
		return err
	}
	change(m)
	err = helper.Patch(ctx, m, patch.WithOwnedConditions{Conditions: []string{clusterv1.MachineOwnerRemediatedCondition}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the conditions of the Machine %s: %w", m.Name, err)
	}
	if i := slices.IndexFunc(s.Machines, func(other clusterv1.Machine) bool { return other.UID == m.UID }); i >= 0 {
		s.Machines[i] = *m
	}
	return nil
}

// setRemediating says which unhealthy Machines are to be replaced, and what becomes of each.
func (s *scope) setRemediating(own []clusterv1.Machine) {
	if last := s.LastRemediation(); last != nil {
		s.Object.Status.LastRemediation = controlplanev1.LastRemediation{
			Machine: last.Machine, Time: last.Timestamp, RetryCount: ptr.To(last.RetryCount),
		}
	}
	var lines []string
	for i := range own {
		if m := &own[i]; snapshot.IsToBeRemediated(m) {
			lines = append(lines, fmt.Sprintf("* Machine %s: %s", m.Name, conditions.GetMessage(m, clusterv1.MachineOwnerRemediatedCondition)))
		}
	}
	if len(lines) == 0 {
		s.set(controlplanev1.RemediatingCondition, metav1.ConditionFalse, clusterv1.NotRemediatingReason, "")
		return
	}
	s.set(controlplanev1.RemediatingCondition, metav1.ConditionTrue, clusterv1.RemediatingReason, strings.Join(lines, "\n"))
}
