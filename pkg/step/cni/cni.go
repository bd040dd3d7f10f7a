// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cni holds the steps that install the standard network plugins, and configure them.
package cni

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TemplatePath is the file from which containerd makes the configuration of pods' networks; see Template.
const TemplatePath = "/etc/containerd/pods.conflist"

//go:embed pods.conflist
var template string

// Plugins installs the plugins that network add-ons build on (bridge, host-local, portmap, loopback, …).
func Plugins(programs []step.Artifact) step.Step {
	parts := []step.Step{step.Directory{Path: "/etc/cni/net.d", Mode: 0o755}}
	return step.New(step.Meta{Name: "cni/plugins", Description: "install network plugins"},
		append(parts, step.Programs("/opt/cni/bin", programs)...)...)
}

// Template writes the template of the configuration by which pods get an address of each of the Node's pod networks. containerd
// fills it in when the kubelet tells these networks (conf_template in its configuration). mtu is that of pods' interfaces, in
// bytes.
func Template(mtu int32) step.Step {
	text := strings.Replace(template, "$MTU", strconv.Itoa(int(mtu)), 1)
	return step.New(step.Meta{Name: "cni/template", Description: "write the template of pods' networks"},
		step.File{Path: TemplatePath, Mode: 0o644, Content: step.Literal(text)})
}
