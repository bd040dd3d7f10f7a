// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	testlab "github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// cluster is one that begins with a control plane on one host, which others join.
type cluster struct {
	lab         *lab
	bundle      *artifact.Bundle
	authorities pki.Authorities
	// api reaches the API server; kubeconfig is a file that does.
	api        *kube.Cluster
	kubeconfig string
	target     spec.Target
	arch       string
	// members are the hosts of the control plane, the one that began it first.
	members []spec.Member
}

// controlPlane is the lab's cluster for workers, which the first call brings up on that host.
func (l *lab) controlPlane(ctx context.Context, on string) (*cluster, error) {
	if l.cluster != nil {
		return l.cluster, nil
	}
	var err error
	l.cluster, err = l.begin(ctx, on, l.options.bundle, byKubeadm)
	return l.cluster, err
}

// byKubeadm has kubeadm make a cluster, etcd too, byUnits has none of it.
func byKubeadm(c *spec.Cluster) {
	c.Kubernetes.Type, c.Etcd.Type = spec.KubernetesKubeadm, spec.EtcdKubeadm
}

func byUnits(c *spec.Cluster) {
	c.Kubernetes.Type, c.Etcd.Type = spec.KubernetesKubexm, spec.EtcdKubexm
}

// begin brings up a cluster on a host, with the bundle in a directory. Its API server is reached at that host's address, also when
// more hosts have joined.
func (l *lab) begin(ctx context.Context, on, bundle string, kind func(*spec.Cluster)) (*cluster, error) {
	h, err := l.host(on)
	if err != nil {
		return nil, err
	}
	store, err := artifact.OpenStore("")
	if err != nil {
		return nil, err
	}
	c := &cluster{lab: l, kubeconfig: filepath.Join(l.dir, on+".kubeconfig")}
	if c.bundle, err = artifact.Open(ctx, bundle, store); err != nil {
		return nil, fmt.Errorf("%w; make artifacts artifacts-previous makes it", err)
	}
	c.target = spec.Target{ClusterName: "bench", KubernetesVersion: c.bundle.Version("kubernetes")}
	kind(&c.target.Cluster)
	c.target.Cluster.LoadBalancer.Type = spec.LoadBalancerExternal
	c.target.Cluster.ControlPlaneEndpoint.Address = h.Address
	if _, err := c.authorities.Complete(pki.CARequest{}); err != nil {
		return nil, err
	}
	if c.api, err = c.connect(h.Address, c.kubeconfig); err != nil {
		return nil, err
	}
	l.log("bringing up the control plane on %s", on)
	node, err := c.node(ctx, on, spec.RoleControlPlane)
	if err != nil {
		return nil, err
	}
	c.arch = node.System.Arch
	p, err := pipeline.CreateControlPlane(node, c.bundle)
	if err != nil {
		return nil, err
	}
	if _, err := c.engine(nil).Run(ctx, p); err != nil {
		return nil, err
	}
	c.joined(node)
	l.log("the control plane is up")
	return c, nil
}

// joined takes a node up among the control plane's hosts.
func (c *cluster) joined(n pipeline.Node) {
	h := n.Target.Host
	c.members = append(c.members, spec.Member{Name: h.Name, Role: h.Role, Address: h.NodeAddress()})
}

// connect is a way to the API server at address, which need not be up yet. Where a path is given, its kubeconfig is written there.
func (c *cluster) connect(address, path string) (*kube.Cluster, error) {
	kubeconfig, err := testlab.Administrator(&c.authorities, "bench", address)
	if err != nil {
		return nil, err
	}
	if path != "" {
		if err := os.WriteFile(path, kubeconfig.Reveal(), 0o600); err != nil {
			return nil, err
		}
	}
	return kube.FromKubeconfig(kubeconfig)
}

// node observes a host and says what it is to be.
func (c *cluster) node(ctx context.Context, name string, role spec.Role) (pipeline.Node, error) {
	h, err := c.lab.host(name)
	if err != nil {
		return pipeline.Node{}, err
	}
	seen, err := c.engine(nil).Look(ctx, []string{name}, func(string) host.Query { return host.Query{} })
	if err != nil {
		return pipeline.Node{}, err
	}
	n := pipeline.Node{Target: c.target, System: seen[name].System}
	n.Target.Host = spec.Host{Name: name, Role: role, Address: h.Address}
	n.Target.Members = slices.Clone(c.members)
	if role == spec.RoleControlPlane && len(c.members) > 0 {
		n.Target.BootstrapMode = spec.BootstrapJoin
	}
	return n, nil
}

// engine is an engine for the cluster's hosts. The reader may be nil.
func (c *cluster) engine(reader event.Reader) *engine.Engine {
	return engine.New(engine.Options{
		Reader: reader, Dial: c.lab.dial, Holder: "bench", Artifacts: step.FromBundle(c.bundle),
		Cluster: func(context.Context) (step.Cluster, error) { return c.api, nil },
		Secrets: func(ref step.SecretRef) ([]byte, error) { return testlab.Secret(&c.authorities, ref) },
	})
}
