// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/controllers/remote"
	coresetup "sigs.k8s.io/cluster-api/core/setup"
	"sigs.k8s.io/cluster-api/util/apiwarnings"
	"sigs.k8s.io/cluster-api/util/flags"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/callhome"
	bootstrapsetup "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/setup"
	controlplanesetup "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/setup"
	infrasetup "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/inplace"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/runtimeextension"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/jsonlog"
	eventmetrics "github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/metrics"
)

// shutdownTimeout is how long reconciles, and what goes on on hosts, have to end: less than the 30 seconds that a Pod has.
const shutdownTimeout = 25 * time.Second

// newManager returns a manager with the providers' webhooks and reconcilers. It connects to the API server, and starts
// nothing. ctx carries the logger.
func newManager(ctx context.Context, config *rest.Config, o *options) (ctrl.Manager, error) {
	name := "kubexm-" + strings.Join(slices.Sorted(slices.Values(o.providers)), "-")
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = o.qps, o.burst
	config.UserAgent = remote.DefaultClusterAPIUserAgent(name)
	config.WarningHandler = apiwarnings.DefaultHandler(ctrl.LoggerFrom(ctx).WithName("API Server Warning"))

	tlsOptions, metricsOptions, err := flags.GetManagerOptions(o.serving)
	if err != nil {
		return nil, err
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache:  coresetup.ManagerCacheOptions(scheme, name, o.namespace, o.syncPeriod),
		Client: coresetup.ManagerClientOptions(),
		WebhookServer: webhook.NewServer(webhook.Options{
			Port: o.webhookPort, CertDir: o.webhookCertDir, TLSOpts: tlsOptions,
		}),
		Metrics:                 *metricsOptions,
		HealthProbeBindAddress:  o.healthAddress,
		PprofBindAddress:        o.profiler,
		GracefulShutdownTimeout: ptr.To(shutdownTimeout),
		// The priority queue may hold its workers up for ever when it is shut down: docs/decisions/2026-11-26-no-priority-queue.md.
		Controller: ctrlconfig.Controller{UsePriorityQueue: ptr.To(false)},

		LeaderElection: o.leaderElect, LeaderElectionID: name, LeaderElectionNamespace: o.leaderElectNamespace,
		LeaseDuration: &o.leaseDuration, RenewDeadline: &o.renewDeadline, RetryPeriod: &o.retryEvery,
		// The process ends with the manager, so the next one need not wait for the lease to run out.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("management cluster at %s: %w", config.Host, err)
	}
	started := mgr.GetWebhookServer().StartedChecker()
	if err := mgr.AddReadyzCheck("webhook", started); err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("webhook", started); err != nil {
		return nil, err
	}
	for _, provider := range []struct {
		name string
		add  func(context.Context, ctrl.Manager, *options) error
	}{
		{bootstrap, addBootstrap}, {controlPlane, addControlPlane}, {infrastructure, addInfrastructure},
	} {
		if !o.has(provider.name) {
			continue
		}
		if err := provider.add(ctx, mgr, o); err != nil {
			return nil, fmt.Errorf("%s provider: %w", provider.name, err)
		}
	}
	if o.hooksPort > 0 {
		if err := runtimeextension.SetupWithManager(mgr, runtimeextension.Options{
			Port: o.hooksPort, CertDir: o.webhookCertDir, ClientCAFile: o.hooksClientCA, TLSOpts: tlsOptions,
		}); err != nil {
			return nil, fmt.Errorf("runtime extension: %w", err)
		}
	}
	return mgr, nil
}

// newScheme has what any of the providers reads or writes.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme,
		bootstrapsetup.AddToScheme, controlplanesetup.AddToScheme, infrasetup.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

func addBootstrap(ctx context.Context, mgr ctrl.Manager, o *options) error {
	store, err := artifact.OpenStore("")
	if err != nil {
		return err
	}
	signers, err := artifact.ReadSigners(o.bundleKey)
	if err != nil {
		return fmt.Errorf("--bundle-verify-key: %w", err)
	}
	counted, err := eventmetrics.New(metrics.Registry)
	if err != nil {
		return err
	}
	if err := bootstrapsetup.Webhooks(mgr); err != nil {
		return err
	}
	var home *callhome.Server
	if o.callHome != "" {
		home = callhome.NewServer(o.callHomeBind, o.callHome)
	}
	return bootstrapsetup.Reconcilers(ctx, mgr, bootstrapsetup.Options{
		CallHome:    home,
		WatchFilter: o.watchFilter, Concurrency: o.concurrency, HostsAtOnce: o.hostsAtOnce,
		DriftCheckInterval: o.driftCheckInterval, HostHeartbeatInterval: o.hostHeartbeatInterval, Logs: o.hostLogs,
		Artifacts: bootstrapsetup.Bundles(o.bundle, store, signers),
		Reader:    event.Readers(counted, jsonlog.New(os.Stdout)),
	})
}

func addControlPlane(ctx context.Context, mgr ctrl.Manager, o *options) error {
	if err := controlplanesetup.Webhooks(mgr); err != nil {
		return err
	}
	if err := controlplanesetup.Reconcilers(ctx, mgr,
		controlplanesetup.Options{WatchFilter: o.watchFilter, Concurrency: o.concurrency}); err != nil {
		return err
	}
	return inplace.SetupWithManager(mgr, inplace.Options{WatchFilter: o.watchFilter, Concurrency: o.concurrency})
}

func addInfrastructure(_ context.Context, mgr ctrl.Manager, o *options) error {
	if err := infrasetup.Webhooks(mgr); err != nil {
		return err
	}
	return infrasetup.Reconcilers(mgr, infrasetup.Options{WatchFilter: o.watchFilter, Concurrency: o.concurrency})
}
