// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/target"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// membership is all that is known of a Cluster's hosts of etcd and of the control plane.
type membership struct {
	config *bootstrapv1.KubexmClusterConfig
	// configs are the Cluster's, and machines theirs, by their names.
	configs  []bootstrapv1.KubexmConfig
	machines map[string]*clusterv1.Machine
}

// concerns reports whether etcd is restored on hosts with a role.
func (p *membership) concerns(role spec.Role) bool {
	return role == spec.RoleControlPlane || p.config.Spec.Cluster.RunsEtcd(role)
}

// unsettled is why etcd cannot be restored on all of its hosts at once now, "" if it can: one comes, goes, or is brought to another
// version.
func (p *membership) unsettled() string {
	listed := map[string]bool{}
	for i := range p.config.Spec.Members {
		m := &p.config.Spec.Members[i]
		if !p.concerns(m.Role) {
			continue
		}
		config := p.configOf(m)
		switch {
		case !m.Stays() || config != nil && p.leaves(config):
			return fmt.Sprintf("the host %s is leaving the cluster: wait until it has left", m.Name)
		case config == nil:
			return fmt.Sprintf("the member %s of the KubexmClusterConfig %s has no KubexmConfig", m.Name, p.config.Name)
		case m.Phase == bootstrapv1.MemberJoining || m.Address == "":
			return fmt.Sprintf("the host %s is joining the cluster: wait until it has joined", m.Name)
		}
		listed[config.Name] = true
		machine := p.machines[config.Name]
		if has := config.Status.KubernetesVersion; machine != nil && has != "" && machine.Spec.Version != has {
			return fmt.Sprintf("the host %s is being brought from %s to %s: wait until it is there, or set the version back",
				m.Name, has, machine.Spec.Version)
		}
	}
	if len(listed) == 0 {
		return fmt.Sprintf("the KubexmClusterConfig %s lists no host of etcd or of the control plane", p.config.Name)
	}
	for i := range p.configs {
		c := &p.configs[i]
		if p.concerns(target.RoleOf(p.machines[c.Name], c)) && !listed[c.Name] {
			return fmt.Sprintf("the host of the KubexmConfig %s is to join the cluster: wait until it has joined", c.Name)
		}
	}
	return ""
}

// configOf is a member's KubexmConfig, nil if there is none.
func (p *membership) configOf(m *bootstrapv1.ClusterMember) *bootstrapv1.KubexmConfig {
	for i := range p.configs {
		if of := p.config.Spec.MemberOf(&p.configs[i]); of != nil && of.Name == m.Name {
			return &p.configs[i]
		}
	}
	return nil
}

func (p *membership) leaves(c *bootstrapv1.KubexmConfig) bool {
	machine := p.machines[c.Name]
	return !c.DeletionTimestamp.IsZero() || machine != nil && !machine.DeletionTimestamp.IsZero()
}

// busy is another KubexmOperation that goes on with one of these hosts, "" if none does.
func busy(all []bootstrapv1.KubexmOperation, o *bootstrapv1.KubexmOperation, hosts []bootstrapv1.HostOperationStatus) string {
	for _, other := range all {
		if other.UID == o.UID || other.Annotations[bootstrapv1.OperationCompletedAnnotation] != "" || !other.DeletionTimestamp.IsZero() {
			continue
		}
		for _, theirs := range other.Status.Hosts {
			for _, ours := range hosts {
				if theirs.ConfigName == ours.ConfigName && theirs.Phase == bootstrapv1.OperationRunning {
					return fmt.Sprintf("the KubexmOperation %s (%s) goes on with the host %s: wait until it has ended, or delete it",
						other.Name, other.Spec.Type, ours.Name)
				}
			}
		}
	}
	return ""
}
