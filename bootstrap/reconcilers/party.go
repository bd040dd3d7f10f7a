// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Party is a host that has a part in a plan over several hosts.
type Party struct {
	// Config is the name of its KubexmConfig.
	Config string
	Target spec.Target
	// Address is for messages.
	Address   string
	Dial      func(context.Context, string) (host.Host, error)
	Ownership func(context.Context, string) (host.Ownership, error)
}

// Party is the host of a KubexmConfig, which stands still. The error says why there is none to be reached.
func (r *KubexmConfigReconciler) Party(ctx context.Context, config *bootstrapv1.KubexmConfig) (*Party, error) {
	s, err := r.fetch(ctx, config.DeepCopy())
	if err != nil {
		return nil, err
	}
	if s.adapter == nil || s.cluster == nil || s.clusterConfig == nil {
		return nil, fmt.Errorf("the KubexmConfig %s has no Machine, no Cluster or no KubexmClusterConfig", config.Name)
	}
	if err := r.locate(ctx, s); err != nil {
		return nil, fmt.Errorf("find the host of the KubexmConfig %s: %w", config.Name, err)
	}
	switch {
	case s.host == nil:
		return nil, fmt.Errorf("the KubexmConfig %s has no host: %s", config.Name, s.waiting)
	case s.host.Maintenance != "":
		return nil, fmt.Errorf("the host %s is in maintenance: %s", s.host.Name, s.host.Maintenance)
	}
	target, err := targetOf(s)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", s.host.Name, err)
	}
	return &Party{
		Config: config.Name, Target: target, Address: s.host.Address,
		Dial: r.dialer(s.config.Namespace, *s.host), Ownership: r.ownership(s),
	}, nil
}

// Together are the options of an engine for plans over several hosts of a Cluster.
func (r *KubexmConfigReconciler) Together(cluster client.ObjectKey, parties []*Party) engine.Options {
	byName := map[string]*Party{}
	for _, p := range parties {
		byName[p.Target.Host.Name] = p
	}
	none := func(name string) error {
		return fmt.Errorf("defect: the plan has a host %s that is none of its parties", name)
	}
	return engine.Options{
		Dial: func(ctx context.Context, name string) (host.Host, error) {
			p, found := byName[name]
			if !found {
				return nil, none(name)
			}
			return p.Dial(ctx, name)
		},
		Ownership: func(ctx context.Context, name string) (host.Ownership, error) {
			p, found := byName[name]
			if !found {
				return host.Ownership{}, none(name)
			}
			return p.Ownership(ctx, name)
		},
		Address: func(name string) string {
			if p, found := byName[name]; found {
				return p.Address
			}
			return ""
		},
		Secrets: r.secrets(context.Background(), cluster), Cluster: r.api(cluster),
		Holder: r.Holder, Slots: r.Slots.In(cluster.String()), Reader: r.Reads,
	}
}
