// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/cluster"
	"sigs.k8s.io/cluster-api/core/reconcilers/machine"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinehealthcheck"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	coresetup "sigs.k8s.io/cluster-api/core/setup"
	coreadmission "sigs.k8s.io/cluster-api/core/webhooks/admission"
	"sigs.k8s.io/cluster-api/util/index"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// Defaults of the core manager's flags --clustercache-client-qps, --clustercache-client-burst,
// --remote-connection-grace-period, --remote-conditions-grace-period and --sync-period.
const (
	clusterCacheQPS             = 20
	clusterCacheBurst           = 30
	remoteConnectionGracePeriod = 50 * time.Second
	remoteConditionsGracePeriod = 5 * time.Minute
	syncPeriod                  = 10 * time.Minute
)

// clusterCacheDials is how long after a failed dial of a cluster the next comes. The core manager's is 30 s.
const clusterCacheDials = time.Second

// concurrency of each reconciler. A plane has one cluster, or a few.
const concurrency = 10

// coreName is the core manager's name in user agents and metrics.
const coreName = "cluster-api-controller-manager"

// newScheme has the old versions of core's kinds as well: core registers its webhooks together with conversion from them.
func newScheme(add []func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1beta1.AddToScheme, clusterv1.AddToScheme,
	}, add...) {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// addCore adds what the core manager (core/main.go of Cluster API) runs with its default feature gates, but the
// reconcilers for kinds that are not installed. The feature gate RuntimeSDK is off: its client is not exported. after ends when the
// manager has.
func addCore(ctx, after context.Context, mgr ctrl.Manager) error {
	if err := index.AddDefaultIndexes(ctx, mgr); err != nil {
		return fmt.Errorf("indexes: %w", err)
	}
	secrets, err := coresetup.CreateSecretCachingClient(mgr)
	if err != nil {
		return fmt.Errorf("client for Secrets: %w", err)
	}
	options := controller.Options{MaxConcurrentReconciles: concurrency}
	cached, err := clustercache.SetupWithManager(ctx, mgr, clustercache.Options{
		SecretClient: secrets,
		Cache:        coresetup.ClusterCacheCacheOptions(),
		Client:       coresetup.ClusterCacheClientOptions(coreName, clusterCacheQPS, clusterCacheBurst),
	}, options)
	if err != nil {
		return fmt.Errorf("cluster cache: %w", err)
	}
	// A first control plane host is seconds away from having an API server when it is dialled first; the cache would dial it once more
	// after 30 seconds, and until then no Machine has a Node. The library offers that to tests alone, so its absence is no silent matter.
	dials, ok := cached.(interface {
		SetConnectionCreationRetryInterval(interval time.Duration)
	})
	if !ok {
		return errors.New("cluster cache: it does not take the interval at which clusters are dialled")
	}
	dials.SetConnectionCreationRetryInterval(clusterCacheDials)
	clusters := lastingSources{ClusterCache: cached, life: after}

	for _, reconciler := range []struct {
		kind  string
		setup func(context.Context, ctrl.Manager, controller.Options) error
	}{
		{"Cluster", (&cluster.Reconciler{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), ClusterCache: clusters,
			RemoteConnectionGracePeriod: remoteConnectionGracePeriod,
		}).SetupWithManager},
		{"Machine", (&machine.Reconciler{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), ClusterCache: clusters,
			RemoteConditionsGracePeriod: remoteConditionsGracePeriod,
		}).SetupWithManager},
		{"MachineSet", (&machineset.Reconciler{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), ClusterCache: clusters,
			PreflightChecks: sets.New(clusterv1.MachineSetPreflightCheckAll),
		}).SetupWithManager},
		{"MachineDeployment", (&machinedeployment.Reconciler{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(),
		}).SetupWithManager},
		{"MachineHealthCheck", (&machinehealthcheck.Reconciler{
			Client: mgr.GetClient(), ClusterCache: clusters,
		}).SetupWithManager},
	} {
		if err := reconciler.setup(ctx, mgr, options); err != nil {
			return fmt.Errorf("reconciler of %s: %w", reconciler.kind, err)
		}
	}

	// The reconcilers rely on what the webhooks set.
	for _, hook := range []struct {
		kind  string
		setup func(ctrl.Manager) error
	}{
		{"Cluster", (&coreadmission.Cluster{Client: mgr.GetClient(), ClusterCacheReader: clusters}).SetupWebhookWithManager},
		{"Machine", (&coreadmission.Machine{}).SetupWebhookWithManager},
		{"MachineSet", (&coreadmission.MachineSet{}).SetupWebhookWithManager},
		{"MachineDeployment", (&coreadmission.MachineDeployment{}).SetupWebhookWithManager},
		{"MachineHealthCheck", (&coreadmission.MachineHealthCheck{}).SetupWebhookWithManager},
		{"MachineDrainRule", (&coreadmission.MachineDrainRule{}).SetupWebhookWithManager},
		{"MachinePool", (&coreadmission.MachinePool{}).SetupWebhookWithManager},
	} {
		if err := hook.setup(mgr); err != nil {
			return fmt.Errorf("webhook of %s: %w", hook.kind, err)
		}
	}
	return nil
}
