// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package nulltest

import (
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Etcd keeps nothing.
type Etcd struct{}

var _ component.Etcd = Etcd{}

// Needs nothing.
func (Etcd) Needs(component.Inputs) component.Needs { return component.Needs{} }

// IsPod is not so.
func (Etcd) IsPod() bool { return false }

// Image is none.
func (Etcd) Image(component.Inputs) string { return "" }

// Gates are none.
func (Etcd) Gates(component.Inputs) []plan.Task { return nil }

// Prepare claims a directory.
func (Etcd) Prepare(component.Inputs) []plan.Task {
	return []plan.Task{store("claim", step.Meta{}, step.Claim{Paths: []string{"/var/lib/null"}})}
}

// Tasks write a file, and say that this is a member.
func (Etcd) Tasks(in component.Inputs) []plan.Task {
	return []plan.Task{store("member", step.Meta{Makes: []string{component.EtcdMember(in.Target.Host.Name).Name}, Takes: in.AfterEtcd},
		step.File{Path: "/var/lib/null/store", Mode: 0o600, Content: step.Literal("nothing")})}
}

// Care is one task.
func (Etcd) Care(component.Inputs) []plan.Task {
	return []plan.Task{store("care", step.Meta{}, step.Command{Title: "care", Argv: []string{"true"}})}
}

// Client has one endpoint, without TLS.
func (Etcd) Client(component.Inputs) component.EtcdClient {
	return component.EtcdClient{Endpoints: []string{"http://127.0.0.1:9"}}
}

// Certificates are none.
func (Etcd) Certificates(component.Inputs) []step.Step { return nil }

// Save saves nothing.
func (Etcd) Save(component.Inputs) step.Command {
	return step.Command{Title: "save nothing", Argv: []string{"true"}}
}

// SaveAsked saves nothing.
func (e Etcd) SaveAsked(in component.Inputs, _ time.Time) plan.Task {
	return store("save", step.Meta{}, e.Save(in))
}

// Members are none.
func (Etcd) Members() component.EtcdMembers { return nil }

func store(name string, about step.Meta, s step.Step) plan.Task {
	about.Name, about.Description = "null/"+name, name+" of nothing"
	return plan.Task{Name: "null-" + name, Steps: []step.Step{step.New(about, s)}}
}
