// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/module"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Node is one host that is to become, or to stay, a Node.
type Node struct {
	// Target is what it must be.
	Target spec.Target
	// System is what was last seen of it. Plans depend on it: its architecture, whether it is a container, its name
	// servers. See Stale.
	System host.System
	// Was is the version of Kubernetes that the host was last brought to, and APIServers the oldest that the cluster's API
	// servers have; "" where that is not known. What cannot follow from there is refused.
	Was, APIServers string
}

// Stale reports whether a plan that was made with the facts in was is out of date now that seen was observed. Callers
// plan from remembered facts, so that a converged host costs one exchange, and plan anew when this says so.
func Stale(was, seen host.System) bool { return !module.SamePlan(was, seen) }

// Services are systemd's names for what hosts may run beside Kubernetes and etcd, whichever components a cluster has: for whoever asks a
// host that no plan can be made for.
func Services() []string { return module.Services() }

// CreateControlPlane plans the first control plane host: an API server, and in it the cluster's DNS and network.
func CreateControlPlane(n Node, b *artifact.Bundle) (*plan.Plan, error) {
	p := newLayout("CreateControlPlane", n.Target.ClusterName)
	in, err := inputs(n, b, spec.RoleControlPlane, spec.BootstrapInit)
	if err != nil {
		return nil, err
	}
	controlPlane(p, in)
	return p.plan()
}

// JoinControlPlane plans one more control plane host. Its gates wait for the cluster's API. It knows the cluster's DNS and
// network too, because the first host may be gone one day.
func JoinControlPlane(n Node, b *artifact.Bundle) (*plan.Plan, error) {
	p := newLayout("JoinControlPlane", n.Target.ClusterName)
	in, err := inputs(n, b, spec.RoleControlPlane, spec.BootstrapJoin)
	if err != nil {
		return nil, err
	}
	p.gate(in,
		module.EtcdGates(in),
		module.API(in),
		module.KubernetesGates(in),
		module.Network(in),
	)
	joinControlPlane(p, in)
	p.gate(in, module.Addons(in))
	return p.plan()
}

// JoinWorker plans a host that joins as a worker. Its gates wait for the cluster's API.
func JoinWorker(n Node, b *artifact.Bundle) (*plan.Plan, error) {
	p := newLayout("JoinWorker", n.Target.ClusterName)
	in, err := inputs(n, b, spec.RoleWorker, "")
	if err != nil {
		return nil, err
	}
	p.gate(in,
		module.API(in),
		module.KubernetesGates(in),
	)
	worker(p, in)
	return p.plan()
}

// EtcdMember plans a host that is a member of etcd and nothing else: the first begins the cluster, the others join it.
func EtcdMember(n Node, b *artifact.Bundle) (*plan.Plan, error) {
	p := newLayout("EtcdMember", n.Target.ClusterName)
	n.Target.Default() // either order is this plan's
	in, err := inputs(n, b, spec.RoleEtcd, n.Target.BootstrapMode)
	if err != nil {
		return nil, err
	}
	etcdMember(p, in)
	return p.plan()
}

// LoadBalancer plans a host that carries requests to the API servers and does nothing else.
func LoadBalancer(n Node, b *artifact.Bundle) (*plan.Plan, error) {
	p := newLayout("LoadBalancer", n.Target.ClusterName)
	in, err := inputs(n, b, spec.RoleLoadBalancer, "")
	if err != nil {
		return nil, err
	}
	loadBalancer(p, in)
	return p.plan()
}

// CreateCluster is the union of its hosts' pipelines: the same steps in the same order, with the same gates, which here
// are the edges between hosts. Who begins, and of which members the cluster consists, follows from the nodes (spec.Arrange)
// where their targets do not say so.
func CreateCluster(name string, nodes []Node, b *artifact.Bundle) (*plan.Plan, error) {
	p := newLayout("CreateCluster", name)
	nodes = arranged(nodes)
	if err := checkHosts(name, nodes); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	var hosts hostsByPart
	for _, n := range nodes {
		in, err := inputs(n, b, n.Target.Host.Role, n.Target.BootstrapMode)
		if err != nil {
			return nil, err
		}
		hosts.add(in)
	}
	hosts.chain()
	for _, in := range hosts.loadBalancers {
		loadBalancer(p, in)
	}
	for _, in := range hosts.etcd {
		etcdMember(p, in)
	}
	controlPlane(p, hosts.first)
	if joining := slices.Concat(hosts.later, hosts.workers); len(joining) > 0 {
		p.gate(joining[0], module.KubernetesGates(joining[0]))
	}
	for _, in := range hosts.later {
		joinControlPlane(p, in)
	}
	for _, in := range hosts.workers {
		worker(p, in)
	}
	return p.plan()
}

// hostsByPart are a cluster's hosts by what they are for, who begins before who joins.
type hostsByPart struct {
	loadBalancers, etcd, later, workers []module.Inputs
	first                               module.Inputs
}

func (h *hostsByPart) add(in module.Inputs) {
	first := in.Target.BootstrapMode == spec.BootstrapInit
	switch role := in.Target.Host.Role; {
	case role == spec.RoleLoadBalancer:
		h.loadBalancers = append(h.loadBalancers, in)
	case role == spec.RoleEtcd && first:
		h.etcd = slices.Insert(h.etcd, 0, in)
	case role == spec.RoleEtcd:
		h.etcd = append(h.etcd, in)
	case role == spec.RoleControlPlane && first:
		h.first = in
	case role == spec.RoleControlPlane:
		h.later = append(h.later, in)
	default:
		h.workers = append(h.workers, in)
	}
}

