// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 has the kinds of the experimental infrastructure provider: a pool of hosts that are reached over SSH.
// Experimental kinds are v1alpha1: they may change from one release to the next.
//
//	KubexmHost             one host of the inventory: its addresses, access and pinned host key
//	KubexmMachine          one Machine's claim on a host of its namespace
//	KubexmMachineTemplate  what MachineSets and the control plane make KubexmMachines from
//	KubexmCluster          the cluster's endpoint and failure domains
//	KubexmClusterTemplate  what a ClusterClass makes KubexmClusters from
//
// They follow the contract v1beta2 of Cluster API for infrastructure providers. Nothing here is reached over the network
// by this provider: the bootstrap provider alone dials hosts. Conditions and their reasons are constants in conditions.go.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1alpha1
