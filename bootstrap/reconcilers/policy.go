// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// declared is what hosts of the cluster share, without defaults; nothing while that is not known.
func (s *scope) declared() *spec.Cluster {
	if s.clusterConfig == nil {
		return &spec.Cluster{}
	}
	return &s.clusterConfig.Spec.Cluster
}

// driftPolicy is what becomes of a difference that is found on the host.
func (s *scope) driftPolicy() spec.DriftPolicy {
	return spec.DriftPolicyOf(s.declared(), &s.config.Spec.Node)
}

// failurePolicy is what becomes of what a run has changed on the host when it fails.
func (s *scope) failurePolicy() engine.Policy {
	return engine.Policy(spec.FailurePolicyOf(s.declared(), &s.config.Spec.Node))
}

// resetPolicy is what becomes of the host when it leaves the cluster.
func (s *scope) resetPolicy() spec.Reset { return spec.ResetOf(s.declared(), &s.config.Spec.Node) }

// withoutPolicies takes from a target what says how its host is treated, and not what it must be: a change of it is nothing to run for.
func withoutPolicies(t *spec.Target) {
	t.Cluster.DriftPolicy, t.Node.DriftPolicy = "", ""
	t.Cluster.OnFailure, t.Node.OnFailure = "", ""
	t.Cluster.Reset, t.Node.Reset = spec.Reset{}, spec.Reset{}
}
