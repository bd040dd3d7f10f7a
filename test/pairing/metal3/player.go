// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/provider"
)

//go:embed definitions.yaml
var definitions []byte

// Options are what is played, and where.
type Options struct {
	// Config is the management cluster's, of somebody who may do anything there.
	Config *rest.Config
	// Namespace is that of the BareMetalHosts.
	Namespace string
	// Pool has the hosts, which are cloud images that have not run yet. Labels are those of their BareMetalHosts, by the host's name.
	Pool   *hosts.Pool
	Labels map[string]map[string]string
	// Release, if not nil, is run in the place of the provider, in Dir, as the user of Kubeconfig, a file. Its operator is played all the
	// same: there is no hardware.
	Release         *provider.Release
	Dir, Kubeconfig string
	// Log gets what the provider says. It may be nil.
	Log func(format string, args ...any)
}

// stopping is how long a release's manager may take to end.
const stopping = time.Minute

// Player is the provider while it runs.
type Player struct {
	*provider.Provider
	// manager is the release's, nil where the provider is played.
	manager *child.Process
}

// OpenRelease reads a release of the provider: its kinds and its manager.
func OpenRelease(dir string) (*provider.Release, error) { return provider.OpenRelease(dir, "manager") }

// Stop ends what runs.
func (p *Player) Stop() error {
	err := p.Provider.Stop()
	if p.manager != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopping)
		defer cancel()
		err = errors.Join(err, p.manager.Stop(ctx))
	}
	return err
}

// Definitions are the kinds of the provider and of its operator.
func Definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return provider.Definitions(definitions)
}

// Start installs the kinds, registers all hosts, and runs controllers until Stop.
func Start(ctx context.Context, o Options) (*Player, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	kinds, err := Definitions()
	if err != nil {
		return nil, err
	}
	if o.Release != nil {
		kinds = append(slices.DeleteFunc(kinds, func(d *apiextensionsv1.CustomResourceDefinition) bool {
			return d.Spec.Group != "metal3.io" // the operator's
		}), o.Release.Definitions...)
	}
	p, err := provider.Install(ctx, o.Config, kinds, AddToScheme)
	if err != nil {
		return nil, err
	}
	hardware := &operator{Provider: p, pool: o.Pool}
	for i, h := range o.Pool.Hosts {
		leased := o.Pool.Hosts[(i+1)%len(o.Pool.Hosts)]
		if err := hardware.register(ctx, o.Namespace, h, leased, o.Labels[h.Name]); err != nil {
			return nil, err
		}
	}
	if err := ctrl.NewControllerManagedBy(p.Manager).Named("baremetalhost").For(&Host{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: len(o.Pool.Hosts)}).Complete(hardware); err != nil {
		return nil, err
	}
	if o.Release != nil {
		manager, err := o.Release.Run(ctx, o.Dir, o.Kubeconfig)
		if err != nil {
			return nil, err
		}
		p.Run(ctx)
		return &Player{Provider: p, manager: manager}, nil
	}
	if err := ctrl.NewControllerManagedBy(p.Manager).Named("metal3cluster").For(&Cluster{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(util.ClusterToInfrastructureMapFunc(
			context.WithoutCancel(ctx), groupVersion.WithKind("Metal3Cluster"), p.Client, &Cluster{}))).
		Complete(&clusters{p}); err != nil {
		return nil, err
	}
	if err := ctrl.NewControllerManagedBy(p.Manager).Named("metal3machine").For(&Machine{}).
		Watches(&Host{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []ctrl.Request {
			host, ok := object.(*Host)
			if !ok || host.Spec.ConsumerRef == nil {
				return nil
			}
			return []ctrl.Request{
				{NamespacedName: client.ObjectKey{Namespace: host.Spec.ConsumerRef.Namespace, Name: host.Spec.ConsumerRef.Name}},
			}
		})).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(util.MachineToInfrastructureMapFunc(groupVersion.WithKind("Metal3Machine")))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(p.OfCluster(&MachineList{}))).
		Complete(&machines{Provider: p, log: o.Log}); err != nil {
		return nil, err
	}
	p.Run(ctx)
	return &Player{Provider: p}, nil
}
