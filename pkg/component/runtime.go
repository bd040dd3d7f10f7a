// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

// Runtime is the slot of what runs containers on each Node. One runtime fills it, for the life of the cluster.
type Runtime interface {
	// Needs are what it takes from the bundle for a host.
	Needs(in Inputs) Needs
	// Install runs it. It declares first what pods will leave, so that a reset of the host stops them and removes that.
	Install(in Inputs) plan.Task
	// Load fills it with the images that the host needs before it is a Node.
	Load(in Inputs) plan.Task
	// Programs are those whose replacement restarts containers, or what looks after them: a Node is drained before.
	Programs(in Inputs) []step.Artifact
	// Endpoint is how a kubelet, and who works beside one, reach it.
	Endpoint() kubelet.Runtime
	// Foreign is how one that others have put on a host is recognised.
	Foreign() Foreign
}

// Foreign is a runtime that others have put on a host, and whose place ours would take.
type Foreign struct {
	// Name is what people call it.
	Name string
	// Unit is systemd's name for it, Process what runs, and Socket what it listens on, which counts while the process runs.
	Unit, Process, Socket string
	// Files are what ours is made of, and would overwrite.
	Files []string
	// Remove are the packages that it comes in, for people, and RemoveBoth those of it and of a Docker that came with it.
	Remove, RemoveBoth string
}
