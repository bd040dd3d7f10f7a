// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package containerd runs containers by containerd and runc.
package containerd

import (
	_ "embed"
	"path"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

//go:embed enter.sh
var enter string

// Runtime is containerd.
type Runtime struct{}

var _ component.Runtime = Runtime{}

// pause is the image of pods' sandboxes, by its name in the catalogue.
const pause = "pause"

// Needs are the programs, and the sandboxes' image.
func (Runtime) Needs(in component.Inputs) component.Needs {
	if !in.IsNode() {
		return component.Needs{}
	}
	return component.Needs{
		Programs: []component.Programs{{Component: "containerd"}, {Component: "runc"}},
		Images:   component.ImagesNamed(pause),
	}
}

// Programs are containerd's and runc.
func (Runtime) Programs(in component.Inputs) []step.Artifact {
	return in.Programs("containerd", "runc")
}

// Install runs containerd.
func (r Runtime) Install(in component.Inputs) plan.Task {
	s, programs := in.Target.Cluster.ContainerRuntime, r.Programs(in)
	settings := Settings{
		DataDir: s.DataDir, PauseImage: in.ImageRef(pause), Registries: s.Registries,
		SystemdCgroup: in.CgroupDriver() == "systemd", RestrictOOMScore: !in.MayTuneLimits(),
	}
	if in.Target.Cluster.Network.IsDualStack() {
		settings.PodMTU = in.Network.PodMTU(in.Target.Cluster.Network)
	}
	return plan.Task{Name: "containerd", Steps: []step.Step{
		Claim(s.DataDir, in.Residue()),
		InstallPrograms(programs),
		Config(settings),
		Service(programs),
		Pods(),
	}}
}

// Load imports images.
func (Runtime) Load(in component.Inputs) plan.Task {
	return plan.Task{Name: "images", Steps: []step.Step{Images(in.System.Arch, in.Images)}}
}

// Endpoint is containerd's socket.
func (Runtime) Endpoint() kubelet.Runtime {
	return kubelet.Runtime{Socket: socket, Unit: service, Name: "containerd", Enter: enter}
}

// Foreign is Docker's containerd or one of its own. Packages of distributions have their programs in /usr/bin and their units below
// /lib, and this configuration.
func (Runtime) Foreign() component.Foreign {
	return component.Foreign{
		Name: "containerd", Unit: service, Process: "containerd", Socket: strings.TrimPrefix(socket, "unix://"),
		Files: []string{
			config, unit, path.Join(bin, "containerd"), path.Join(bin, "containerd-shim-runc-v2"), path.Join(bin, "ctr"), path.Join(bin, "runc"),
		},
		Remove:     "containerd, or containerd.io",
		RemoveBoth: "docker.io containerd, or docker-ce containerd.io",
	}
}
