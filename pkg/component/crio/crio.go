// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crio runs containers by CRI-O, conmon and runc.
package crio

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

// Runtime is CRI-O.
type Runtime struct{}

var _ component.Runtime = Runtime{}

// Names of the catalogue.
const (
	pause = "pause"

	crio  = "cri-o"
	pinns = "pinns"
	tools = "cri-tools"
	runc  = "runc"
)

// Needs are the programs, and the sandboxes' image. Conmon is a package of the host's operating system.
func (Runtime) Needs(in component.Inputs) component.Needs {
	if !in.IsNode() {
		return component.Needs{}
	}
	return component.Needs{
		Optional: component.Optional{Component: crio},
		Programs: []component.Programs{
			{Component: crio}, {Component: pinns}, {Component: tools, Names: []string{crictl}}, {Component: runc},
		},
		Images: component.ImagesNamed(pause),
	}
}

// Programs are CRI-O's and runc; not crictl, which nothing runs but people.
func (Runtime) Programs(in component.Inputs) []step.Artifact {
	return in.Programs(crio, pinns, runc)
}

// Install runs CRI-O.
func (r Runtime) Install(in component.Inputs) plan.Task {
	s, programs := in.Target.Cluster.ContainerRuntime, r.Programs(in)
	settings := Settings{
		DataDir: s.DataDir, PauseImage: in.ImageRef(pause), Registries: s.Registries,
		SystemdCgroup: in.CgroupDriver() == "systemd", RestrictOOMScore: !in.MayTuneLimits(),
	}
	return plan.Task{Name: "cri-o", Steps: []step.Step{
		Claim(s.DataDir, in.Residue()),
		Packages(in.OS, in.PackageFiles.For(PackageNames(in.OS)...)),
		InstallPrograms(append(programs, in.Programs(tools)...)),
		Config(settings),
		Service(programs),
		Pods(),
	}}
}

// Load stores images.
func (Runtime) Load(in component.Inputs) plan.Task {
	return plan.Task{Name: "images", Steps: []step.Step{Images(in.System.Arch, in.Target.Cluster.ContainerRuntime.DataDir, in.Images)}}
}

// Endpoint is CRI-O's socket.
func (Runtime) Endpoint() kubelet.Runtime {
	return kubelet.Runtime{Socket: socket, Unit: service, Name: "cri-o", Enter: enter}
}

// Foreign is one from a package, which has its program in /usr/bin and its unit below /lib, or from an archive of upstream's.
func (Runtime) Foreign() component.Foreign {
	return component.Foreign{
		Name: "CRI-O", Unit: service, Process: "crio", Socket: strings.TrimPrefix(socket, "unix://"),
		Files:      []string{config, unit, path.Join(bin, "crio"), path.Join(bin, "pinns"), path.Join(bin, "runc")},
		Remove:     "cri-o",
		RemoveBoth: "cri-o docker.io, or docker-ce",
	}
}
