// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cni holds the step that installs the standard network plugins.
package cni

import "github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"

// Plugins installs the plugins that network add-ons build on (bridge, host-local, portmap, loopback, …).
func Plugins(programs []step.Artifact) step.Step {
	parts := []step.Step{step.Directory{Path: "/etc/cni/net.d", Mode: 0o755}}
	return step.New(step.Meta{Name: "cni/plugins", Description: "install network plugins"},
		append(parts, step.Programs("/opt/cni/bin", programs)...)...)
}
