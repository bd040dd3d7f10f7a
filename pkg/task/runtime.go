// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/cni"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/containerd"
)

// Containerd installs the container runtime.
func Containerd(in component.Inputs) plan.Task {
	r, template := in.Target.Cluster.ContainerRuntime, ""
	if in.Target.Cluster.Network.IsDualStack() {
		template = cni.TemplatePath
	}
	return plan.Task{Name: "containerd", Steps: []step.Step{
		containerd.Claim(r.DataDir, in.Network.Residue()),
		containerd.Programs(in.Programs("containerd", "runc")),
		containerd.Config(containerd.Settings{
			DataDir: r.DataDir, PauseImage: in.ImageRef("pause"), Registries: r.Registries,
			SystemdCgroup: in.CgroupDriver() == "systemd", RestrictOOMScore: !in.MayTuneLimits(),
			NetworkTemplate: template,
		}),
		containerd.Service(in.Programs("containerd", "runc")),
		containerd.Pods(),
	}}
}

// Images fills the runtime with what the host needs before it is a Node.
func Images(in component.Inputs) plan.Task {
	return plan.Task{Name: "images", Steps: []step.Step{containerd.Images(in.System.Arch, in.Images)}}
}

// CNI installs the standard network plugins.
func CNI(in component.Inputs) plan.Task {
	steps := []step.Step{cni.Plugins(in.Programs("cni-plugins"))}
	if in.Target.Cluster.Network.IsDualStack() {
		steps = append(steps, cni.Template(in.Network.PodMTU(in.Target.Cluster.Network)))
	}
	return plan.Task{Name: "cni", Steps: steps}
}
