// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

var (
	//go:embed remove-network.sh
	removeNetwork string
	//go:embed remove-cgroups.sh
	removeCgroups string
)

// Residue is what the network, and what leads to Services, leave on a Node.
func (in Inputs) Residue() step.Residue { return in.Network.Residue().And(in.ServiceProxy.Residue()) }

// PodCleanups remove what pods leave in the kernel, whatever runs them, with what components add to what the kubelet and the standard
// plugins leave. They are for a claim that is made before anything runs pods.
func PodCleanups(left step.Residue) []step.Cleanup {
	script := left.Script + fmt.Sprintf("links='%s' chains='%s' tables='%s' sets='%s'\n", strings.Join(left.Links, " "),
		strings.Join(left.Chains, " "), strings.Join(left.Tables, ","), strings.Join(left.Sets, " ")) + removeNetwork
	return []step.Cleanup{
		{Title: "remove pod network", Argv: []string{"/bin/sh", "-c", script}},
		{Title: "remove pod cgroups", Argv: []string{"/bin/sh", "-c", removeCgroups}},
	}
}
