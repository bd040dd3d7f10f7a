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

// resetPolicy is what becomes of the host when it leaves the cluster. Where nobody says it, its infrastructure does.
func (s *scope) resetPolicy() spec.Reset {
	declared, own := s.declared(), &s.config.Spec.Node
	policy := spec.ResetOf(declared, own)
	if s.adapter != nil && declared.Reset.Policy == "" && own.Reset.Policy == "" {
		policy.Policy = s.adapter.Reset()
	}
	return policy
}
