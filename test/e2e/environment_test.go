// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
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
)

const (
	poolName  = "e2"
	namespace = "fleet"
	// workers is how many of the hosts are for workers; one more is for the control plane.
	workers = 3
	// poll is how often one looks at what must become so.
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

	pool *hosts.Pool
	// roles are the hosts' labels, in order.
	roles []string
	// before are the hosts' snapshots from when nobody had touched them, by name.
	before map[string]hosts.Snapshot

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
	e := &environment{WithT: NewWithT(t), t: t, roles: roles, before: map[string]hosts.Snapshot{}}
	e.SetDefaultEventuallyPollingInterval(poll)
	e.SetDefaultEventuallyTimeout(time.Minute)
	e.dir = e.directory()
	ctx := t.Context()
	store, err := artifact.OpenStore("")
	e.Expect(err).NotTo(HaveOccurred())
	path, err := filepath.Abs(cmp.Or(os.Getenv("KUBEXM_BUNDLE"), filepath.Join("..", "..", "build", "bundle")))
	e.Expect(err).NotTo(HaveOccurred())
	e.bundle, err = artifact.Open(ctx, path, store)
	e.Expect(err).NotTo(HaveOccurred(), "make artifacts builds the bundle")

	manager := filepath.Join(e.dir, "manager")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", manager, "../../cmd/manager").CombinedOutput()
	e.Expect(err).NotTo(HaveOccurred(), "%s", out)
	e.startHosts(pool)
	e.manage(manager)
	return e
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

func (e *environment) directory() string {
	dir, err := os.MkdirTemp("", "kubexm-e2e-")
	e.Expect(err).NotTo(HaveOccurred())
	e.t.Cleanup(func() {
		if e.t.Failed() {
			e.t.Logf("state and logs are left in %s", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			e.t.Error(err)
		}
	})
	return dir
}

func (e *environment) startHosts(pool string) {
	ctx := e.t.Context()
	var subnet netip.Prefix
	if text := os.Getenv("E2E_SUBNET"); text != "" {
		var err error
		subnet, err = netip.ParsePrefix(text)
		e.Expect(err).NotTo(HaveOccurred(), "E2E_SUBNET")
	}
	// What an earlier run that was killed has left.
	e.Expect(hosts.Remove(ctx, pool)).To(Succeed())
	made, err := hosts.Start(ctx, hosts.Options{
		Name: pool, Count: len(e.roles), Subnet: subnet, Dir: filepath.Join(e.dir, "hosts"), Log: e.t.Logf,
	})
	e.Expect(err).NotTo(HaveOccurred())
	e.pool = made
	e.t.Cleanup(func() {
		if err := made.Stop(context.Background()); err != nil {
			e.t.Error(err)
		}
	})
	e.before = e.snapshots(e.names()...)
}

// names are those of all hosts; the first is the control plane's.
func (e *environment) names() []string {
	var names []string
	for _, h := range e.pool.Hosts {
		names = append(names, h.Name)
	}
	return names
}

// snapshots are taken of all hosts at once.
func (e *environment) snapshots(names ...string) map[string]hosts.Snapshot {
	e.t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	taken := map[string]hosts.Snapshot{}
	for _, name := range names {
		all.Go(func() {
			host, err := hosts.Find(e.t.Context(), name)
			if err == nil {
				var s hosts.Snapshot
				if s, err = host.Snapshot(e.t.Context()); err == nil {
					mu.Lock()
					defer mu.Unlock()
					taken[name] = s
				}
			}
			if err != nil {
				e.t.Error(err)
			}
		})
	}
	all.Wait()
	e.Expect(taken).To(HaveLen(len(names)))
	return taken
}

// expectGivenBack compares hosts with what they were before anybody touched them.
func (e *environment) expectGivenBack(names ...string) {
	e.t.Helper()
	for name, now := range e.snapshots(names...) {
		for _, difference := range hosts.Diff(e.before[name], now) {
			e.t.Errorf("host %s is not as it was: %s", name, difference)
		}
	}
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
