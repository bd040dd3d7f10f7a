// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Package is what the tests of one package share.
type Package struct {
	Scheme *runtime.Scheme
	// Setup adds webhooks, and reconcilers if there are any that serve all tests, to the one manager.
	Setup func(ctrl.Manager) error
	// Use is given a client without a cache, and how the API server is reached, before the first test.
	Use func(client.Client, *rest.Config)
}

// Run runs a package's tests with one API server and one manager, and returns what its TestMain exits with. Requests that webhooks are
// asked about may fail until the manager serves them, which is not waited for.
func (p Package) Run(m *testing.M) int {
	code, err := p.run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func (p Package) run(m *testing.M) (code int, err error) {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	environment, err := Start(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = environment.Stop() }()
	api, err := client.New(environment.Config, client.Options{Scheme: p.Scheme})
	if err != nil {
		return 0, err
	}
	p.Use(api, environment.Config)
	hooks := environment.WebhookInstallOptions
	mgr, err := ctrl.NewManager(environment.Config, ctrl.Options{
		Scheme: p.Scheme, Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir,
		}),
	})
	if err != nil {
		return 0, err
	}
	if err := p.Setup(mgr); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	code = m.Run()
	stop()
	return code, <-ended
}
