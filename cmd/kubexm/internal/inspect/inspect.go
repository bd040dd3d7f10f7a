// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inspect finds out how clusters, Nodes and hosts are at this moment, without a management plane and without
// changing anything.
package inspect

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// apiTimeout bounds a look at a cluster's API: one that does not answer is a finding.
const apiTimeout = 5 * time.Second

// Cluster is how a cluster is.
type Cluster struct {
	Name              string `json:"name"`
	KubernetesVersion string `json:"kubernetesVersion"`
	// Status is Ready, NotReady, Unreachable, Upgrading (an upgrade has begun and did not end) or, of a cluster that was never
	// ready, Incomplete. Message says more.
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
	Server  string `json:"server"`
	Bundle  string `json:"bundle"`

	ControlPlanes int `json:"controlPlanes"`
	Workers       int `json:"workers"`
	// EtcdHosts and LoadBalancers are hosts that do not become Nodes.
	EtcdHosts     int `json:"etcdHosts,omitempty"`
	LoadBalancers int `json:"loadBalancers,omitempty"`
	// ReadyTime is when the cluster last was up to date.
	ReadyTime time.Time `json:"readyTime,omitzero"`
}

// Node is one of a cluster's Nodes.
type Node struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	Role    string `json:"role"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
	Version string `json:"version"`
	Address string `json:"address"`
	OS      string `json:"os"`
	Kernel  string `json:"kernel"`
	Runtime string `json:"runtime"`
	// Since is when the Node joined.
	Since time.Time `json:"since"`
	// TakesPods is whether Pods that tolerate nothing can come to it.
	TakesPods bool `json:"-"`
}

// Host is one of the hosts that were given to kubexm.
type Host struct {
	Cluster string    `json:"cluster"`
	Name    string    `json:"name"`
	Role    spec.Role `json:"role"`
	Address string    `json:"address"`
	User    string    `json:"user"`
	// Status is Reachable, or why it is not: a host.Kind. Message says more.
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
	// OS, Kernel, Arch, CPUs and MemoryBytes are what the host says of itself.
	OS          string `json:"os,omitempty"`
	Kernel      string `json:"kernel,omitempty"`
	Arch        string `json:"arch,omitempty"`
	CPUs        int32  `json:"cpus,omitempty"`
	MemoryBytes int64  `json:"memoryBytes,omitempty"`
	// Changes is how many changes of ours a reset would undo.
	Changes int `json:"changes"`
}

// Clusters observes all clusters at once.
func Clusters(ctx context.Context, dirs []clusterdir.Dir) ([]Cluster, error) {
	clusters := make([]Cluster, len(dirs))
	errs := make([]error, len(dirs))
	var all sync.WaitGroup
	for i, d := range dirs {
		all.Go(func() { clusters[i], errs[i] = ClusterOf(ctx, d) })
	}
	all.Wait()
	return clusters, errors.Join(errs...)
}

// ClusterOf observes a cluster.
func ClusterOf(ctx context.Context, d clusterdir.Dir) (Cluster, error) {
	known, err := d.Inventory()
	if err != nil || known == nil {
		return Cluster{Name: d.Cluster, Status: "Incomplete"}, err
	}
	c := Cluster{
		Name: known.Cluster, KubernetesVersion: known.KubernetesVersion, Server: known.Server, Bundle: known.Bundle,
		ReadyTime: known.ReadyTime, Status: "Incomplete",
	}
	c.count(known.Hosts)
	nodes, err := Nodes(ctx, d)
	if err != nil {
		c.Message = err.Error()
		if !known.ReadyTime.IsZero() {
			c.Status = "Unreachable"
		}
		return c, nil
	}
	ready := 0
	for _, n := range nodes {
		if n.Status == "Ready" {
			ready++
		}
	}
	c.Status = "NotReady"
	switch {
	case known.Upgrading != "":
		c.Status, c.Message = "Upgrading", "being upgraded to "+known.Upgrading
	case ready == len(nodes) && ready >= c.ControlPlanes+c.Workers:
		c.Status = "Ready"
	}
	return c, nil
}

func (c *Cluster) count(hosts []clusterdir.Host) {
	for _, h := range hosts {
		switch h.Role {
		case spec.RoleControlPlane:
			c.ControlPlanes++
		case spec.RoleWorker:
			c.Workers++
		case spec.RoleEtcd:
			c.EtcdHosts++
		case spec.RoleLoadBalancer:
			c.LoadBalancers++
		}
	}
}

// Nodes asks a cluster's API for its Nodes.
func Nodes(ctx context.Context, d clusterdir.Dir) ([]Node, error) {
	trust, err := trustOf(d)
	if err != nil {
		return nil, err
	}
	return NodesOf(ctx, trust)
}

// NodesOf asks the API of the cluster with this trust for its Nodes.
func NodesOf(ctx context.Context, trust *planner.Trust) ([]Node, error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	config, err := restConfigOf(trust)
	if err != nil {
		return nil, err
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	nodes := make([]Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, nodeOf(trust.Cluster, &list.Items[i]))
	}
	return nodes, nil
}

func restConfig(d clusterdir.Dir) (*rest.Config, error) {
	trust, err := trustOf(d)
	if err != nil {
		return nil, err
	}
	return restConfigOf(trust)
}

func trustOf(d clusterdir.Dir) (*planner.Trust, error) {
	known, err := d.Inventory()
	if err != nil {
		return nil, err
	}
	if known == nil {
		return nil, errors.New("the cluster was not made yet")
	}
	trust := &planner.Trust{Cluster: known.Cluster, Server: known.Server}
	trust.Authorities, err = d.Authorities(false)
	return trust, err
}

func restConfigOf(trust *planner.Trust) (*rest.Config, error) {
	kubeconfig, err := trust.Kubeconfig(time.Hour)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig.Reveal())
	if err != nil {
		return nil, err
	}
	config.Timeout = apiTimeout
	return config, nil
}

func nodeOf(cluster string, n *corev1.Node) Node {
	out := Node{
		Cluster: cluster, Name: n.Name, Role: "worker", Status: "NotReady", Version: n.Status.NodeInfo.KubeletVersion,
		OS: n.Status.NodeInfo.OSImage, Kernel: n.Status.NodeInfo.KernelVersion, Runtime: n.Status.NodeInfo.ContainerRuntimeVersion,
		Since: n.CreationTimestamp.UTC(),
	}
	if _, is := n.Labels["node-role.kubernetes.io/control-plane"]; is {
		out.Role = "control-plane"
	}
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if out.Message = c.Message; c.Status == corev1.ConditionTrue {
			out.Status, out.Message = "Ready", ""
		}
	}
	if n.Spec.Unschedulable {
		out.Status += ",SchedulingDisabled"
	}
	out.TakesPods = out.Status == "Ready" && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule
	})
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			out.Address = a.Address
			break
		}
	}
	return out
}

// Hosts observes all hosts of a cluster at once.
func Hosts(ctx context.Context, known *clusterdir.Inventory, tools planner.Tools) ([]Host, error) {
	names := make([]string, 0, len(known.Hosts))
	for _, h := range known.Hosts {
		names = append(names, h.Name)
	}
	facts, err := tools.Engine().Look(ctx, names, func(string) host.Query { return host.Query{} })
	var failed *engine.Error
	if err != nil && !errors.As(err, &failed) || ctx.Err() != nil {
		return nil, err
	}
	hosts := make([]Host, 0, len(names))
	for _, h := range known.Hosts {
		out := Host{Cluster: known.Cluster, Name: h.Name, Role: h.Role, Address: h.Address, User: h.User, Status: "Reachable"}
		if f := facts[h.Name]; f != nil {
			out.OS, out.Kernel, out.Arch = f.System.OSName, f.System.Kernel, f.System.Arch
			out.CPUs, out.MemoryBytes, out.Changes = f.System.CPUs, f.System.MemoryBytes, f.UndoEntries
		} else {
			out.Status, out.Message = whyNot(failed, h.Name)
		}
		hosts = append(hosts, out)
	}
	return hosts, nil
}

func whyNot(failed *engine.Error, name string) (status, message string) {
	if failed != nil {
		for _, f := range failed.Failures {
			if f.Host == name {
				return string(host.KindOf(f.Err)), f.Message()
			}
		}
	}
	return string(host.KindUnreachable), ""
}
