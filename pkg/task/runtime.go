// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/cni"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/containerd"
)

// Containerd installs the container runtime.
func Containerd(in Inputs) plan.Task {
	r := in.Target.Cluster.ContainerRuntime
	return plan.Task{Name: "containerd", Steps: []step.Step{
		containerd.Claim(r.DataDir),
		containerd.Programs(in.containerd),
		containerd.Config(containerd.Settings{
			DataDir: r.DataDir, PauseImage: in.refs["pause"], Registries: r.Registries,
			SystemdCgroup: in.cgroupDriver() == "systemd", RestrictOOMScore: !in.mayTuneLimits(),
		}),
		containerd.Service(in.containerd),
		containerd.Pods(),
	}}
}

// Images fills the runtime with what the host needs before it is a Node.
func Images(in Inputs) plan.Task {
	return plan.Task{Name: "images", Steps: []step.Step{containerd.Images(in.System.Arch, in.images)}}
}

// CNI installs the standard network plugins.
func CNI(in Inputs) plan.Task {
	return plan.Task{Name: "cni", Steps: []step.Step{cni.Plugins(in.cni)}}
}
