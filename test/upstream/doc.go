// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream has Cluster API's own end-to-end specs (sigs.k8s.io/cluster-api/test) drive our providers on real hosts:
//
//	QuickStart                    a cluster of the default flavor is made, and everything of it says that it is well
//	MachineDeploymentScale        workers 1 → 3 → 1, and none, by deleting the MachineDeployment in the foreground
//	ClusterDeletion               a Cluster goes in order: workers, control plane, infrastructure
//	MachineDeploymentRemediation  a MachineHealthCheck sees a Node unwell; another Machine takes the place of the Node's
//
// The first two are run on hosts of Cluster API's infrastructure provider for development, too, by the flavor dev.
//
// Each spec has a namespace, on the pool with the whole inventory in it, and makes a cluster of its own. A host that was reset
// equals its snapshot from before.
//
// The management cluster is the embedded plane. Templates come from a repository as hack/release writes it, by clusterctl's
// library.
//
// Environment:
//
//	UPSTREAM_SUBNET  the hosts' network; by default one that is free
//	KUBEXM_BUNDLE    the bundle, by default build/bundle
package upstream
