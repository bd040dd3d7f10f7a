// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/cni"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/containerd"
)

// Containerd installs the container runtime.
func Containerd(in Inputs) plan.Task {
	r, template := in.Target.Cluster.ContainerRuntime, ""
	if in.Target.Cluster.Network.IsDualStack() {
		template = cni.TemplatePath
	}
	return plan.Task{Name: "containerd", Steps: []step.Step{
		containerd.Claim(r.DataDir),
		containerd.Programs(in.containerd),
		containerd.Config(containerd.Settings{
			DataDir: r.DataDir, PauseImage: in.refs["pause"], Registries: r.Registries,
			SystemdCgroup: in.cgroupDriver() == "systemd", RestrictOOMScore: !in.mayTuneLimits(),
			NetworkTemplate: template,
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
	steps := []step.Step{cni.Plugins(in.cni)}
	if in.Target.Cluster.Network.IsDualStack() {
		steps = append(steps, cni.Template(in.podMTU()))
	}
	return plan.Task{Name: "cni", Steps: steps}
}

// podMTU is the maximum transmission unit of pods' interfaces where flannel's own plugin does not set it: 1500 bytes of an
// Ethernet, less what VXLAN puts around a packet on its way over IPv6.
func (in Inputs) podMTU() int32 {
	const ethernet, vxlan = 1500, 70
	f := in.Target.Cluster.Network.Flannel
	switch {
	case f.MTU != 0:
		return f.MTU
	case f.Backend == spec.FlannelVXLAN:
		return ethernet - vxlan
	}
	return ethernet
}
