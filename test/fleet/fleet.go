// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet makes clusters by objects, for tests that do something to them then: hosts, a management cluster of a few processes
// with the reconcilers of all providers, and what is declared to it.
package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapsetup "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/setup"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/management"
)

const (
	// Name is the cluster's, and Namespace that of all its objects.
	Name, Namespace = "prod", "fleet"
	// Making is how long a cluster may take to become healthy.
	Making = 10 * time.Minute
	// stopping is how long the end of everything may take.
	stopping = 2 * time.Minute
	// poll is how often one checks what must become so.
	poll = 500 * time.Millisecond
)

// Options are what a fleet is. All but Workers, Spare, Domains and DriftCheckInterval are required.
type Options struct {
	// Pool is what the hosts are named after; those of another pool of that name are removed.
	Pool string
	// Subnet is the hosts' network; one that is free, if it is none.
	Subnet netip.Prefix
	// Bundles are directories of bundles, of which the first is what the cluster is made of and the management cluster runs.
	Bundles []string
	// ControlPlanes and Workers are the hosts of the cluster, and Spare are more, for workers if it has any.
	ControlPlanes, Workers, Spare int
	// Domains are the failure domains of the hosts, in their order: control planes may be in all of them.
	Domains []string
	// DriftCheckInterval is how often converged hosts are observed; what the manager's default is, if 0.
	DriftCheckInterval time.Duration
	// ControlPlane is the KubexmControlPlane but for replicas, version and infrastructure.
	ControlPlane controlplanev1.KubexmControlPlaneSpec
}

// Fleet is a cluster on hosts, and the management cluster that it was declared to.
type Fleet struct {
	T       *testing.T
	Options Options
	// Logs is where logs of hosts that failed are kept.
	Logs string
	// Bundle is what the cluster is made of.
	Bundle *artifact.Bundle
	// Pool has the hosts, those of the control plane first, then those of workers.
	Pool *hosts.Pool
	// Lab knows what the hosts were before.
	Lab *lab.Lab
	// API is the management cluster's, without a cache.
	API client.Client

	dir   string
	plane *embedded.Plane
}

// Start makes hosts and a management cluster, declares the cluster, and waits for it to be healthy. All is stopped at the test's end.
func Start(t *testing.T, o Options) *Fleet {
	t.Helper()
	dir := lab.Dir(t)
	f := &Fleet{T: t, Options: o, Logs: filepath.Join(dir, "host-logs"), dir: dir}
	store, err := artifact.OpenStore("")
	must(t, err)
	f.Bundle, err = artifact.Open(t.Context(), o.Bundles[0], store)
	must(t, err)
	f.startHosts()
	f.startPlane(store)
	t.Cleanup(f.stopPlane)

	began := time.Now()
	f.declare()
	f.Await(Making, func(context.Context) error { return f.Unhealthy() })
	t.Logf("the cluster is healthy after %.1f s", time.Since(began).Seconds())
	return f
}

// In is the fleet for a part of the test.
func (f *Fleet) In(t *testing.T) *Fleet {
	part := *f
	part.T = t
	return &part
}

func (f *Fleet) startHosts() {
	f.T.Helper()
	f.Lab = lab.Start(f.T, hosts.Options{
		Name: f.Options.Pool, Count: f.Options.ControlPlanes + f.Options.Workers + f.Options.Spare, Subnet: f.Options.Subnet,
		Dir: filepath.Join(f.dir, "hosts"),
	})
	f.Pool = f.Lab.Pool
}

func (f *Fleet) startPlane(store *artifact.Store) {
	f.T.Helper()
	bundles := filepath.Join(f.dir, "bundles")
	must(f.T, os.Mkdir(bundles, 0o755))
	for _, dir := range f.Options.Bundles {
		must(f.T, linkAll(dir, filepath.Join(bundles, filepath.Base(dir))))
	}
	var err error
	f.plane, err = management.Start(f.T.Context(), filepath.Join(f.dir, "plane"), Namespace, f.Bundle, store, func(o *bootstrapsetup.Options) {
		o.Artifacts, o.DriftCheckInterval, o.Logs = bootstrapsetup.Bundles(bundles, store, nil), f.Options.DriftCheckInterval, f.Logs
	})
	must(f.T, err)
	f.API = f.plane.Client()
}

func (f *Fleet) stopPlane() {
	ctx, cancel := context.WithTimeout(context.Background(), stopping)
	defer cancel()
	if err := f.plane.Stop(ctx); err != nil {
		f.T.Error(err)
	}
}

// Await waits until nothing is wrong any more.
func (f *Fleet) Await(within time.Duration, wrong func(context.Context) error) {
	f.T.Helper()
	var last error
	err := wait.PollUntilContextTimeout(f.T.Context(), poll, within, true, func(ctx context.Context) (bool, error) {
		last = wrong(ctx)
		return last == nil, nil
	})
	if err != nil {
		f.T.Fatalf("after %s: %v", within, last)
	}
}

// Create makes objects.
func (f *Fleet) Create(objects ...client.Object) {
	f.T.Helper()
	for _, object := range objects {
		must(f.T, f.API.Create(f.T.Context(), object))
	}
}

// Get reads an object of the fleet's namespace.
func (f *Fleet) Get(name string, object client.Object) {
	f.T.Helper()
	must(f.T, f.API.Get(f.T.Context(), client.ObjectKey{Namespace: Namespace, Name: name}, object))
}

// List reads all objects of a kind of the fleet's namespace.
func (f *Fleet) List(objects client.ObjectList) {
	f.T.Helper()
	must(f.T, f.API.List(context.WithoutCancel(f.T.Context()), objects, client.InNamespace(Namespace)))
}

// Patch changes an object by a merge patch, a format with its values.
func (f *Fleet) Patch(object client.Object, format string, a ...any) {
	f.T.Helper()
	text := fmt.Appendf(nil, format, a...)
	if !json.Valid(text) {
		f.T.Fatalf("%s", text)
	}
	must(f.T, f.API.Patch(f.T.Context(), object, client.RawPatch("application/merge-patch+json", text)))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// linkAll makes a directory with the same files as another: a manager does not follow links that lead out of its bundles.
func linkAll(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Mkdir(filepath.Join(to, rel), 0o755)
		}
		err = os.Link(path, filepath.Join(to, rel))
		if !errors.Is(err, syscall.EXDEV) {
			return err
		}
		content, err := os.Open(path)
		if err != nil {
			return err
		}
		defer content.Close()
		copied, err := os.Create(filepath.Join(to, rel))
		if err != nil {
			return err
		}
		_, err = io.Copy(copied, content)
		return errors.Join(err, copied.Close())
	})
}
