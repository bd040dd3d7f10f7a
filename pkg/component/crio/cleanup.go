// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package crio

import (
	_ "embed"
	"path"
	"slices"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

var (
	//go:embed remove-pods.sh
	removePods string
	//go:embed remove-profile.sh
	removeProfile string
)

// Claim declares what CRI-O and the pods in it will leave behind, so that a reset removes it: it comes before CRI-O is started for the
// first time. What else Pods leave is left (component.Inputs.Residue).
func Claim(dataDir string, left step.Residue) step.Step {
	// CRI-O's own rules for host ports.
	left.Chains = append(slices.Clone(left.Chains), "CRIO-")
	left.Tables = append(slices.Clone(left.Tables), "ip crio-hostports", "ip6 crio-hostports")
	// Made here, so that parents that are made with them go with them.
	parts, paths := []step.Step{step.Directory{Path: dataDir, Mode: 0o700}}, []string{dataDir}
	if above := path.Dir(cache); dataDir != above {
		parts, paths = append(parts, step.Directory{Path: above, Mode: 0o755}), append(paths, cache)
	}
	parts = append(parts, step.Claim{
		Paths: slices.Concat(paths, []string{
			"/run/containers", "/run/crio", "/var/lib/crio", "/var/log/crio", "/etc/cni", "/opt/cni", "/var/lib/cni",
			"/var/log/pods", "/var/log/containers", "/run/nri", "/run/xtables.lock", "/var/lib/kubelet",
		}, left.Paths),
		Cleanup: append(component.PodCleanups(left),
			step.Cleanup{Title: "remove the AppArmor profile", Argv: []string{"/bin/sh", "-c", removeProfile}}),
	},
		// Pods that change the packet filter mount it, and have it made where it is not; it is not ours to keep as a claim would.
		step.Directory{Path: "/lib/modules", Mode: 0o755},
		// CRI-O makes those that it looks into and nobody has made.
		step.Directory{Path: "/etc/crio/policies", Mode: 0o755},
		step.Directory{Path: "/usr/share/containers/oci/hooks.d", Mode: 0o755},
	)
	return step.New(step.Meta{
		Name: "cri-o/claim", Description: "record what containers will fill", Timeout: step.Duration(20 * time.Minute),
	}, parts...).Until(step.Done{Journaled: true}) // once: /run is empty after a boot, and that is no drift
}

// cache is what CRI-O knows of layers in registries. It does not follow the data directory.
const cache = "/var/lib/containers/cache"

// Pods declares that pods will run, so that a reset ends them before CRI-O: it comes after CRI-O is started and before anything makes
// pods.
func Pods() step.Step {
	return step.New(step.Meta{Name: "cri-o/pods", Description: "record that pods will run"},
		step.Claim{Cleanup: []step.Cleanup{{Title: "remove pods", Argv: []string{"/bin/sh", "-c", removePods}}}})
}
