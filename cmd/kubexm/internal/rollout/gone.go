// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// Gone reports whether nothing of a deleted cluster is left but its hosts.
func (s *Snapshot) Gone() bool {
	if s.Cluster != nil || s.ControlPlane != nil || len(s.Machines)+len(s.Configs)+len(s.InfraMachines) > 0 {
		return false
	}
	for i := range s.Hosts {
		if s.Hosts[i].Spec.ClaimRef.Name != "" {
			return false
		}
	}
	return true
}

// Elsewhere reports whether nothing of a cluster is here, not even its hosts, which no deletion takes away: it was moved to
// another management cluster.
func (s *Snapshot) Elsewhere() bool { return s.Gone() && len(s.Hosts) == 0 }

// Resets are the hosts that are not reset yet, and why.
func (s *Snapshot) Resets() []Wait {
	var waits []Wait
	for i := range s.Configs {
		c := &s.Configs[i]
		if w, waiting := waitOf(nameOfHost(c), 0, c.Status.Conditions, bootstrapv1.HostResetCondition); waiting {
			waits = append(waits, w)
		}
	}
	return waits
}

// Unclean is an error that names the hosts that were released without having been reset, nil if there are none.
func (s *Snapshot) Unclean() error {
	var errs []error
	for i := range s.Hosts {
		h := &s.Hosts[i]
		if q := h.Spec.Quarantine; h.IsQuarantined() {
			errs = append(errs, fmt.Errorf("host %s (%s) is in quarantine: %s: %s", h.Name, h.Spec.Address, q.Reason, q.Message))
			continue
		}
		if c := meta.FindStatusCondition(h.Status.Conditions, infrav1.CleanCondition); c != nil && c.Status == metav1.ConditionFalse {
			errs = append(errs, fmt.Errorf("host %s (%s) was released without having been reset: %s", h.Name, h.Spec.Address, c.Message))
		}
	}
	return errors.Join(errs...)
}
