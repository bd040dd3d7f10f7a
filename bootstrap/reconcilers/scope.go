// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// scope is all that one reconcile knows.
type scope struct {
	config *bootstrapv1.KubexmConfig
	key    client.ObjectKey
	// machine and cluster are nil while there is none.
	machine *clusterv1.Machine
	cluster *clusterv1.Cluster
	// clusterConfig is what the Cluster's hosts share, nil while nobody has said.
	clusterConfig *bootstrapv1.KubexmClusterConfig

	// adapter is nil while there is neither a Machine nor a host that is named.
	adapter infra.Adapter
	// host is nil while nobody may touch one; waiting says why, lost that it stays so.
	host    *infra.Host
	waiting string
	lost    bool

	// job is the host's, nil if it has none.
	job *hostrun.State[outcome]
	// ended is whether the job's result was taken in and can be forgotten once the status is written.
	ended bool
}

func (s *scope) subject() infra.Subject { return infra.Subject{Machine: s.machine, Config: s.config} }

// hasNoMachine reports whether the KubexmConfig names its host itself: the host does not become a Node.
func (s *scope) hasNoMachine() bool { return s.config.Spec.HostRef.Name != "" }

// isControlPlane reports whether the host is part of the control plane.
func (s *scope) isControlPlane() bool {
	if s.machine == nil {
		return false
	}
	_, yes := s.machine.Labels[clusterv1.MachineControlPlaneLabel]
	return yes
}

// role is what the host is for.
func (s *scope) role() spec.Role {
	switch {
	case s.config.Spec.HostRef.Role != "":
		return s.config.Spec.HostRef.Role
	case s.isControlPlane():
		return spec.RoleControlPlane
	}
	return spec.RoleWorker
}

// fetch reads the owners of a KubexmConfig.
func (r *Config) fetch(ctx context.Context, config *bootstrapv1.KubexmConfig) (*scope, error) {
	s := &scope{config: config, key: client.ObjectKeyFromObject(config)}
	machine, err := util.GetOwnerMachine(ctx, r.Client, config.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get the Machine of the KubexmConfig %s: %w", klog.KObj(config), err)
	}
	s.machine = machine
	if s.hasNoMachine() {
		s.adapter = infra.Inventory(r.Client, r.Reader)
	}
	name := config.Labels[clusterv1.ClusterNameLabel]
	if machine != nil {
		name = machine.Spec.ClusterName
		s.adapter = infra.Of(machine, r.Client, r.Reader)
	}
	if name != "" {
		cluster, err := util.GetClusterByName(ctx, r.Client, config.Namespace, name)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get the Cluster of the KubexmConfig %s: %w", klog.KObj(config), err)
		}
		if err == nil {
			s.cluster = cluster
		}
	}
	if err := r.fetchClusterConfig(ctx, s); err != nil {
		return nil, err
	}
	if job, found := r.Runner.Observe(s.key); found {
		s.job = &job
	}
	return s, nil
}

func (r *Config) fetchClusterConfig(ctx context.Context, s *scope) error {
	if s.cluster == nil {
		return nil
	}
	found, key := &bootstrapv1.KubexmClusterConfig{}, client.ObjectKeyFromObject(s.cluster)
	if err := r.Client.Get(ctx, key, found); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("get the KubexmClusterConfig %s: %w", key, err)
	}
	s.clusterConfig = found
	return nil
}

// shared is what all hosts of the Cluster share. There is a KubexmClusterConfig.
func (s *scope) shared() spec.Cluster { return s.clusterConfig.Spec.Shared(s.cluster) }

// member is what the KubexmClusterConfig says of the host, nil if that does not list it.
func (s *scope) member() *bootstrapv1.ClusterMember {
	if s.clusterConfig == nil {
		return nil
	}
	return s.clusterConfig.Spec.MemberOf(s.config)
}

// locate asks the infrastructure which host the Machine has.
func (r *Config) locate(ctx context.Context, s *scope) error {
	found, err := s.adapter.Host(ctx, s.subject())
	var notYet *infra.NotYet
	var lost *infra.Lost
	switch {
	case errors.As(err, &notYet):
		s.waiting = notYet.Message
	case errors.As(err, &lost):
		s.waiting, s.lost = lost.Message, true
	case err != nil:
		return err
	default:
		s.host = found
		if s.clusterConfig == nil {
			return nil // which of its addresses is the Node's follows from the cluster's network
		}
		shared := s.shared()
		own := hostOf(found, s.role(), &shared.Network)
		s.config.Status.Host = bootstrapv1.HostStatus{Name: found.Name, Address: found.Address, InternalAddress: own.NodeAddress()}
	}
	return nil
}
