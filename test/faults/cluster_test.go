// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// Files in a cluster's directory, besides those of the pool.
const (
	authoritiesFile = "authorities.json"
	planFile        = "plan.json"
)

// cluster is what the tests create and reset. All that is needed to work on it lies in one directory, so that another
// process can; to plan it, also what it is to consist of.
type cluster struct {
	dir         string
	hosts       []hosts.InventoryEntry
	roles       []spec.Role // of the hosts, in their order
	shared      spec.Cluster
	bundle      *artifact.Bundle
	authorities pki.Authorities
	kubernetes  string

	// user who logs in, and the password for sudo.
	user         string
	sudoPassword secret.Value
}

func openCluster(ctx context.Context, dir, bundle string) (*cluster, error) {
	c := &cluster{dir: dir, user: hosts.Ops}
	var inventory hosts.Inventory
	if err := readJSON(filepath.Join(dir, "hosts.json"), &inventory); err != nil {
		return nil, err
	}
	c.hosts = inventory.Hosts
	store, err := artifact.OpenStore("")
	if err != nil {
		return nil, err
	}
	if c.bundle, err = artifact.Open(ctx, bundle, store); err != nil {
		return nil, fmt.Errorf("%w (make artifacts builds it)", err)
	}
	c.kubernetes = c.bundle.Version("kubernetes")
	return c, c.readAuthorities()
}

func readJSON(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, into)
}

var authorityNames = []string{pki.ClusterName, pki.EtcdName, pki.FrontProxyName, pki.ServiceAccountName}

// pair is a key pair on disk.
type pair struct{ Cert, Key []byte }

func writeAuthorities(dir string, authorities *pki.Authorities) error {
	pairs := map[string]pair{}
	for _, name := range authorityNames {
		p, _ := authorities.Get(name)
		pairs[name] = pair{p.Cert, p.Key.Reveal()}
	}
	content, err := json.Marshal(pairs)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, authoritiesFile), content, 0o600)
}

func (c *cluster) readAuthorities() error {
	var pairs map[string]pair
	if err := readJSON(filepath.Join(c.dir, authoritiesFile), &pairs); err != nil {
		return err
	}
	for name, p := range pairs {
		c.authorities.Set(name, pki.KeyPair{Cert: p.Cert, Key: secret.New(p.Key)})
	}
	return nil
}

// becomeNodes are those of the hosts that do.
func (c *cluster) becomeNodes(names []string) []string {
	var nodes []string
	for i, h := range c.hosts {
		if slices.Contains(names, h.Name) && c.roles[i].IsNode() {
			nodes = append(nodes, h.Name)
		}
	}
	return nodes
}

func (c *cluster) names() []string {
	var names []string
	for _, h := range c.hosts {
		names = append(names, h.Name)
	}
	return names
}

// of is another cluster, on as many of c's hosts as there are roles. The first host has its endpoint, unless that is said.
func (c *cluster) of(shared spec.Cluster, roles ...spec.Role) *cluster {
	other := *c
	other.shared, other.roles, other.hosts = shared, roles, c.hosts[:len(roles)]
	other.shared.ControlPlaneEndpoint.Address = cmp.Or(shared.ControlPlaneEndpoint.Address, c.hosts[0].Address)
	return &other
}

func (c *cluster) isBinary() bool { return c.shared.Kubernetes.Type == spec.KubernetesKubexm }

// as is c worked on by another user.
func (c *cluster) as(user, sudoPassword string) *cluster {
	other := *c
	other.user, other.sudoPassword = user, secret.New(sudoPassword)
	return &other
}

