// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 has the kinds of the control plane provider: what all hosts of a cluster share, and who is in its control plane.
//
//	KubexmControlPlane          a cluster's control plane
//	KubexmControlPlaneTemplate  what a ClusterClass makes KubexmControlPlanes from
//
// They follow the contract v1beta2 of Cluster API for control plane providers, and use the names of KubeadmControlPlane
// where it has them. Conditions and their reasons are constants in conditions.go.
//
// +kubebuilder:object:generate=true
// +groupName=controlplane.cluster.x-k8s.io
package v1beta1
