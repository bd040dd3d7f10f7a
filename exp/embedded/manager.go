// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/controllers/remote"
	coresetup "sigs.k8s.io/cluster-api/core/setup"
	"sigs.k8s.io/cluster-api/util/apiwarnings"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// shutdownTimeout is how long reconciles, and what they do on hosts, have to end when the plane stops.
const shutdownTimeout = 30 * time.Second

// manager is the controller-runtime manager with all reconcilers and webhooks, while it runs.
type manager struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // why it ended; written before done is closed
}

// startManager returns when the reconcilers run and the webhooks answer. ctx limits the starting; the manager runs
// until stop.
func startManager(ctx context.Context, o Options, c *rest.Config, scheme *runtime.Scheme, k keys, log logr.Logger) (*manager, error) {
	port, err := freePort(0)
	if err != nil {
		return nil, fmt.Errorf("port of the webhook server: %w", err)
	}
	server, err := webhookServer(port, k.webhook)
	if err != nil {
		return nil, fmt.Errorf("webhook server: %w", err)
	}
	hooks, err := newAdmission(o, port, k.authority.Cert)
	if err != nil {
		return nil, err
	}

	c = rest.CopyConfig(c)
	c.UserAgent = remote.DefaultClusterAPIUserAgent(coreName)
	c.WarningHandler = apiwarnings.DefaultHandler(log.WithName("API Server Warning"))
	// The manager ends its parts in an order of its own, reconcilers before the webhooks that they call, when life ends.
	base := ctrl.LoggerInto(context.WithoutCancel(ctx), log)
	life, cancel := context.WithCancel(base)
	after, ended := context.WithCancel(base)
	// A name of informers may be used once in a process; metrics alone show it.
	informers := coreName + "-" + string(uuid.NewUUID())
	mgr, err := ctrl.NewManager(c, ctrl.Options{
		Scheme: scheme,
		Logger: log,
		Cache:  coresetup.ManagerCacheOptions(scheme, informers, "", syncPeriod),
		NewCache: func(c *rest.Config, o cache.Options) (cache.Cache, error) {
			inner, err := cache.New(c, o)
			return endingCache{Cache: inner, life: life}, err
		},
		Client:                  coresetup.ManagerClientOptions(),
		WebhookServer:           server,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		BaseContext:             func() context.Context { return base },
		GracefulShutdownTimeout: ptr.To(shutdownTimeout),
		// Names of controllers are unique within a process, to keep apart their metrics, which nobody serves here.
		// The priority queue may hold its workers up for ever when it is shut down: docs/decisions/2026-11-26-no-priority-queue.md.
		Controller: config.Controller{SkipNameValidation: ptr.To(true), UsePriorityQueue: ptr.To(false)},
	})
	if err == nil {
		err = addCore(life, after, mgr)
	}
	for i, setup := range o.Setup {
		if err != nil {
			break
		}
		if err = setup(life, mgr); err != nil {
			err = fmt.Errorf("Setup[%d]: %w", i, err)
		}
	}
	if err == nil {
		var direct client.Client
		if direct, err = client.New(c, client.Options{Scheme: scheme}); err == nil {
			err = hooks.install(ctx, direct)
		}
	}
	if err != nil {
		cancel()
		ended()
		return nil, err
	}

	m := &manager{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		defer ended()
		if m.err = mgr.Start(life); m.err == nil && life.Err() == nil {
			m.err = errors.New("it ended by itself")
		}
	}()
	if err := m.wait(ctx, mgr); err != nil {
		return nil, errors.Join(err, m.stop(context.WithoutCancel(ctx)))
	}
	return m, nil
}

// wait returns when all reconcilers run and the webhook server answers.
func (m *manager) wait(ctx context.Context, mgr ctrl.Manager) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	select {
	case <-mgr.Elected():
	case <-m.done:
		return m.err
	case <-ctx.Done():
		return fmt.Errorf("%w before the caches were filled", context.Cause(ctx))
	}
	answers := mgr.GetWebhookServer().StartedChecker()
	var last error
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, func(context.Context) (bool, error) {
		last = answers(nil)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w before the webhook server answered: %w", context.Cause(ctx), last)
	}
	return nil
}

// stop returns when all reconciles have ended, or the shutdownTimeout or ctx is over.
func (m *manager) stop(ctx context.Context) error {
	m.cancel()
	select {
	case <-m.done:
		return m.err
	case <-ctx.Done():
		return fmt.Errorf("%w before all reconciles had ended", context.Cause(ctx))
	}
}

// endingCache counts as filled when the plane ends. A manager that is stopped while it fills its cache would otherwise
// wait for that, on a full core, for as long as the API server is away: kubernetes-sigs/controller-runtime#3440.
type endingCache struct {
	cache.Cache
	life context.Context
}

func (c endingCache) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	return c.Cache.WaitForCacheSync(ctx) || c.life.Err() != nil
}
