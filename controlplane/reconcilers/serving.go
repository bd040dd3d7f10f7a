// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Serving approves requests of kubelets for serving certificates, in the cluster that a kubeconfig leads to.
type Serving func(ctx context.Context, kubeconfig secret.Value, c *snapshot.ControlPlane) *snapshot.Serving

// reconcileOtherWorkers does what workers of other bootstrap providers need of a control plane. That it cannot be done holds up nothing
// else.
func (r *KubexmControlPlaneReconciler) reconcileOtherWorkers(ctx context.Context, s *scope) error {
	w := s.ControlPlane.Workload
	if len(s.OtherWorkers()) == 0 || w == nil || w.Err != nil || !w.Initialized {
		return nil
	}
	s.serving = r.Serving(ctx, s.kubeconfig, s.ControlPlane)
	for _, node := range s.serving.Approved {
		ctrl.LoggerFrom(ctx).Info("Approved a serving certificate", "Node", node)
		r.Events.Eventf(s.Object, nil, corev1.EventTypeNormal, "ServingCertificateApproved", "Approve",
			"approved the request of the kubelet on the Node %s for a serving certificate", node)
	}
	return nil
}

// setOtherWorkers says what stands in the way of workers of other bootstrap providers.
func (s *scope) setOtherWorkers() {
	s.setWorkersCanJoin()
	switch {
	case len(s.OtherWorkers()) == 0:
		conditions.Delete(s.Object, controlplanev1.ServingCertificatesApprovedCondition)
	case s.serving == nil: // it was not looked: what was said last is likely to be so still
	case s.serving.Err != nil:
		s.set(controlplanev1.ServingCertificatesApprovedCondition, metav1.ConditionUnknown, controlplanev1.RequestsUnknownReason,
			s.serving.Err.Error())
	case len(s.serving.Refused) > 0:
		s.set(controlplanev1.ServingCertificatesApprovedCondition, metav1.ConditionFalse, controlplanev1.RequestsNotApprovedReason,
			host.Text("requests of kubelets for serving certificates are left for somebody else to decide on:\n* "+
				strings.Join(s.serving.Refused, "\n* "), longest))
	default:
		conditions.Delete(s.Object, controlplanev1.ServingCertificatesApprovedCondition)
	}
}

// setVersionTold says why the cluster does not say the version by which workers join.
func (s *scope) setVersionTold() {
	switch {
	case s.serving != nil && s.serving.NotTold != nil:
		s.set(controlplanev1.WorkersCanJoinCondition, metav1.ConditionUnknown,
			controlplanev1.VersionUnknownReason, s.serving.NotTold.Error())
	case s.serving != nil || len(s.OtherWorkers()) == 0:
		conditions.Delete(s.Object, controlplanev1.WorkersCanJoinCondition)
	}
}

// setWorkersCanJoin finds workers of KubeadmConfig where the control plane has nothing that "kubeadm join" could read.
func (s *scope) setWorkersCanJoin() {
	var names []string
	if shown, err := pipeline.ShownOf(s.Shared()); err == nil && !shown.JoinsByKubeadm {
		for _, m := range s.OtherWorkers() {
			if m.Spec.Bootstrap.ConfigRef.Kind == "KubeadmConfig" {
				names = append(names, m.Name)
			}
		}
	}
	if len(names) == 0 {
		s.setVersionTold()
		return
	}
	s.set(controlplanev1.WorkersCanJoinCondition, metav1.ConditionFalse, controlplanev1.KubeadmConfigNotSupportedReason, host.Text(
		"the Machines "+strings.Join(names, ", ")+" have a KubeadmConfig, but spec.cluster.kubernetes.type is "+
			string(s.Shared().Kubernetes.Type)+", and kubeadm finds nothing in this cluster to join by: have them bootstrapped by a "+
			"KubexmConfig, or make a cluster of the type Kubeadm", longest))
}
