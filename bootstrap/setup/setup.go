// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setup puts the bootstrap provider into a manager.
package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/callhome"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostlogs"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/reconcilers"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/webhooks"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/watch"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

// Options is how the reconciler runs. Artifacts is required.
type Options struct {
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter that objects must have. Empty means all objects.
	WatchFilter string
	// Concurrency is how many objects are reconciled at once, 10 if 0. No reconcile waits for a host.
	Concurrency int
	// HostsAtOnce is how many workers are worked on at once, 50 if 0. Control plane hosts do not count.
	HostsAtOnce int
	// DriftCheckInterval is how often a converged host is observed, 10 minutes if 0.
	DriftCheckInterval time.Duration
	// HostHeartbeatInterval is how often KubexmHosts are dialled that nobody has, never if 0.
	HostHeartbeatInterval time.Duration
	// Settle is how long a host must be well after it was disrupted before another one of its pool follows, reconcilers.Settle if 0.
	Settle time.Duration
	// Progress is how often the progress of one host is written to its KubexmConfig, every 2 seconds if 0.
	Progress time.Duration

	// Logs is the directory where the logs of hosts that failed are kept before these are rebooted or reset. If empty, they are not.
	Logs string

	// Artifacts opens bundles; see Bundles.
	Artifacts reconcilers.Artifacts
	// Clock is the one that maintenance windows are compared with, the system's if nil.
	Clock clock.PassiveClock
	// Dial connects to hosts, over SSH if nil.
	Dial reconcilers.Dial
	// Agent says that Dial finds something to log in with by itself, where the Secret of a host says so; see infra.KeyAgent. It is for who
	// runs the reconcilers beside the user's own SSH agent.
	Agent bool
	// CallHome takes the connections that hosts open themselves; it is started with the manager. If nil, no host can be had do so.
	CallHome *callhome.Server
	// Plan plans hosts, by the pipelines if nil.
	Plan reconcilers.Planner
	// Reader is notified of everything that happens on hosts, one event at a time. May be nil.
	Reader event.Reader
	// Holder names this process to who finds a host locked. If empty, "manager" and the name of this machine.
	Holder string
}

func (o Options) withDefaults() (Options, error) {
	if o.Artifacts == nil {
		return o, errors.New("Artifacts: say where binaries and images come from")
	}
	o.Concurrency = cmp.Or(o.Concurrency, 10)
	o.HostsAtOnce = cmp.Or(o.HostsAtOnce, 50)
	o.DriftCheckInterval = cmp.Or(o.DriftCheckInterval, 10*time.Minute)
	o.Settle = cmp.Or(o.Settle, reconcilers.Settle)
	o.Progress = cmp.Or(o.Progress, 2*time.Second)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Dial == nil {
		o.Dial = reconcilers.DialSSH
	}
	if o.Plan == nil {
		o.Plan = reconcilers.Pipelines
	}
	if o.Holder == "" {
		name, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("name of this machine: %w", err)
		}
		o.Holder = "manager " + name
	}
	if o.Reader != nil {
		o.Reader = serial(o.Reader)
	}
	return o, nil
}

// serial keeps apart what runs on different hosts tell at the same time.
func serial(r event.Reader) event.Reader {
	var mu sync.Mutex
	return event.ReaderFunc(func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		r.Read(e)
	})
}

// AddToScheme adds the kinds that the provider reads and writes.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(
		clientgoscheme.AddToScheme(scheme), clusterv1.AddToScheme(scheme),
		bootstrapv1.AddToScheme(scheme), infrav1.AddToScheme(scheme),
	)
}

// Webhooks serves the provider's webhooks.
func Webhooks(mgr ctrl.Manager) error { return webhooks.SetupWithManager(mgr) }

// Reconcilers adds the provider's reconcilers. The manager's scheme must have what AddToScheme adds. ctx carries the
// logger of what runs on hosts.
func Reconcilers(ctx context.Context, mgr ctrl.Manager, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return fmt.Errorf("bootstrap provider: %w", err)
	}
	runner := reconcilers.NewRunner(ctx, o.HostsAtOnce, o.Progress)
	if err := mgr.Add(runner.Runnable()); err != nil {
		return err
	}
	if o.HostHeartbeatInterval > 0 {
		if err := mgr.Add(&reconcilers.Heartbeats{
			Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), WatchFilter: o.WatchFilter,
			Every: o.HostHeartbeatInterval, Dial: o.Dial, Holder: o.Holder,
		}); err != nil {
			return err
		}
	}
	if o.CallHome != nil {
		if err := mgr.Add(o.CallHome); err != nil {
			return err
		}
	}
	reader := mgr.GetClient()
	ofCluster, err := util.ClusterToTypedObjectsMapper(reader, &bootstrapv1.KubexmConfigList{}, mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("map Clusters to KubexmConfigs: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr).
		For(&bootstrapv1.KubexmConfig{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(ofMachine)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ofCluster), builder.WithPredicates(watch.ClusterChanged())).
		Watches(&bootstrapv1.KubexmClusterConfig{}, handler.EnqueueRequestsFromMapFunc(ofClusterConfig(reader)),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, heldChanged()))).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(ofSecret(reader)),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(definitions(), handler.EnqueueRequestsFromMapFunc(ofDefinition(reader)),
			builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WatchesRawSource(runner.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency})
	r := &reconcilers.KubexmConfigReconciler{
		Client: reader, Reader: mgr.GetAPIReader(), WatchFilter: o.WatchFilter,
		Events: mgr.GetEventRecorder("kubexmconfig"), Runner: runner, Dial: o.Dial, Agent: o.Agent, Artifacts: o.Artifacts, Plan: o.Plan, Reads: o.Reader,
		CallHome: o.CallHome, Slots: engine.NewSlots(),
		Holder: o.Holder, DriftCheckInterval: o.DriftCheckInterval, Settle: o.Settle, Clock: o.Clock, Logs: hostlogs.Dir(o.Logs),
	}
	built, err := b.Build(r)
	if err != nil {
		return fmt.Errorf("set up the controller of KubexmConfigs: %w", err)
	}
	// Nobody says in which order providers are installed, and a watch of a kind that is not there keeps a manager from starting.
	r.Watch = (&kinds{mgr: mgr, built: built, begun: map[schema.GroupKind]client.Object{}}).watch
	return errors.Join(addRemediation(mgr, o), addOperations(ctx, mgr, o, r))
}
