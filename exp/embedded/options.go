// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Options say what a plane consists of.
type Options struct {
	// Dir keeps the plane's state from one process to the next: objects, keys, certificates, kubeconfig, logs. It is
	// created with mode 0700, and has it from then on. One process at a time uses it.
	Dir string

	// Etcd, APIServer and ControllerManager are the paths of the programs etcd, kube-apiserver and
	// kube-controller-manager. Of the last, only the garbage collector and the controller of namespaces run: without
	// them, what an object owns would outlive it.
	Etcd, APIServer, ControllerManager string

	// Hosts is about how many hosts its clusters are to have: the API server's memory is bounded accordingly. 0 is a few dozen.
	Hosts int

	// Namespace is created if it is not there. Empty: none.
	Namespace string

	// AddToScheme makes kinds known to the manager and to the plane's client, besides those of Kubernetes and of
	// Cluster API's core.
	AddToScheme []func(*runtime.Scheme) error
	// CRDs are installed besides those of Cluster API's core, and updated if an earlier process installed others.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// MutatingWebhooks and ValidatingWebhooks are installed with the address of the manager's webhook server, at the
	// paths of the Services that they name; Setup registers the handlers.
	MutatingWebhooks   []*admissionregistrationv1.MutatingWebhookConfiguration
	ValidatingWebhooks []*admissionregistrationv1.ValidatingWebhookConfiguration
	// Setup adds reconcilers and webhooks to the manager, before it starts. The context is that of the plane's life
	// and carries its logger.
	Setup []func(context.Context, ctrl.Manager) error

	// Log receives the few lines that are about the plane itself. What its parts log goes to files in Dir. The zero
	// Logger drops them.
	Log logr.Logger
}

// complete returns o with an absolute Dir, or all that is wrong with o.
func (o Options) complete() (Options, error) {
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("Dir: a directory for the plane's state is required"))
	} else if dir, err := filepath.Abs(o.Dir); err != nil {
		errs = append(errs, fmt.Errorf("Dir: %w", err))
	} else {
		o.Dir = dir
	}
	for _, program := range []struct {
		field string
		path  *string
	}{{"Etcd", &o.Etcd}, {"APIServer", &o.APIServer}, {"ControllerManager", &o.ControllerManager}} {
		path, err := executable(*program.path)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", program.field, err))
		}
		*program.path = path
	}
	if o.Namespace != "" {
		for _, problem := range validation.IsDNS1123Label(o.Namespace) {
			errs = append(errs, fmt.Errorf("Namespace: %q: %s", o.Namespace, problem))
		}
	}
	return o, errors.Join(errs...)
}

// executable returns the absolute path of a program: children do not run in this process's working directory.
func executable(path string) (string, error) {
	if path == "" {
		return "", errors.New("the path of the program is required")
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "", fmt.Errorf("%s is not an executable file", path)
	}
	return filepath.Abs(path)
}
