// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inplace brings the Machines of a MachineDeployment to another version of Kubernetes on the hosts that they have. It
// needs none of Cluster API's feature gates.
//
//	kubectl annotate machinedeployment workers controlplane.cluster.x-k8s.io/in-place-version=v1.36.3
//
// Machines get the version in a sliding window as wide as the MachineDeployment's maxUnavailable; their hosts follow them
// (package bootstrap). A host that fails stops the rollout until it is repaired. When the last one has the version, the
// MachineDeployment gets it too, in a way that Cluster API takes for a rollout that is over:
//
//	Machines            spec.version, a few at a time; each is waited for
//	MachineDeployment   paused, once all are done: its reconciler compares its template with those of its MachineSets, and
//	                    would make a new MachineSet of any difference
//	MachineSet          spec.template.spec.version; then status.observedGeneration says that Cluster API's cache has it
//	MachineDeployment   spec.template.spec.version, unpaused, the annotation off: one request
//
// A MachineDeployment that is deleted meanwhile is unpaused, so that Cluster API deletes its Machines.
//
// What is decided follows from the objects alone, so that a manager may end at any point and another go on.
package inplace

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments;machinesets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments/status,verbs=get;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmconfigs,verbs=get;list;watch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubexmcontrolplanes,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
