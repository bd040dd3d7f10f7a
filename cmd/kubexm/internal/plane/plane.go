// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plane starts the embedded management plane with all three providers, from the programs of a bundle.
package plane

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/go-logr/logr"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/reconcilers"
	bootstrapsetup "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/openssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/crd"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/webhook"
	controlplanesetup "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	infrasetup "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/inplace"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Options say what a plane works with.
type Options struct {
	// Dir is the plane's directory; Namespace is that of the cluster's objects.
	Dir, Namespace string
	// Hosts is how many hosts the cluster has.
	Hosts int
	// Bundle has the plane's own programs, and all that goes to hosts. More has what goes to hosts with other versions.
	Bundle *artifact.Bundle
	More   []*artifact.Bundle
	// Reader is notified of everything that happens on hosts.
	Reader event.Reader
	// Holder names this process to anyone who finds a host locked.
	Holder string
	// OpenSSH has what is logged in with where a host's Secret says so. No key of it is written into the plane's objects.
	OpenSSH *openssh.Client
	Log     logr.Logger
}

// Start starts the plane, or goes on with the one that an earlier command left. See embedded.Start for its errors.
func Start(ctx context.Context, o Options) (*embedded.Plane, error) {
	settings, err := o.settings()
	if err != nil {
		return nil, err
	}
	return embedded.Start(ctx, settings)
}

func (o Options) settings() (embedded.Options, error) {
	e := embedded.Options{
		Dir: o.Dir, Namespace: o.Namespace, Hosts: o.Hosts, Log: o.Log,
		AddToScheme: []func(*apiruntime.Scheme) error{
			bootstrapsetup.AddToScheme, controlplanesetup.AddToScheme, infrasetup.AddToScheme,
		},
		Setup: []func(context.Context, ctrl.Manager) error{o.bootstrap, o.controlPlane, o.infrastructure},
	}
	for _, program := range []struct {
		component, name string
		path            *string
	}{
		{"etcd", "etcd", &e.Etcd},
		{artifact.Kubernetes, "kube-apiserver", &e.APIServer},
		{artifact.Kubernetes, "kube-controller-manager", &e.ControllerManager},
	} {
		f, err := o.Bundle.Binary(program.component, "", runtime.GOARCH, program.name)
		if err != nil {
			return e, err
		}
		if err := f.Verify(); err != nil { // it is about to be executed here
			return e, err
		}
		*program.path = f.Path
	}
	var err error
	if e.CRDs, err = crd.CRDs(); err != nil {
		return e, err
	}
	hooks, err := webhook.All()
	if err != nil {
		return e, err
	}
	e.MutatingWebhooks, e.ValidatingWebhooks = hooks.Mutating, hooks.Validating
	return e, nil
}

func (o Options) bootstrap(ctx context.Context, mgr ctrl.Manager) error {
	if err := bootstrapsetup.Webhooks(mgr); err != nil {
		return err
	}
	return bootstrapsetup.Reconcilers(ctx, mgr, bootstrapsetup.Options{
		Artifacts: o.artifacts, Reader: o.Reader, Holder: o.Holder, Logs: filepath.Join(o.Dir, "host-logs"),
		Dial: o.dial, Agent: true,
	})
}

// dial connects to a host with the credentials that its Secret has or, where it has none, with what OpenSSH has here.
func (o Options) dial(ctx context.Context, to ssh.Config) (host.Host, error) {
	if err := o.OpenSSH.Complete(ctx, &to); err != nil {
		return nil, err
	}
	return reconcilers.DialSSH(ctx, to)
}

// artifacts are those of the bundle with the version, whatever the objects say: they are made from the config file that names
// the bundles.
func (o Options) artifacts(_ context.Context, _ spec.Artifacts, version string) (*artifact.Bundle, error) {
	var has []string
	for _, b := range append([]*artifact.Bundle{o.Bundle}, o.More...) {
		if b.Manifest().KubernetesVersion == version {
			return b, nil
		}
		has = append(has, b.Manifest().KubernetesVersion)
	}
	return nil, fmt.Errorf("there is no bundle for Kubernetes %s, but for %s: make it with: kubexm bundle create --kubernetes-version %s",
		version, strings.Join(has, ", "), version)
}

func (o Options) controlPlane(ctx context.Context, mgr ctrl.Manager) error {
	if err := controlplanesetup.Webhooks(mgr); err != nil {
		return err
	}
	if err := controlplanesetup.Reconcilers(ctx, mgr, controlplanesetup.Options{}); err != nil {
		return err
	}
	return inplace.SetupWithManager(mgr, inplace.Options{})
}

func (o Options) infrastructure(_ context.Context, mgr ctrl.Manager) error {
	if err := infrasetup.Webhooks(mgr); err != nil {
		return err
	}
	return infrasetup.Reconcilers(mgr, infrasetup.Options{})
}
