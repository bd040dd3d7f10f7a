// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

var (
	// Units are members that are units of systemd, on the control plane's hosts or on hosts of their own.
	Units component.Etcd = units{membersOf{Unit}}
	// StaticPods are members that are pods of the control plane's kubelets, whoever makes them.
	StaticPods component.Etcd = membersOf{Pod}
)

// membersOf are those of an etcd that is run here, in one form.
type membersOf struct{ form Form }

// Needs are its programs, by which a control plane host saves a snapshot of an etcd on other hosts, too, and a pod's image.
func (m membersOf) Needs(in component.Inputs) component.Needs {
	switch {
	case !in.RunsEtcd() && !in.IsControlPlane():
		return component.Needs{}
	case !in.RunsEtcd():
		return programs("etcdctl")
	case m.form == Unit:
		return programs("etcd", "etcdctl", "etcdutl")
	}
	needs := programs("etcdctl", "etcdutl")
	needs.Images = component.ImagesNamed("etcd")
	return needs
}

func programs(names ...string) component.Needs {
	return component.Needs{Programs: []component.Programs{{Component: "etcd", Names: names}}}
}

// IsPod follows from the form.
func (m membersOf) IsPod() bool { return m.form == Pod }

// Image is the bundle's.
func (membersOf) Image(in component.Inputs) string { return in.ImageRef("etcd") }

// Gates are none: hosts wait for members by what these make.
func (membersOf) Gates(component.Inputs) []plan.Task { return nil }

// Prepare declares what a member will write: before the container runtime's pods, which end before their data goes.
func (m membersOf) Prepare(in component.Inputs) []plan.Task {
	switch {
	case !in.RunsEtcd():
		return await(in.AfterEtcd)
	case in.KubernetesMakesEtcd():
		return nil
	}
	return []plan.Task{{Name: "etcd-data", Steps: []step.Step{Claim(m.settings(in))}}}
}

// await comes first on a control plane host whose etcd runs elsewhere. One that is planned for alone has nothing to wait for: its API
// server is started again until etcd is there.
func await(takes []string) []plan.Task {
	if len(takes) == 0 {
		return []plan.Task{{Name: "await"}}
	}
	return []plan.Task{{Name: "await", Steps: []step.Step{Await(takes)}}}
}

// Tasks have the host begin etcd or join it.
func (m membersOf) Tasks(in component.Inputs) []plan.Task {
	var tasks []plan.Task
	if in.RunsEtcd() {
		tasks = append(tasks, plan.Task{Name: "etcd", Steps: m.member(in)})
	}
	if in.IsControlPlane() {
		// It comes before what starts the API server, on hosts without a member too.
		client := ClientCertificates(in.Target.Cluster.Certificates, in.Target.Host.Name, component.NoRestore(component.RestoreHalted))
		tasks = append(tasks, plan.Task{Name: "etcd-client", Steps: append(clientPrograms(in), client)})
	}
	return tasks
}

func (m membersOf) member(in component.Inputs) []step.Step {
	s := m.settings(in)
	var steps []step.Step
	if in.Target.Host.Role == spec.RoleEtcd { // on a Node, what is done before programs are replaced is the savepoint's
		steps = append(steps, Snapshot(s, in.Programs("etcd")))
	}
	return append(steps,
		Programs(in.Programs("etcd")),
		Certificates(s),
		Member(s, component.EtcdMember(in.Target.Host.Name), in.AfterEtcd...),
	)
}

// clientPrograms are what a host without a member saves snapshots with.
func clientPrograms(in component.Inputs) []step.Step {
	if in.RunsEtcd() {
		return nil
	}
	return []step.Step{Programs(in.Programs("etcd"))}
}

// Care removes the members of hosts that go, and looks after the databases. Where Kubernetes makes the members, etcd's programs and the
// administrator's certificate are for this alone.
func (m membersOf) Care(in component.Inputs) []plan.Task {
	if !in.RunsEtcd() {
		return nil
	}
	s := m.settings(in)
	var steps []step.Step
	if in.KubernetesMakesEtcd() {
		steps = append(steps, Clients(in.Programs("etcd")), Certificates(s))
	}
	return []plan.Task{{Name: "etcd-maintenance", Steps: append(steps, Members(s), Maintenance(s), backups(in, s))}}
}

// Client asks the host's own member, under a name that is the same on all hosts, where there is one.
func (membersOf) Client(in component.Inputs) component.EtcdClient {
	c := component.EtcdClient{CA: clientCA, Certificate: clientCert, Key: clientKey}
	if in.Target.Cluster.Etcd.IsStacked() {
		c.Endpoints = []string{"https://127.0.0.1:2379"}
		return c
	}
	for _, m := range in.Target.EtcdMembers() {
		c.Endpoints = append(c.Endpoints, "https://"+host.InURL(m.Address)+":2379")
	}
	return c
}

// Certificates are the member's and the API server's, unless Kubernetes makes these.
func (m membersOf) Certificates(in component.Inputs) []step.Step {
	var steps []step.Step
	if in.RunsEtcd() {
		steps = append(steps, Certificates(m.settings(in)))
	}
	if in.IsControlPlane() && !in.KubernetesMakesEtcd() {
		steps = append(steps, ClientCertificates(in.Target.Cluster.Certificates, in.Target.Host.Name))
	}
	return steps
}

// Save asks the host's own member first.
func (m membersOf) Save(in component.Inputs) step.Command { return m.access(in).Save() }

// SaveAsked asks the host's own member first.
func (m membersOf) SaveAsked(in component.Inputs, asked time.Time) plan.Task {
	return saveAsked(m.access(in), asked)
}

func saveAsked(a Access, asked time.Time) plan.Task {
	return plan.Task{Name: "etcd-snapshot", Steps: []step.Step{a.SaveAsked(asked)}}
}

func (m membersOf) access(in component.Inputs) Access {
	if in.RunsEtcd() {
		return m.settings(in).Access()
	}
	return ClientAccess(m.Client(in), false)
}

// Members are these.
func (m membersOf) Members() component.EtcdMembers { return m }

// Restart restarts the host's, unless Kubernetes does.
func (m membersOf) Restart(in component.Inputs, r component.Restart) []step.Step {
	if in.KubernetesMakesEtcd() {
		return nil
	}
	return []step.Step{Restart(m.settings(in), r)}
}

func (m membersOf) settings(in component.Inputs) Settings {
	t := in.Target
	s := Settings{
		Name: t.Host.Name, Address: t.Host.NodeAddress(), Cluster: t.ClusterName, Spec: t.Cluster.Etcd,
		First: t.BootstrapMode == spec.BootstrapInit, Members: t.EtcdMembers(), Leaving: t.Leaving, Gone: t.Cluster.Etcd.GoneMembers,
		Certificates: t.Cluster.Certificates, Form: m.form,
	}
	if m.form == Pod {
		s.Image = m.Image(in)
	} else if in.IsControlPlane() {
		s.Clients = in.Kubernetes.EtcdClients(in)
	}
	return s
}