// config is how a host is reached. A dead connection is noticed sooner than by default, to save time.
func (c *cluster) config(name string) (ssh.Config, error) {
	i := slices.IndexFunc(c.hosts, func(h hosts.InventoryEntry) bool { return h.Name == name })
	if i < 0 {
		return ssh.Config{}, fmt.Errorf("there is no host %q", name)
	}
	h := c.hosts[i]
	key, err := os.ReadFile(h.KeyPath)
	if err != nil {
		return ssh.Config{}, err
	}
	return ssh.Config{
		Name: name, Address: h.Address, Port: int32(h.Port), User: c.user, SudoPassword: c.sudoPassword,
		Auth: ssh.Auth{PrivateKeys: []secret.Value{secret.New(key)}}, HostKey: ssh.HostKey{Pinned: []string{h.HostKey}},
		DialTimeout: 10 * time.Second, KeepAlive: 2 * time.Second, KeepAliveMax: 3,
	}, nil
}

func (c *cluster) dial(ctx context.Context, name string) (host.Host, error) {
	config, err := c.config(name)
	if err != nil {
		return nil, err
	}
	h, err := ssh.Dial(ctx, config)
	if err != nil {
		return nil, err // not h, which would be a nil in an interface
	}
	return h, nil
}

func (c *cluster) secret(ref step.SecretRef) ([]byte, error) { return lab.Secret(&c.authorities, ref) }

// api is the cluster's API server, for its administrator.
func (c *cluster) api() (*kube.Cluster, error) { return c.apiOf(c.hosts[0]) }

// apiOf is the API server on a host.
func (c *cluster) apiOf(h hosts.InventoryEntry) (*kube.Cluster, error) {
	kubeconfig, err := lab.Administrator(&c.authorities, "faults", h.Address)
	if err != nil {
		return nil, err
	}
	return kube.FromKubeconfig(kubeconfig)
}

// options are those of an engine that works on the cluster.
func (c *cluster) options(reader event.Reader) engine.Options {
	return engine.Options{
		Dial: c.dial, Secrets: c.secret, Artifacts: step.FromBundle(c.bundle), Reader: reader,
		Cluster: func(context.Context) (step.Cluster, error) { return c.api() },
		Holder:  fmt.Sprintf("faults %d", os.Getpid()),
	}
}

// plan plans the first hosts' creation, as many as asked for, from what they are now.
func (c *cluster) plan(ctx context.Context, count int) (*plan.Plan, error) {
	nodes, err := c.nodes(ctx, count)
	if err != nil {
		return nil, err
	}
	return pipeline.CreateCluster("faults", nodes, c.bundle)
}

// nodes are the first hosts, as many as asked for, as members of a cluster of that many.
func (c *cluster) nodes(ctx context.Context, count int) ([]pipeline.Node, error) {
	names := c.names()[:count]
	facts, err := engine.New(c.options(nil)).Look(ctx, names, func(string) host.Query { return host.Query{} })
	if err != nil {
		return nil, err
	}
	nodes, targets := make([]pipeline.Node, count), make([]*spec.Target, count)
	for i, name := range names {
		nodes[i] = pipeline.Node{System: facts[name].System, Target: spec.Target{
			ClusterName: "faults", KubernetesVersion: c.kubernetes, Cluster: *c.shared.DeepCopy(),
			Host: spec.Host{Name: name, Role: c.roles[i], Address: c.hosts[i].Address},
		}}
		targets[i] = &nodes[i].Target
	}
	spec.Arrange(targets)
	return nodes, nil
}

// writePlan puts p where another process finds it.
func (c *cluster) writePlan(p *plan.Plan) error {
	f, err := os.Create(filepath.Join(c.dir, planFile))
	if err != nil {
		return err
	}
	err = p.Write(f)
	return cmp.Or(err, f.Close())
}

func (c *cluster) readPlan() (*plan.Plan, error) {
	f, err := os.Open(filepath.Join(c.dir, planFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return plan.Read(f)
}

// reset resets all hosts.
func (c *cluster) reset(ctx context.Context, reader event.Reader) (engine.Report, error) {
	return c.resetHosts(ctx, reader, c.names())
}

// resetHosts resets some hosts.
func (c *cluster) resetHosts(ctx context.Context, reader event.Reader, names []string) (engine.Report, error) {
	return engine.New(c.options(reader)).Undo(ctx, engine.Undo{Intent: "DeleteCluster", Cluster: "faults", Hosts: names})
}