// chain says who comes after whom: etcd takes one new member at a time, of those that it is asked to take. Kubernetes' own follow from the
// order of hosts.
func (h *hostsByPart) chain() {
	var members []string
	join := func(in *module.Inputs) {
		if !in.RunsEtcd() || in.KubernetesMakesEtcd() {
			in.AfterEtcd = members
			return
		}
		if len(members) > 0 {
			in.AfterEtcd = members[len(members)-1:]
		}
		members = append(members, module.Member(*in))
	}
	for i := range h.etcd {
		join(&h.etcd[i])
	}
	join(&h.first)
	for i := range h.later {
		if i > 0 {
			h.later[i].After = []string{module.Joined(h.later[i-1])}
		}
		join(&h.later[i])
	}
}

// arranged are the nodes with targets that say who begins and who the members are.
func arranged(nodes []Node) []Node {
	nodes = slices.Clone(nodes)
	targets := make([]*spec.Target, len(nodes))
	for i := range nodes {
		targets[i] = &nodes[i].Target
	}
	spec.Arrange(targets)
	return nodes
}

// checkHosts refuses what would be no cluster.
func checkHosts(cluster string, nodes []Node) error {
	var first []string
	for _, n := range nodes {
		if n.Target.ClusterName != cluster {
			return fmt.Errorf("host %s is for cluster %s", n.Target.Host.Name, n.Target.ClusterName)
		}
		if n.Target.Host.Role == spec.RoleControlPlane && n.Target.BootstrapMode == spec.BootstrapInit {
			first = append(first, n.Target.Host.Name)
		}
	}
	switch len(first) {
	case 0:
		return fmt.Errorf("no host with the role %s begins: give the role to one, and bootstrapMode %s to no other than one of them",
			spec.RoleControlPlane, spec.BootstrapInit)
	case 1:
		return nil
	}
	return fmt.Errorf("the hosts %s would all begin the control plane: leave the bootstrapMode %s to one", strings.Join(first, ", "), spec.BootstrapInit)
}

func inputs(n Node, b *artifact.Bundle, role spec.Role, mode spec.BootstrapMode) (module.Inputs, error) {
	n.Target.Default()
	switch h := n.Target.Host; {
	case h.Role != role:
		return module.Inputs{}, fmt.Errorf("host %s: its role is %q; this plan is for the role %s", h.Name, h.Role, role)
	case n.Target.BootstrapMode != mode:
		return module.Inputs{}, fmt.Errorf("host %s: its bootstrapMode is %q; this plan is for %q", h.Name, n.Target.BootstrapMode, mode)
	}
	if err := n.follows(); err != nil {
		return module.Inputs{}, fmt.Errorf("host %s: %w", n.Target.Host.Name, err)
	}
	in, err := module.NewInputs(n.Target, n.System, b)
	if err != nil {
		return in, fmt.Errorf("host %s: %w", n.Target.Host.Name, err)
	}
	return in, nil
}

// follows refuses a version of Kubernetes that the host's Node cannot be brought to from the one that it has, or that is newer than the
// API servers which a worker's kubelet speaks to. A host without a Node has none of it: its version says no more than which bundle it
// gets from. That no older etcd takes over is etcd's to see to.
func (n *Node) follows() error {
	wanted := n.Target.KubernetesVersion
	if n.Was != "" && n.Target.Host.Role.IsNode() {
		if errs := spec.ValidateUpgrade(n.Was, wanted, field.NewPath("kubernetesVersion")); len(errs) > 0 {
			return errs.ToAggregate()
		}
	}
	if n.APIServers == "" || n.Target.Host.Role != spec.RoleWorker {
		return nil
	}
	oldest, err := version.ParseSemantic(n.APIServers)
	if err != nil {
		return fmt.Errorf("the version of the API servers: %w", err)
	}
	if kubelet, err := version.ParseSemantic(wanted); err == nil && oldest.LessThan(kubelet) {
		return fmt.Errorf("kubernetesVersion: %s is newer than an API server of the cluster, which is %s: a kubelet must not be; "+
			"upgrade the control plane first", wanted, n.APIServers)
	}
	return nil
}

func controlPlane(p layout, in module.Inputs) {
	p.gate(in, module.EtcdGates(in))
	controlPlaneHost(p, in)
	p.gate(in,
		module.API(in),
		module.KubernetesGates(in),
		module.Network(in),
		module.NodeReady(in),
		module.Addons(in),
	)
}

func joinControlPlane(p layout, in module.Inputs) {
	controlPlaneHost(p, in)
	p.gate(in, module.NodeReady(in))
}

func controlPlaneHost(p layout, in module.Inputs) {
	p.host(in,
		module.BeforeEtcd(in),
		module.OS(in),
		module.Runtime(in),
		module.Programs(in),
		module.Etcd(in),
		module.ControlPlane(in),
		module.EtcdMaintenance(in),
	)
}

func worker(p layout, in module.Inputs) {
	p.host(in,
		module.OS(in),
		module.Runtime(in),
		module.Worker(in),
	)
	p.gate(in, module.NodeReady(in))
}

func etcdMember(p layout, in module.Inputs) {
	p.host(in,
		module.BeforeEtcd(in),
		module.OS(in),
		module.Etcd(in),
		module.EtcdMaintenance(in),
	)
}

func loadBalancer(p layout, in module.Inputs) {
	p.host(in,
		module.OS(in),
		module.LoadBalancer(in),
	)
}
