// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package runtimeextension

import (
	"crypto/tls"
	"fmt"

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
	TLSOpts []func(*tls.Config)
}

// SetupWithManager adds the server. Like webhooks, it answers whether or not its manager leads. The manager's scheme must have Cluster
// API's kinds and those of the bootstrap provider.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	catalog := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		return fmt.Errorf("catalog of hooks: %w", err)
	}
	hooks, err := server.New(server.Options{Catalog: catalog, Host: o.Host, Port: o.Port, CertDir: o.CertDir, TLSOpts: o.TLSOpts})
	if err != nil {
		return fmt.Errorf("server of hooks: %w", err)
	}
	// Not from a cache: what Cluster API has just written counts, and a cache may not have it yet.
	extension := &Extension{Reader: mgr.GetAPIReader()}
	for _, handler := range []server.ExtensionHandler{
		{Name: "can-update-machine", Hook: runtimehooksv1.CanUpdateMachine, HandlerFunc: extension.CanUpdateMachine},
		{Name: "can-update-machine-set", Hook: runtimehooksv1.CanUpdateMachineSet, HandlerFunc: extension.CanUpdateMachineSet},
		{Name: "update-machine", Hook: runtimehooksv1.UpdateMachine, HandlerFunc: extension.UpdateMachine},
	} {
		if err := hooks.AddExtensionHandler(handler); err != nil {
			return fmt.Errorf("hook %s: %w", handler.Name, err)
		}
	}
	if err := mgr.AddReadyzCheck("runtime-extension", hooks.StartedChecker()); err != nil {
		return err
	}
	return mgr.Add(hooks)
}
