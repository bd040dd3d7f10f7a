// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package management makes management clusters of a few processes, for tests whose hosts are all for what is managed.
package management

import (
	"context"
	"path/filepath"
	"runtime"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapsetup "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/crd"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/webhook"
	controlplanesetup "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	infrasetup "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/inplace"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
)

// Start starts an embedded plane in a directory, with a namespace unless that is empty, and with the reconcilers and webhooks
// of all three providers, as the manager has them. Hosts get what the bundle has. change, if any, changes how hosts are worked on.
func Start(
	ctx context.Context, dir, namespace string, bundle *artifact.Bundle, store *artifact.Store, change ...func(*bootstrapsetup.Options),
) (*embedded.Plane, error) {
	hosts := bootstrapsetup.Options{Artifacts: bootstrapsetup.Bundles(bundle.Dir(), store, nil)}
	for _, f := range change {
		f(&hosts)
	}
	o := embedded.Options{
		Dir: dir, Namespace: namespace,
		AddToScheme: []func(*apiruntime.Scheme) error{bootstrapsetup.AddToScheme, controlplanesetup.AddToScheme, infrasetup.AddToScheme},
		Setup: []func(context.Context, ctrl.Manager) error{
			func(ctx context.Context, mgr ctrl.Manager) error { return bootstrapsetup.Reconcilers(ctx, mgr, hosts) },
			func(ctx context.Context, mgr ctrl.Manager) error {
				return controlplanesetup.Reconcilers(ctx, mgr, controlplanesetup.Options{})
			},
			func(_ context.Context, mgr ctrl.Manager) error {
				return inplace.SetupWithManager(mgr, inplace.Options{})
			},
			func(_ context.Context, mgr ctrl.Manager) error {
				return infrasetup.Reconcilers(mgr, infrasetup.Options{})
			},
			func(_ context.Context, mgr ctrl.Manager) error { return bootstrapsetup.Webhooks(mgr) },
			func(_ context.Context, mgr ctrl.Manager) error { return controlplanesetup.Webhooks(mgr) },
			func(_ context.Context, mgr ctrl.Manager) error { return infrasetup.Webhooks(mgr) },
		},
	}
	for _, program := range []struct {
		component, name string
		path            *string
	}{
		{"etcd", "etcd", &o.Etcd},
		{artifact.Kubernetes, "kube-apiserver", &o.APIServer},
		{artifact.Kubernetes, "kube-controller-manager", &o.ControllerManager},
	} {
		file, err := bundle.Binary(program.component, "", runtime.GOARCH, program.name)
		if err != nil {
			return nil, err
		}
		*program.path = file.Path
	}
	var err error
	if o.CRDs, err = definitions(); err != nil {
		return nil, err
	}
	hooks, err := webhook.All()
	if err != nil {
		return nil, err
	}
	o.MutatingWebhooks, o.ValidatingWebhooks = hooks.Mutating, hooks.Validating
	return embedded.Start(ctx, o)
}

// Kubeconfig is the administrator's, of a plane in a directory.
func Kubeconfig(dir string) string { return filepath.Join(dir, "kubeconfig") }

// definitions have the label that providers' components have: what looks into management clusters finds the kinds by it.
func definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := crd.CRDs()
	if err != nil {
		return nil, err
	}
	for _, definition := range all {
		metav1.SetMetaDataLabel(&definition.ObjectMeta, clusterv1.ProviderNameLabel, "kubexm")
	}
	return all, nil
}
