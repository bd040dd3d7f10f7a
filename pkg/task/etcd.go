// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"net"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/gate"
)

// externalEtcd: an etcd that others run can be used.
var externalEtcd = graph.Output[string]{Name: "external-etcd-checked"}

// ExternalEtcd is the gate that opens when the etcd that others run can be reached and used.
func ExternalEtcd(in component.Inputs) plan.Task {
	e := in.Target.Cluster.Etcd.External
	return plan.Task{Name: "external", Steps: []step.Step{gate.ExternalEtcd(e.Endpoints, e.SecretRef.Name, externalEtcd)}}
}

// AwaitEtcd comes first on a control plane host whose etcd runs elsewhere. Of an etcd that others run, nothing is changed
// before it was found fit.
func AwaitEtcd(in component.Inputs) plan.Task {
	takes := in.AfterEtcd
	if in.Target.Cluster.Etcd.Type == spec.EtcdExternal {
		takes = []string{externalEtcd.Name}
	}
	if len(takes) == 0 {
		return plan.Task{Name: "await"} // planned for alone: its API server is started again until etcd is there
	}
	return plan.Task{Name: "await", Steps: []step.Step{etcd.Await(takes)}}
}

// EtcdData declares what etcd will write: before the container runtime's pods, which end before their data goes.
func EtcdData(in component.Inputs) plan.Task {
	return plan.Task{Name: "etcd-data", Steps: []step.Step{etcd.Claim(etcdSettings(in))}}
}

// Etcd makes the host a member of etcd, which it begins or joins.
func Etcd(in component.Inputs) plan.Task {
	s := etcdSettings(in)
	var steps []step.Step
	if in.Target.Host.Role == spec.RoleEtcd { // on a Node, what is done before programs are replaced is the changeover's
		steps = append(steps, etcd.Snapshot(s, in.Programs("etcd")))
	}
	return plan.Task{Name: "etcd", Steps: append(steps,
		etcd.Programs(in.Programs("etcd")),
		etcd.Certificates(s),
		etcd.Member(s, component.EtcdMember(in.Target.Host.Name), in.AfterEtcd...),
	)}
}

// EtcdClient gives the host's API server what it needs to reach etcd, and to an etcd that runs elsewhere what snapshots are
// saved with.
func EtcdClient(in component.Inputs) plan.Task {
	var steps []step.Step
	e := in.Target.Cluster.Etcd
	if !e.IsStacked() {
		steps = append(steps, etcd.Programs(in.Programs("etcd")))
	}
	switch {
	case e.Type == spec.EtcdExternal && e.External.IsSecure():
		steps = append(steps, etcd.ExternalClient(e.External.SecretRef.Name))
	case e.Type != spec.EtcdExternal:
		steps = append(steps, etcd.ClientCertificates(in.Target.Cluster.Certificates, in.Target.Host.Name))
	}
	return plan.Task{Name: "etcd-client", Steps: steps}
}

// etcdAccess is how a control plane host reaches etcd.
func etcdAccess(in component.Inputs) etcd.Access {
	e := in.Target.Cluster.Etcd
	if e.IsStacked() {
		return etcdSettings(in).Access()
	}
	foreign := e.Type == spec.EtcdExternal
	return etcd.ClientAccess(etcdEndpoints(in), !foreign || e.External.IsSecure(), foreign)
}

// SaveEtcd saves a snapshot of etcd on a control plane host.
func SaveEtcd(in component.Inputs, asked time.Time) plan.Task {
	return plan.Task{Name: "etcd-snapshot", Steps: []step.Step{etcdAccess(in).SaveAsked(asked)}}
}

// EtcdCare removes the members of hosts that go, and looks after the databases. Where kubeadm runs etcd, its programs and the
// administrator's certificate are for this alone.
func EtcdCare(in component.Inputs) plan.Task {
	s := etcdSettings(in)
	var steps []step.Step
	if kubeadmRunsEtcd(in) {
		steps = append(steps, etcd.Programs(in.Programs("etcd")), etcd.Certificates(s))
	}
	return plan.Task{Name: "etcd-care", Steps: append(steps, etcd.Members(s), etcd.Maintenance(s))}
}

func etcdSettings(in component.Inputs) etcd.Settings {
	t := in.Target
	s := etcd.Settings{
		Name: t.Host.Name, Address: t.Host.NodeAddress(), Cluster: t.ClusterName, Spec: t.Cluster.Etcd,
		First: t.Order == spec.OrderFirst, Members: t.EtcdMembers(), Leaving: t.Leaving, Gone: t.Cluster.Etcd.GoneMembers, Certificates: t.Cluster.Certificates,
		Form: etcd.Unit,
	}
	if t.Cluster.Etcd.Type == spec.EtcdKubeadm {
		s.Form, s.Image = etcd.Pod, in.ImageRef("etcd")
	}
	return s
}

// kubeadmRunsEtcd reports whether the host's member is one of kubeadm's own static pods.
func kubeadmRunsEtcd(in component.Inputs) bool {
	return in.RunsEtcd() && !in.IsBinary() && in.Target.Cluster.Etcd.Type == spec.EtcdKubeadm
}

// etcdEndpoints are the URLs at which the host's API server reaches etcd. Where etcd runs on the same hosts it is the host's
// own member, under a name that is the same on all of them.
func etcdEndpoints(in component.Inputs) []string {
	e := in.Target.Cluster.Etcd
	switch {
	case e.Type == spec.EtcdExternal:
		return e.External.Endpoints
	case e.IsStacked():
		return []string{"https://127.0.0.1:2379"}
	}
	var urls []string
	for _, m := range in.Target.EtcdMembers() {
		urls = append(urls, "https://"+net.JoinHostPort(m.Address, "2379"))
	}
	return urls
}
