// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/holder"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

var errStandsStill = errors.New("a KubexmOperation holds the host")

// standStill does nothing with a host of etcd or of the control plane while a KubexmOperation holds it, stops what goes on there, and says
// so when that has ended: from then on, until it is released, nothing is begun. What the KubexmClusterConfig says here only gets newer.
func (r *KubexmConfigReconciler) standStill(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	held, err := r.heldBy(ctx, s)
	if err != nil {
		return false, ctrl.Result{}, err
	}
	if held == "" {
		r.goOn(s)
		return true, ctrl.Result{}, nil
	}
	conditions.Set(s.config, metav1.Condition{
		Type: bootstrapv1.HostConvergedCondition, Status: metav1.ConditionUnknown,
		Reason: bootstrapv1.HeldReason, Message: holder.Why(held),
	})
	if s.job != nil {
		s.config.Status.HeldBy = ""
		r.Runner.Cancel(s.key, errStandsStill)
	} else {
		s.config.Status.HeldBy = held
	}
	return false, ctrl.Result{RequeueAfter: askAgain}, nil // a KubexmOperation that goes is not watched here
}

// goOn has a host that was held observed, and brought to what it must be: it is another one since.
func (r *KubexmConfigReconciler) goOn(s *scope) {
	if s.config.Status.HeldBy == "" && conditions.GetReason(s.config, bootstrapv1.HostConvergedCondition) != bootstrapv1.HeldReason {
		return
	}
	s.config.Status.HeldBy = ""
	if conditions.GetReason(s.config, bootstrapv1.HostConvergedCondition) == bootstrapv1.HeldReason {
		conditions.Delete(s.config, bootstrapv1.HostConvergedCondition)
	}
	r.drop(s.config.UID) // so that it is observed
}

// heldBy is who holds the host, "" if nobody does. Workers and load balancers are never held.
func (r *KubexmConfigReconciler) heldBy(ctx context.Context, s *scope) (string, error) {
	if role := s.role(); role != spec.RoleControlPlane && role != spec.RoleEtcd {
		return "", nil
	}
	return holder.By(ctx, r.Reader, s.clusterConfig)
}
