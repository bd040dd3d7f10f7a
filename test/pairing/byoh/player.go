// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package byoh

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
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
	// Log gets what agents say, one call for each line. It may be nil.
	Log func(format string, args ...any)
}

// Player is the provider while it runs.
type Player struct {
	Options
	// Client reads and writes the provider's kinds too.
	Client client.Client

	agents *agents
	stop   context.CancelFunc
	ended  chan error
}

// Start installs the kinds, registers all hosts and runs controllers and agents until Stop.
func Start(ctx context.Context, o Options) (*Player, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	direct, err := client.New(o.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	if err := install(ctx, direct); err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(o.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		// A test may play more than once.
		Controller: config.Controller{SkipNameValidation: new(true)},
		// What was just written is read.
		NewClient: func(*rest.Config, client.Options) (client.Client, error) { return direct, nil },
	})
	if err != nil {
		return nil, err
	}
	p := &Player{Options: o, Client: direct, agents: &agents{client: direct, hosts: o.Hosts, log: o.Log}, ended: make(chan error, 1)}
	if err := p.setup(manager); err != nil {
		return nil, err
	}
	for _, h := range o.Hosts {
		if err := p.Register(ctx, h); err != nil {
			return nil, err
		}
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop = stop
	go func() { p.ended <- manager.Start(life) }()
	return p, nil
}

// Stop ends controllers and agents, and returns when they have ended.
func (p *Player) Stop() error {
	p.stop()
	return <-p.ended
}

// Register is the start of a host's agent: the addresses in its ByoHost are what they are now.
func (p *Player) Register(ctx context.Context, h *hosts.Host) error {
	return p.agents.register(ctx, p.Namespace, h, p.Labels[h.Name])
}

// Definitions are the provider's kinds.
func Definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all struct {
		metav1.TypeMeta `json:",inline"`
		Items           []*apiextensionsv1.CustomResourceDefinition `json:"items"`
	}
	if err := yaml.UnmarshalStrict(definitions, &all); err != nil {
		return nil, fmt.Errorf("read the definitions: %w", err)
	}
	return all.Items, nil
}

// install creates the kinds, and returns when they are served.
func install(ctx context.Context, c client.Client) error {
	all, err := Definitions()
	if err != nil {
		return err
	}
	for _, definition := range all {
		if err := c.Create(ctx, definition); err != nil {
			return err
		}
	}
	for _, definition := range all {
		if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(definition), definition)
			return slices.ContainsFunc(definition.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
				return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			}), err
		}); err != nil {
			return fmt.Errorf("%s is not served: %w", definition.Name, err)
		}
	}
	return nil
}

// setup watches what the provider watches.
func (p *Player) setup(manager ctrl.Manager) error {
	if err := ctrl.NewControllerManagedBy(manager).Named("byohost").For(&Host{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: len(p.Hosts)}).Complete(p.agents); err != nil {
		return err
	}
	clusterKind, machineKind := groupVersion.WithKind("ByoCluster"), groupVersion.WithKind("ByoMachine")
	if err := ctrl.NewControllerManagedBy(manager).Named("byocluster").For(&Cluster{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(util.ClusterToInfrastructureMapFunc(
			context.Background(), clusterKind, p.Client, &Cluster{}))).
		Complete(&clusters{client: p.Client}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).Named("byomachine").For(&Machine{}).
		Watches(&Host{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []ctrl.Request {
			namespace, name, found := strings.Cut(object.GetLabels()[attachedLabel], ".")
			if !found {
				return nil
			}
			return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
		})).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(util.MachineToInfrastructureMapFunc(machineKind))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(p.ofCluster)).
		Complete(&machines{client: p.Client})
}

// ofCluster are a Cluster's ByoMachines.
func (p *Player) ofCluster(ctx context.Context, object client.Object) []ctrl.Request {
	all := &MachineList{}
	if err := p.Client.List(ctx, all, client.InNamespace(object.GetNamespace()), client.MatchingLabels{
		clusterv1.ClusterNameLabel: object.GetName(),
	}); err != nil {
		p.Log("list the ByoMachines of %s: %v", object.GetName(), err)
		return nil
	}
	var requests []ctrl.Request
	for i := range all.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
	}
	return requests
}
