// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimeextension

import (
	"crypto/tls"
	"fmt"
	"path/filepath"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Options is how the hooks are served.
type Options struct {
	// Host is the address to listen on, empty for all, and Port the port.
	Host string
	Port int
	// CertDir is the directory with tls.crt and tls.key.
	CertDir string
	// ClientCAFile has the certificate authorities (PEM), one of which must have signed the client's certificate. If empty, nobody is
	// asked for one.
	ClientCAFile string
	TLSOpts      []func(*tls.Config)
}

// SetupWithManager adds the server. Like webhooks, it answers whether or not its manager leads. The manager's scheme must have Cluster
// API's kinds and those of the bootstrap provider.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	// Not from a cache: what Cluster API has just written counts, and a cache may not have it yet.
	hooks, err := newServer(&Extension{Reader: mgr.GetAPIReader()}, o)
	if err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("runtime-extension", hooks.StartedChecker()); err != nil {
		return err
	}
	return mgr.Add(hooks)
}

func newServer(extension *Extension, o Options) (*server.Server, error) {
	catalog := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		return nil, fmt.Errorf("catalog of hooks: %w", err)
	}
	clientCA := o.ClientCAFile
	if clientCA != "" {
		// The server joins it to the directory of its certificate.
		var err error
		if clientCA, err = filepath.Rel(o.CertDir, clientCA); err != nil {
			return nil, fmt.Errorf("certificate authorities of clients: %w", err)
		}
	}
	hooks, err := server.New(server.Options{
		Catalog: catalog, Host: o.Host, Port: o.Port, CertDir: o.CertDir, ClientCAName: clientCA, TLSOpts: o.TLSOpts,
	})
	if err != nil {
		return nil, fmt.Errorf("server of hooks: %w", err)
	}
	for _, handler := range []server.ExtensionHandler{
		{Name: "can-update-machine", Hook: runtimehooksv1.CanUpdateMachine, HandlerFunc: extension.CanUpdateMachine},
		{Name: "can-update-machine-set", Hook: runtimehooksv1.CanUpdateMachineSet, HandlerFunc: extension.CanUpdateMachineSet},
		{Name: "update-machine", Hook: runtimehooksv1.UpdateMachine, HandlerFunc: extension.UpdateMachine},
	} {
		if err := hooks.AddExtensionHandler(handler); err != nil {
			return nil, fmt.Errorf("hook %s: %w", handler.Name, err)
		}
	}
	return hooks, nil
}
