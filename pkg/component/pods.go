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

// PodCleanups remove what pods leave in the kernel, whatever runs them, with what the network adds to what the standard plugins and
// kube-proxy leave. They are for a claim that is made before anything runs pods.
func PodCleanups(network step.Residue) []step.Cleanup {
	script := network.Script + fmt.Sprintf("links='%s' chains='%s' tables='%s'\n",
		strings.Join(network.Links, " "), strings.Join(network.Chains, " "), strings.Join(network.Tables, ",")) + removeNetwork
	return []step.Cleanup{
		{Title: "remove pod network", Argv: []string{"/bin/sh", "-c", script}},
		{Title: "remove pod cgroups", Argv: []string{"/bin/sh", "-c", removeCgroups}},
	}
}
