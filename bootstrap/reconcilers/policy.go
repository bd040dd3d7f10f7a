// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
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
	inherited, own := s.inheritedReset(), &s.config.Spec.Node
	policy := spec.ResetOf(&spec.Cluster{Reset: inherited}, own)
	if s.adapter != nil && inherited.Policy == "" && own.Reset.Policy == "" {
		policy.Policy = s.adapter.Reset()
	}
	return policy
}

// inheritedReset is what the cluster says of the reset of its hosts, or said last where there is no KubexmClusterConfig any more. A record
// that cannot be read keeps the host from being reset: that can be done later, and not be undone.
func (s *scope) inheritedReset() spec.Reset {
	if s.clusterConfig != nil {
		return s.clusterConfig.Spec.Cluster.Reset
	}
	recorded, found := s.config.Annotations[bootstrapv1.ClusterResetAnnotation]
	if !found {
		return spec.Reset{}
	}
	var said spec.Reset
	known := []spec.ResetPolicy{"", spec.ResetAlways, spec.ResetWhenReachable, spec.ResetNever}
	if err := json.Unmarshal([]byte(recorded), &said); err != nil || !slices.Contains(known, said.Policy) {
		return spec.Reset{Policy: spec.ResetNever}
	}
	return said
}

// recordReset records on the KubexmConfig what the cluster says of the reset of its hosts, while that is known: a deletion may take the
// KubexmClusterConfig before the hosts.
func (s *scope) recordReset() error {
	if s.clusterConfig == nil {
		return nil
	}
	said := s.clusterConfig.Spec.Cluster.Reset
	if said == (spec.Reset{}) {
		delete(s.config.Annotations, bootstrapv1.ClusterResetAnnotation)
		return nil
	}
	raw, err := json.Marshal(said)
	if err != nil {
		return fmt.Errorf("record what the cluster says of resets: %w", err)
	}
	metav1.SetMetaDataAnnotation(&s.config.ObjectMeta, bootstrapv1.ClusterResetAnnotation, string(raw))
	return nil
}
