// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapsetup "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/crd"
	controlplanesetup "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	infrasetup "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

const (
	poolName  = "e2"
	namespace = "fleet"
	// workers is how many of the hosts are for workers; one more is for the control plane.
	workers = 3
	// poll is how often one checks what must become so.
	poll = 250 * time.Millisecond
	// stopping is how long the end of everything may take.
	stopping = time.Minute
)

// environment is a management cluster, with hosts.
type environment struct {
	*WithT
	t *testing.T
	// dir keeps state and logs. It is left behind when the test fails.
	dir    string
	bundle *artifact.Bundle

	pool *lab.Lab
	// roles are the hosts' labels, in order; system is theirs.
	roles  []string
	system hosts.System

	plane *embedded.Plane
	// api is the management cluster's, without a cache.
	api       client.Client
	clientset kubernetes.Interface
	providers []*provider
}

// start makes the hosts and the management cluster with our providers' components, and none of their managers yet.
func start(t *testing.T) *environment {
	t.Helper()
	return startWith(t, poolName, append([]string{"control-plane"}, slices.Repeat([]string{"worker"}, workers)...)...)
}

// startWith does so with a host for each of these roles.
func startWith(t *testing.T, pool string, roles ...string) *environment {
	t.Helper()
	return startOn(t, hosts.Debian, pool, roles...)
}

// startOn does so with hosts of an operating system.
func startOn(t *testing.T, system hosts.System, pool string, roles ...string) *environment {
	t.Helper()
	e, manager := prepare(t)
	e.roles, e.system = roles, system
	e.startHosts(pool)
	e.manage(manager)
	return e
}

// prepare opens the bundle and compiles the managers' program, whose path it returns.
func prepare(t *testing.T) (e *environment, manager string) {
	t.Helper()
	e = &environment{WithT: NewWithT(t), t: t}
	e.SetDefaultEventuallyPollingInterval(poll)
	e.SetDefaultEventuallyTimeout(time.Minute)
	e.dir = lab.Dir(t)
	ctx := t.Context()
	store, err := artifact.OpenStore("")
	e.Expect(err).NotTo(HaveOccurred())
	e.bundle, err = artifact.Open(ctx, lab.Bundle(t, "KUBEXM_BUNDLE", "bundle"), store)
	e.Expect(err).NotTo(HaveOccurred(), "make artifacts builds the bundle")

	manager = filepath.Join(e.dir, "manager")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", manager, "../../cmd/manager").CombinedOutput()
	e.Expect(err).NotTo(HaveOccurred(), "%s", out)
	return e, manager
}

// manage makes the management cluster.
func (e *environment) manage(manager string) {
	e.startPlane()
	e.providers = e.install(manager)
	e.t.Cleanup(func() {
		for _, p := range e.providers {
			if p.process != nil {
				e.end(p)
			}
		}
	})
}

func (e *environment) startHosts(pool string) {
	e.t.Helper()
	e.pool = lab.Start(e.t, hosts.Options{
		Name: pool, Count: len(e.roles), System: e.system, Subnet: lab.Subnet(e.t, "E2E_SUBNET"), Dir: filepath.Join(e.dir, "hosts"),
	})
}

// names are those of all hosts; the first is the control plane's.
func (e *environment) names() []string {
	var names []string
	for _, h := range e.pool.Hosts {
		names = append(names, h.Name)
	}
	return names
}

// expectReset compares hosts with what they were before anybody touched them.
func (e *environment) expectReset(names ...string) {
	e.t.Helper()
	e.pool.WantReset(e.t, e.pool.Named(names...)...)
}

func (e *environment) startPlane() {
	o := embedded.Options{
		Dir: filepath.Join(e.dir, "plane"), Namespace: namespace,
		AddToScheme: []func(*apiruntime.Scheme) error{bootstrapsetup.AddToScheme, controlplanesetup.AddToScheme, infrasetup.AddToScheme},
	}
	for _, program := range []struct {
		component, name string
		path            *string
	}{
		{"etcd", "etcd", &o.Etcd},
		{artifact.Kubernetes, "kube-apiserver", &o.APIServer},
		{artifact.Kubernetes, "kube-controller-manager", &o.ControllerManager},
	} {
		file, err := e.bundle.Binary(program.component, "", runtime.GOARCH, program.name)
		e.Expect(err).NotTo(HaveOccurred())
		*program.path = file.Path
	}
	var err error
	o.CRDs, err = crd.CRDs()
	e.Expect(err).NotTo(HaveOccurred())
	e.plane, err = embedded.Start(e.t.Context(), o)
	e.Expect(err).NotTo(HaveOccurred())
	e.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopping)
		defer cancel()
		if err := e.plane.Stop(ctx); err != nil {
			e.t.Error(err)
		}
	})
	e.api = e.plane.Client()
	e.clientset, err = kubernetes.NewForConfig(e.plane.RESTConfig())
	e.Expect(err).NotTo(HaveOccurred())
}
