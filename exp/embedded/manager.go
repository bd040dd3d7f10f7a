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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/controllers/remote"
	coresetup "sigs.k8s.io/cluster-api/core/setup"
	"sigs.k8s.io/cluster-api/util/apiwarnings"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/crds"
)

// shutdownTimeout is how long reconciles have to end when the plane stops.
const shutdownTimeout = 10 * time.Second

// manager is the controller-runtime manager with all reconcilers and webhooks, while it runs.
type manager struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // why it ended; written before done is closed
}

// startManager returns when the webhooks answer and the caches are filled. ctx limits the starting; the manager runs
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
	hooks, err := readAdmission(append([][]byte{crds.Webhooks()}, o.Webhooks...), port, k.authority.Cert)
	if err != nil {
		return nil, err
	}

	c = rest.CopyConfig(c)
	c.UserAgent = remote.DefaultClusterAPIUserAgent(coreName)
	c.WarningHandler = apiwarnings.DefaultHandler(log.WithName("API Server Warning"))
	life, cancel := context.WithCancel(ctrl.LoggerInto(context.WithoutCancel(ctx), log))
	mgr, err := ctrl.NewManager(c, ctrl.Options{
		Scheme:                  scheme,
		Logger:                  log,
		Cache:                   coresetup.ManagerCacheOptions(scheme, coreName, "", syncPeriod),
		Client:                  coresetup.ManagerClientOptions(),
		WebhookServer:           server,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		BaseContext:             func() context.Context { return life },
		GracefulShutdownTimeout: ptr.To(shutdownTimeout),
		// Names of controllers are unique within a process, to keep apart their metrics, which nobody serves here.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err == nil {
		err = addCore(life, mgr)
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
		return nil, err
	}

	m := &manager{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		if m.err = mgr.Start(life); m.err == nil && life.Err() == nil {
			m.err = errors.New("it ended by itself")
		}
	}()
	if err := m.wait(ctx, mgr); err != nil {
		return nil, errors.Join(err, m.stop())
	}
	return m, nil
}

func (m *manager) wait(ctx context.Context, mgr ctrl.Manager) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	go func() {
		select {
		case <-m.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	served := mgr.GetWebhookServer().StartedChecker()
	var last error
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, func(context.Context) (bool, error) {
		last = served(nil)
		return last == nil, nil
	})
	if err == nil && mgr.GetCache().WaitForCacheSync(ctx) {
		return nil
	}
	select {
	case <-m.done:
		return m.err
	default:
		return fmt.Errorf("%w before it was ready: %w", context.Cause(ctx), errors.Join(last, errors.New("the caches are not filled")))
	}
}

// stop returns when all reconciles have ended or the shutdownTimeout is over.
func (m *manager) stop() error {
	m.cancel()
	<-m.done
	return m.err
}
