// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

const clusterName = "upgrade"

// cluster is one of a control plane host and a worker, or more, each of which may be of another version.
type cluster struct {
	t           *testing.T
	pool        *lab.Lab
	shared      spec.Cluster
	authorities pki.Authorities
	api         *kube.Cluster
	client      *kubernetes.Clientset
	// fails is a step that fails on every host before it does anything, "" for none.
	fails string
}

// openBundle opens the bundle of a variable, or the one that make builds.
func openBundle(t *testing.T, variable, name, target string) *artifact.Bundle {
	t.Helper()
	b, err := artifact.Open(t.Context(), lab.Bundle(t, variable, name), nil)
	if err != nil {
		t.Fatalf("%v (make %s builds it)", err, target)
	}
	return b
}

// start makes so many hosts, on which there is no cluster yet.
func start(t *testing.T, name string, count int, shared spec.Cluster) *cluster {
	t.Helper()
	c := &cluster{t: t, shared: shared}
	c.pool = lab.Start(t, hosts.Options{Name: name, Count: count})
	c.shared.ControlPlaneEndpoint.Address = c.controlPlane().Address
	var err error
	if c.authorities, err = pki.NewAuthorities(pki.CARequest{}); err != nil {
		t.Fatal(err)
	}
	c.connect()
	return c
}

func (c *cluster) controlPlane() *hosts.Host { return c.pool.Hosts[0] }
func (c *cluster) worker() *hosts.Host       { return c.pool.Hosts[1] }

func (c *cluster) connect() {
	c.t.Helper()
	kubeconfig, err := lab.Administrator(&c.authorities, clusterName, c.controlPlane().Address)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.api, err = kube.FromKubeconfig(kubeconfig); err != nil {
		c.t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig.Reveal())
	if err != nil {
		c.t.Fatal(err)
	}
	config.QPS = -1
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		c.t.Fatal(err)
	}
}

// engine works with a bundle, and logs what happens.
func (c *cluster) engine(b *artifact.Bundle, reads ...event.Reader) *engine.Engine {
	log := event.ReaderFunc(func(e event.Event) {
		switch e.Type {
		case event.Skipped, event.Progress:
		default:
			c.t.Logf("%-14s %s %s", e.Type, e.Node, e.Message)
		}
	})
	o := engine.Options{
		Dial: c.dial, Holder: clusterName, Reader: event.Readers(append(reads, log)...),
		Cluster: func(context.Context) (step.Cluster, error) { return c.api, nil },
		Secrets: func(ref step.SecretRef) ([]byte, error) { return lab.Secret(&c.authorities, ref) },
	}
	if b != nil {
		o.Artifacts = step.FromBundle(b)
	}
	return engine.New(o)
}

func (c *cluster) dial(ctx context.Context, name string) (host.Host, error) {
	for _, h := range c.pool.Hosts {
		if h.Name == name {
			dialled, err := ssh.Dial(ctx, lab.SSH(h))
			if err != nil {
				return nil, err // not a nil *ssh.Host in an interface
			}
			return failing{dialled, c.fails}, nil
		}
	}
	return nil, fmt.Errorf("there is no host %s", name)
}

// failing is a host on which a step fails before it does anything.
type failing struct {
	host.Host
	step string
}

func (f failing) Begin(ctx context.Context, r host.Run) (host.Session, error) {
	s, err := f.Host.Begin(ctx, r)
	if err != nil {
		return nil, err
	}
	return failingSession{s, f}, nil
}

type failingSession struct {
	host.Session
	on failing
}

func (s failingSession) Do(ctx context.Context, acts ...host.Act) (*host.Facts, error) {
	for _, a := range acts {
		if s.on.step != "" && strings.HasSuffix(a.Node, "/"+s.on.step) {
			return nil, &host.Error{Kind: host.KindCommand, Host: s.on.Name(), Message: "the test has it fail"}
		}
	}
	return s.Session.Do(ctx, acts...)
}

// node is what a host must be with a bundle, after change.
func (c *cluster) node(h *hosts.Host, role spec.Role, b *artifact.Bundle, change ...func(*spec.Target)) pipeline.Node {
	c.t.Helper()
	facts, err := c.engine(b).Look(c.t.Context(), []string{h.Name}, func(string) host.Query { return host.Query{} })
	if err != nil {
		c.t.Fatal(err)
	}
	n := pipeline.Node{System: facts[h.Name].System, Target: spec.Target{
		ClusterName: clusterName, KubernetesVersion: b.Version(artifact.Kubernetes), Cluster: *c.shared.DeepCopy(),
		Host: spec.Host{Name: h.Name, Role: role, Address: h.Address},
	}}
	for _, f := range change {
		f(&n.Target)
	}
	n.Target.Default()
	return n
}

// plans of the two hosts by themselves, as a controller makes them.
func (c *cluster) controlPlanePlan(b *artifact.Bundle, change ...func(*spec.Target)) *plan.Plan {
	c.t.Helper()
	p, err := pipeline.CreateControlPlane(c.node(c.controlPlane(), spec.RoleControlPlane, b, change...), b)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c *cluster) workerPlan(b *artifact.Bundle) *plan.Plan {
	c.t.Helper()
	p, err := pipeline.JoinWorker(c.node(c.worker(), spec.RoleWorker, b), b)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// converge makes a host so.
func (c *cluster) converge(p *plan.Plan, b *artifact.Bundle) {
	c.t.Helper()
	if _, err := c.engine(b).Run(c.t.Context(), p); err != nil {
		c.t.Fatal(err)
	}
}

// converged wants a host to be as planned, which one exchange tells.
func (c *cluster) converged(p *plan.Plan, b *artifact.Bundle) {
	c.t.Helper()
	r, err := c.engine(b).Run(c.t.Context(), p)
	if err != nil {
		c.t.Fatal(err)
	}
	if !r.Converged() || r.Hosts[0].Exchanges != 1 {
		c.t.Errorf("%d of %d steps as planned after %d exchanges, want all after 1", r.Total().Skipped, r.Total().Total, r.Hosts[0].Exchanges)
	}
}

// stopped makes a host so, but is stopped as soon as a step of this name has been made.
func (c *cluster) stopped(p *plan.Plan, b *artifact.Bundle, at string) {
	c.t.Helper()
	ctx, stop := context.WithCancelCause(c.t.Context())
	defer stop(nil)
	errStop := errors.New("stopped by the test")
	_, err := c.engine(b, event.ReaderFunc(func(e event.Event) {
		if e.Type == event.Changed && e.Step == at {
			stop(errStop)
		}
	})).Run(ctx, p)
	if !errors.Is(err, errStop) {
		c.t.Fatalf("the run was to be stopped after %s: %v", at, err)
	}
}

// reset resets the hosts and wants them to be as they were before the cluster.
func (c *cluster) reset() {
	c.t.Helper()
	var names []string
	for _, h := range c.pool.Hosts {
		names = append(names, h.Name)
	}
	if _, err := c.engine(nil).Undo(c.t.Context(), engine.Undo{Intent: "DeleteCluster", Cluster: clusterName, Hosts: names}); err != nil {
		c.t.Fatal(err)
	}
	c.pool.WantReset(c.t)
}
