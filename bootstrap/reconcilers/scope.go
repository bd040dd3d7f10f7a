// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/target"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
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
	// sharing is what shared returns, once it was asked for.
	sharing *target.Shared

	// adapter is nil while there is neither a Machine nor a host that is named.
	adapter infra.Adapter
	// host is nil while nobody may touch one; waiting says why, lost that it stays so.
	host    *infra.Host
	waiting *decision.Blocker
	lost    bool
	// again is when to read again what is waited for, 0 if its changes are watched.
	again time.Duration
	// door is how the host is entered that the bootstrap data opens, nil where none does; candidates are the addresses at which it may be.
	door       *doorway
	candidates []string

	// needed is what the host needs, and planned what that is done by, once it is decided.
	needed  need
	planned *job

	// job is the host's, nil if it has none.
	job *hostrun.State[outcome]
	// ended is whether the job's result was taken in and can be forgotten once the status is written.
	ended bool
}

func (s *scope) subject() infra.Subject { return infra.Subject{Machine: s.machine, Config: s.config} }

// clusterKey is the Cluster's, also where there is none any more: a host that leaves is reset all the same.
func (s *scope) clusterKey() client.ObjectKey {
	if s.cluster != nil {
		return client.ObjectKeyFromObject(s.cluster)
	}
	return client.ObjectKey{Namespace: s.config.Namespace, Name: s.config.Labels[clusterv1.ClusterNameLabel]}
}

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
func (s *scope) role() spec.Role { return target.RoleOf(s.machine, s.config) }

// fetch reads the owners of a KubexmConfig.
func (r *KubexmConfigReconciler) fetch(ctx context.Context, config *bootstrapv1.KubexmConfig) (*scope, error) {
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

func (r *KubexmConfigReconciler) fetchClusterConfig(ctx context.Context, s *scope) error {
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
func (s *scope) shared() *target.Shared {
	if s.sharing == nil {
		s.sharing = target.SharedOf(s.cluster, s.clusterConfig)
	}
	return s.sharing
}

// member is what the KubexmClusterConfig says of the host, nil if that does not list it.
func (s *scope) member() *bootstrapv1.ClusterMember {
	if s.clusterConfig == nil {
		return nil
	}
	return s.clusterConfig.Spec.MemberOf(s.config)
}

// readAgain has what is waited for read again after a while, unless it is 0 or another is shorter.
func (s *scope) readAgain(after time.Duration) {
	if after > 0 && (s.again == 0 || after < s.again) {
		s.again = after
	}
}

// locate asks the infrastructure which host the Machine has. From before that on, changes of what it says are watched.
func (r *KubexmConfigReconciler) locate(ctx context.Context, s *scope) error {
	if err := r.watchInfrastructure(ctx, s); err != nil {
		return err
	}
	found, err := s.adapter.Host(ctx, s.subject())
	var notYet *infra.HostPending
	var lost *infra.HostGone
	switch {
	case errors.As(err, &notYet):
		s.waiting = decision.Block(bootstrapv1.WaitingForHostReason, "%s", notYet.Message)
		if notYet.Changed {
			s.readAgain(immediately)
		}
	case errors.As(err, &lost):
		s.waiting, s.lost = decision.Block(bootstrapv1.WaitingForHostReason, "%s", lost.Message), true
	case err != nil:
		return err
	default:
		s.host = found
		if err := r.place(ctx, s); err != nil {
			return err
		}
		if s.clusterConfig == nil {
			return nil // which of its addresses is the Node's follows from the cluster's network
		}
		own := s.shared().Host(found.Host, s.role())
		status := &s.config.Status.Host
		status.Name, status.InternalAddress, status.BMCAddress = found.Name, own.NodeAddress(), found.BMC.Address
		if !s.isInHostNetwork() {
			status.InternalAddress = "" // the others do not reach it there: see the target's validation
		}
		if s.isDeclared() {
			status.Address = found.Address // else it is the one where the host answers: see enroll
		}
	}
	return nil
}
