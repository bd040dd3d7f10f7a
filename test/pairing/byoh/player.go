// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package byoh

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/provider"
)

//go:embed definitions.yaml
var definitions []byte

// again is how long what waits waits, where the provider says so.
const again = 10 * time.Second

// Options are what is played, and where.
type Options struct {
	// Config is the management cluster's, of somebody who may do anything there.
	Config *rest.Config
	// Namespace is that of the ByoHosts.
	Namespace string
	// Hosts have an agent each; Labels are those of their ByoHosts, by the host's name.
	Hosts  []*hosts.Host
	Labels map[string]map[string]string
	// Release, if not nil, is run in the place of what is played, in Dir, as the user of Kubeconfig, a file.
	Release         *provider.Release
	Dir, Kubeconfig string
	// Log gets what agents say. It may be nil.
	Log func(format string, args ...any)
}

// Player is the provider while it runs.
type Player struct {
	*provider.Provider

	options Options
	agents  *agents
	// released is nil where the provider is played.
	released *released
}

// Definitions are the provider's kinds.
func Definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return provider.Definitions(definitions)
}

// Start installs the kinds, registers all hosts and runs controllers and agents until Stop.
func Start(ctx context.Context, o Options) (*Player, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	kinds, err := Definitions()
	if err != nil {
		return nil, err
	}
	if o.Release != nil {
		kinds = o.Release.Definitions
	}
	installed, err := provider.Install(ctx, o.Config, kinds, AddToScheme)
	if err != nil {
		return nil, err
	}
	p := &Player{Provider: installed, options: o, agents: &agents{client: installed.Client, hosts: o.Hosts, log: o.Log}}
	if o.Release != nil {
		p.released, err = startReleased(ctx, o)
	} else {
		err = p.setup()
	}
	if err != nil {
		return nil, err
	}
	for _, h := range o.Hosts {
		if err := p.Register(ctx, h); err != nil {
			if p.released != nil {
				err = errors.Join(err, p.released.stop())
			}
			return nil, err
		}
	}
	p.Run(ctx)
	return p, nil
}

// Stop ends what runs.
func (p *Player) Stop() error {
	err := p.Provider.Stop()
	if p.released != nil {
		err = errors.Join(err, p.released.stop())
	}
	return err
}

// Withdraw ends a host's agent until Register, with all that it is on the host. One that is played is nothing there.
func (p *Player) Withdraw(ctx context.Context, h *hosts.Host) error {
	if p.released == nil {
		return nil
	}
	return p.released.withdraw(ctx, h)
}

// Register is the start of a host's agent: the addresses in its ByoHost are what they are now.
func (p *Player) Register(ctx context.Context, h *hosts.Host) error {
	if p.released != nil {
		return p.released.register(ctx, h)
	}
	return p.agents.register(ctx, p.options.Namespace, h, p.options.Labels[h.Name])
}

// setup watches what the provider watches.
func (p *Player) setup() error {
	if err := ctrl.NewControllerManagedBy(p.Manager).Named("byohost").For(&Host{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: len(p.options.Hosts)}).Complete(p.agents); err != nil {
		return err
	}
	clusterKind, machineKind := groupVersion.WithKind("ByoCluster"), groupVersion.WithKind("ByoMachine")
	if err := ctrl.NewControllerManagedBy(p.Manager).Named("byocluster").For(&Cluster{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(util.ClusterToInfrastructureMapFunc(
			context.Background(), clusterKind, p.Client, &Cluster{}))).
		Complete(&clusters{p.Provider}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(p.Manager).Named("byomachine").For(&Machine{}).
		Watches(&Host{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []ctrl.Request {
			namespace, name, found := strings.Cut(object.GetLabels()[attachedLabel], ".")
			if !found {
				return nil
			}
			return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
		})).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(util.MachineToInfrastructureMapFunc(machineKind))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(p.OfCluster(&MachineList{}))).
		Complete(&machines{p.Provider})
}
