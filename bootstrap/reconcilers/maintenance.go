// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"

	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
)

var errMaintenance = errors.New("the host is in maintenance")

// waitForMaintenance lets nothing begin on a host that nobody is to touch, and cancels what goes on there: the next run resumes it.
func (r *KubexmConfigReconciler) waitForMaintenance(_ context.Context, s *scope) (bool, ctrl.Result, error) {
	why := inMaintenance(s)
	if why == nil {
		endMaintenance(s.config)
		return true, ctrl.Result{}, nil
	}
	r.Runner.Cancel(s.key, errMaintenance)
	setFalse(s.config, bootstrapv1.HostReachableCondition, why.Reason, why.Message)
	setTrue(s.config, bootstrapv1.InMaintenanceCondition, why.Reason, why.Message)
	return false, ctrl.Result{RequeueAfter: s.again}, nil
}

// endMaintenance keeps when the host's maintenance has ended, if it was in any: what was asked for before has its time from then.
func endMaintenance(c *bootstrapv1.KubexmConfig) {
	wasUnreached := conditions.GetReason(c, bootstrapv1.HostReachableCondition) == bootstrapv1.HostInMaintenanceReason
	if wasUnreached {
		conditions.Delete(c, bootstrapv1.HostReachableCondition) // until it is dialled
	}
	if wasUnreached || conditions.IsTrue(c, bootstrapv1.InMaintenanceCondition) {
		setFalse(c, bootstrapv1.InMaintenanceCondition, bootstrapv1.MaintenanceEndedReason, "")
	}
}

// waitForMaintenanceToReset is for a host that leaves: it is reset when its maintenance has ended, unless it is not to be reset at all.
func (r *KubexmConfigReconciler) waitForMaintenanceToReset(ctx context.Context, s *scope) (bool, ctrl.Result, error) {
	if s.skipsReset() {
		return true, ctrl.Result{}, nil
	}
	if err := r.locate(ctx, s); err != nil {
		return false, ctrl.Result{}, err
	}
	if s.host == nil {
		return true, ctrl.Result{}, nil
	}
	goOn, result, err := r.waitForMaintenance(ctx, s)
	if !goOn {
		r.beginAnew(s.config.UID)
	}
	return goOn, result, err
}

// inMaintenance is that nobody is to touch the host; nil if it may be touched.
func inMaintenance(s *scope) *decision.Blocker {
	if s.host.Maintenance == "" {
		return nil
	}
	return decision.Block(bootstrapv1.HostInMaintenanceReason,
		"the host %s is in maintenance: %s; nothing is run on it before that ends (spec.maintenance of its KubexmHost)",
		s.host.Name, s.host.Maintenance)
}
