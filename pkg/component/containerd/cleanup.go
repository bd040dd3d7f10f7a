// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	_ "embed"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

//go:embed remove-pods.sh
var removePods string

// Claim declares what containerd and the pods in it will leave behind, so that a reset removes it: it comes before
// containerd is started for the first time. What else Pods leave is left (component.Inputs.Residue).
func Claim(dataDir string, left step.Residue) step.Step {
	return step.New(step.Meta{
		Name: "containerd/claim", Description: "record what containers will fill", Timeout: step.Duration(20 * time.Minute),
	},
		// Made here, so that parents that are made with it go with it.
		step.Directory{Path: dataDir, Mode: 0o700},
		// Not claimed: network namespaces that others have put here cannot be copied. Those of pods are removed by name.
		step.Directory{Path: "/run/netns", Mode: 0o755},
		step.Claim{
			Paths: append([]string{
				dataDir, "/run/containerd", "/etc/cni", "/opt/cni", "/var/lib/cni", "/opt/containerd",
				"/var/log/pods", "/var/log/containers", "/run/nri", "/run/xtables.lock", "/var/lib/kubelet",
			}, left.Paths...),
			Cleanup: component.PodCleanups(left),
		},
		// Pods that change the packet filter mount it, and have it made where it is not; it is not ours to keep as a claim would.
		step.Directory{Path: "/lib/modules", Mode: 0o755},
	).Until(step.Done{Journaled: true}) // once: /run is empty after a boot, and that is no drift
}

// Pods declares that pods will run, so that a reset removes them while containerd still runs: it comes after containerd
// is started and before anything makes pods.
func Pods() step.Step {
	return step.New(step.Meta{Name: "containerd/pods", Description: "record that pods will run"},
		step.Claim{Cleanup: []step.Cleanup{{Title: "remove pods", Argv: []string{"/bin/sh", "-c", removePods}}}})
}
