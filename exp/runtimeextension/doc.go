// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runtimeextension serves Cluster API's hooks for updates in place, which it calls where its feature gates RuntimeSDK and
// InPlaceUpdates are on:
//
//	CanUpdateMachineSet  asked by the MachineDeployment's reconciler: which parts of this change do hosts follow?
//	CanUpdateMachine     the same of one Machine, asked by control plane providers
//	UpdateMachine        asked by the Machine's reconciler, until it learns that the host has followed
//
// There is nothing for them to bring about. Cluster API writes the change to the Machine and its KubexmConfig, and the host follows
// these as it follows any change (package bootstrap). So the first two compare, and the third reads how far the host is.
//
// What hosts follow is decided where it is decided for everybody: by the webhooks of the kinds, spec.ValidateNodeUpdate, and package
// inplace. A change that is not followed is left out of the patch, and Cluster API replaces the Machines.
package runtimeextension

// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmconfigs,verbs=get
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=list
