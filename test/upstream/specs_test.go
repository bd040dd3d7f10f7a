// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build upstream

package upstream

import (
	"context"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/test/e2e"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

var _ = Describe("Specs of Cluster API, on the pool", Ordered, ContinueOnFailure, func() {
	ctx := context.Background()

	BeforeAll(startHosts)

	// After the spec's own, which waits until its Cluster is gone.
	AfterEach(func(ctx context.Context) {
		if CurrentSpecReport().Failed() {
			return
		}
		now, err := hosts.Snapshots(ctx, pool.Hosts)
		Expect(err).NotTo(HaveOccurred())
		for name, snapshot := range now {
			Expect(hosts.Diff(before[name], snapshot)).To(BeEmpty(), "host %s is not as it was", name)
		}
	})

	Describe("QuickStart", func() {
		e2e.QuickStartSpec(ctx, func() e2e.QuickStartSpecInput {
			return e2e.QuickStartSpecInput{
				E2EConfig: config, ClusterctlConfigPath: repository, BootstrapClusterProxy: proxy, ArtifactFolder: artifacts(),
				InfrastructureProvider: ptr.To(provider), ControlPlaneWaiters: waiters, PostNamespaceCreated: createInventory,
			}
		})
	})

	Describe("MachineDeploymentScale", func() {
		e2e.MachineDeploymentScaleSpec(ctx, func() e2e.MachineDeploymentScaleSpecInput {
			return e2e.MachineDeploymentScaleSpecInput{
				E2EConfig: config, ClusterctlConfigPath: repository, BootstrapClusterProxy: proxy, ArtifactFolder: artifacts(),
				InfrastructureProvider: ptr.To(provider), ControlPlaneWaiters: waiters, PostNamespaceCreated: createInventory,
			}
		})
	})

	Describe("ClusterDeletion", func() {
		e2e.ClusterDeletionSpec(ctx, func() e2e.ClusterDeletionSpecInput {
			return e2e.ClusterDeletionSpecInput{
				E2EConfig: config, ClusterctlConfigPath: repository, BootstrapClusterProxy: proxy, ArtifactFolder: artifacts(),
				InfrastructureProvider: ptr.To(provider), ControlPlaneWaiters: waiters, PostNamespaceCreated: createInventory,
				ClusterDeletionPhases: []e2e.ClusterDeletionPhase{
					{
						ObjectFilter:         machinesOr("MachineDeployment", "MachineSet"),
						BlockingObjectFilter: kind("Machine"),
					},
					{
						ObjectFilter:         machinesOr("KubexmControlPlane"),
						BlockingObjectFilter: kind("Machine"),
					},
					{
						ObjectFilter:         kind("KubexmCluster"),
						BlockingObjectFilter: kind("KubexmCluster"),
					},
				},
			}
		})
	})

	Describe("MachineDeploymentRemediation", func() {
		e2e.MachineDeploymentRemediationSpec(ctx, func() e2e.MachineDeploymentRemediationSpecInput {
			return e2e.MachineDeploymentRemediationSpecInput{
				E2EConfig: config, ClusterctlConfigPath: repository, BootstrapClusterProxy: proxy, ArtifactFolder: artifacts(),
				InfrastructureProvider: ptr.To(provider), ControlPlaneWaiters: waiters, PostNamespaceCreated: createInventory,
			}
		})
	})
})

// artifacts is where specs write what they see.
func artifacts() string { return filepath.Join(folder, "artifacts") }

// filter chooses objects for a phase of a deletion.
type filter = func(corev1.ObjectReference, []metav1.OwnerReference) bool

// kind chooses objects of a kind.
func kind(name string) filter {
	return func(object corev1.ObjectReference, _ []metav1.OwnerReference) bool { return object.Kind == name }
}

// machinesOr chooses objects of these kinds, and Machines that such objects own.
func machinesOr(kinds ...string) filter {
	return func(object corev1.ObjectReference, owners []metav1.OwnerReference) bool {
		if object.Kind == "Machine" {
			return slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return slices.Contains(kinds, o.Kind) })
		}
		return slices.Contains(kinds, object.Kind)
	}
}
