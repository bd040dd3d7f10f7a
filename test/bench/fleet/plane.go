// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrap "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/crd"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/webhook"
	controlplane "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	infrastructure "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/setup"
)

const namespace = "fleet"

// Plane is what a process with a management plane is given, as JSON.
type Plane struct {
	// Dir is where it keeps its state and logs. Etcd, APIServer and ControllerManager are programs.
	Dir, Etcd, APIServer, ControllerManager string
	// Hosts is how many it is for.
	Hosts int
}

func addToScheme(scheme *runtime.Scheme) error {
	return errors.Join(bootstrap.AddToScheme(scheme), controlplane.AddToScheme(scheme), infrastructure.AddToScheme(scheme))
}

// ServePlane reads a Plane, prints the path of an administrator's kubeconfig when it is ready, and ends when its input does.
func ServePlane(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	decoder := json.NewDecoder(in)
	var p Plane
	if err := decoder.Decode(&p); err != nil {
		return err
	}
	definitions, err := crd.CRDs()
	if err != nil {
		return err
	}
	hooks, err := webhook.All()
	if err != nil {
		return err
	}
	plane, err := embedded.Start(ctx, embedded.Options{
		Dir: p.Dir, Namespace: namespace, Hosts: p.Hosts, Etcd: p.Etcd, APIServer: p.APIServer, ControllerManager: p.ControllerManager,
		AddToScheme: []func(*runtime.Scheme) error{addToScheme},
		CRDs:        definitions, MutatingWebhooks: hooks.Mutating, ValidatingWebhooks: hooks.Validating,
		Setup: []func(context.Context, ctrl.Manager) error{func(_ context.Context, mgr ctrl.Manager) error {
			return errors.Join(infrastructure.Webhooks(mgr), controlplane.Webhooks(mgr), bootstrap.Webhooks(mgr))
		}},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop(context.WithoutCancel(ctx))) }()
	if err := json.NewEncoder(out).Encode(filepath.Join(p.Dir, "kubeconfig")); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, in) // its end is all that is waited for
	return nil
}
