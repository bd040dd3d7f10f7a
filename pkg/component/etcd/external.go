// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/gate"
)

// External is an etcd that others run. It is used, and nothing of it is changed.
type External struct{}

var _ component.Etcd = External{}

// checked: it can be used.
var checked = graph.Output[string]{Name: "external-etcd-checked"}

// Needs are what a control plane host saves a snapshot with.
func (External) Needs(in component.Inputs) component.Needs {
	if !in.IsControlPlane() {
		return component.Needs{}
	}
	return programs("etcdctl")
}

// IsPod is for others to know.
func (External) IsPod() bool { return false }

// Image is for others to know.
func (External) Image(component.Inputs) string { return "" }

// Gates are one, which opens when it can be reached and used.
func (External) Gates(in component.Inputs) []plan.Task {
	e := in.Target.Cluster.Etcd.External
	return []plan.Task{{Name: "external", Steps: []step.Step{gate.ExternalEtcd(e.Endpoints, e.SecretRef.Name, checked)}}}
}

// Prepare waits until it was found fit: nothing is changed before.
func (External) Prepare(in component.Inputs) []plan.Task {
	if !in.IsControlPlane() {
		return nil
	}
	return await([]string{checked.Name})
}

// Tasks give the API server what others have made for it, and the host what snapshots are saved with.
func (External) Tasks(in component.Inputs) []plan.Task {
	if !in.IsControlPlane() {
		return nil
	}
	steps := clientPrograms(in)
	if e := in.Target.Cluster.Etcd.External; e.IsSecure() {
		steps = append(steps, ExternalClient(e.SecretRef.Name))
	}
	return []plan.Task{{Name: "etcd-client", Steps: steps}}
}

// Care is for others to take.
func (External) Care(component.Inputs) []plan.Task { return nil }

// Client has the endpoints that are declared.
func (External) Client(in component.Inputs) component.EtcdClient {
	e := in.Target.Cluster.Etcd.External
	c := component.EtcdClient{Endpoints: e.Endpoints}
	if e.IsSecure() {
		c.CA, c.Certificate, c.Key = clientCA, clientCert, clientKey
	}
	return c
}

// Certificates are made by others.
func (External) Certificates(component.Inputs) []step.Step { return nil }

// Save saves one if others let us have the data.
func (e External) Save(in component.Inputs) step.Command {
	return ClientAccess(e.Client(in), true).Save()
}

// SaveAsked saves one if others let us have the data.
func (e External) SaveAsked(in component.Inputs, asked time.Time) plan.Task {
	return saveAsked(ClientAccess(e.Client(in), true), asked)
}

// Members are for others to manage.
func (External) Members() component.EtcdMembers { return nil }
