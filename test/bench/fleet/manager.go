// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	coresetup "sigs.k8s.io/cluster-api/core/setup"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/reconcilers"
	bootstrap "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/setup"
	controlplane "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/setup"
	infrastructure "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/inplace"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Manager is what a process with a manager is given, as JSON.
type Manager struct {
	// Kubeconfig and Log are files.
	Kubeconfig, Log string
	// Resync is how often all objects are reconciled, all kinds at the same time; DriftCheckInterval how often a converged host is
	// observed. 0 means what cmd/manager does.
	Resync, DriftCheckInterval time.Duration
	// Floor has reconcilers that get their object from the cache, and do nothing, in the place of ours.
	Floor bool
}

// Hosts is how a manager comes to its hosts, and what they are to be.
type Hosts struct {
	Dial reconcilers.Dial
	Plan reconcilers.Planner
}

// Question is what a manager's process is asked.
type Question string

// The questions: Reconciles and Exchanges alone; all of the Cost; all of it after garbage was collected.
const (
	Count   Question = "count"
	All     Question = "all"
	Collect Question = "collect"
)

// Serve runs the manager, and answers each Question with its Cost as JSON, until the input ends.
func (m Manager) Serve(ctx context.Context, hosts Hosts, in *json.Decoder, out io.Writer) (err error) {
	log, err := os.OpenFile(m.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log), textlogger.Verbosity(2))))
	klog.SetLogger(ctrl.Log)
	ctx, stop := context.WithCancel(ctrl.LoggerInto(ctx, ctrl.Log))
	defer stop()
	spent, err := newMeter()
	if err != nil {
		return err
	}
	mgr, err := m.manager(ctx, hosts, spent)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return errors.New("the caches were not filled")
	}
	answer := json.NewEncoder(out)
	for {
		var asked Question
		if err := in.Decode(&asked); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		read := spent.count
		if asked != Count {
			read = func() (Cost, error) { return spent.read(asked == Collect) }
		}
		cost, err := read()
		if err != nil {
			return err
		}
		if err := answer.Encode(cost); err != nil {
			return err
		}
	}
}

// manager is as that of cmd/manager, but for its webhooks, which the plane has.
func (m Manager) manager(ctx context.Context, hosts Hosts, spent *meter) (ctrl.Manager, error) {
	config, err := clientcmd.BuildConfigFromFlags("", m.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 100, 200
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counted{next: next, calls: &spent.calls} })
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), addToScheme(scheme)); err != nil {
		return nil, err
	}
	resync := m.Resync
	if resync == 0 {
		resync = 10 * time.Minute
	}
	cached := coresetup.ManagerCacheOptions(scheme, "kubexm-bench", "", resync)
	// Informers would resync some time in a tenth of the period around its end, each at its own.
	jittered := cached.NewInformer
	cached.NewInformer = func(
		lw toolscache.ListerWatcher, o runtime.Object, _ time.Duration, i toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		return jittered(lw, o, resync, i)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: cached, Client: coresetup.ManagerClientOptions(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, err
	}
	if m.Floor {
		return mgr, floor(mgr)
	}
	return mgr, errors.Join(
		infrastructure.Reconcilers(mgr, infrastructure.Options{}),
		controlplane.Reconcilers(ctx, mgr, controlplane.Options{}),
		inplace.SetupWithManager(mgr, inplace.Options{}),
		bootstrap.Reconcilers(ctx, mgr, bootstrap.Options{
			Dial: spent.dial(hosts.Dial), Plan: hosts.Plan, DriftCheckInterval: m.DriftCheckInterval,
			Artifacts: func(context.Context, spec.Artifacts, string) (*artifact.Bundle, error) { return nil, nil },
			Holder:    "bench",
		}),
	)
}

// dial counts what is said to hosts.
func (m *meter) dial(dial reconcilers.Dial) reconcilers.Dial {
	return func(ctx context.Context, c ssh.Config) (host.Host, error) {
		h, err := dial(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("played host: %w", err)
		}
		return talked{Host: h, exchanges: &m.exchanges}, nil
	}
}

// talked is a host of which it is counted how often it is observed, and how often somebody begins to change it.
type talked struct {
	host.Host
	exchanges *atomic.Int64
}

func (t talked) Observe(ctx context.Context, q host.Query) (*host.Facts, error) {
	t.exchanges.Add(1)
	return t.Host.Observe(ctx, q)
}

func (t talked) Begin(ctx context.Context, r host.Run) (host.Session, error) {
	t.exchanges.Add(1)
	return t.Host.Begin(ctx, r)
}
