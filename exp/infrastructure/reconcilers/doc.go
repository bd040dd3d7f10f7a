// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconcilers gives Machines hosts of a pool, and takes them back.
//
//	KubexmMachine          claims a host: never one that another Machine has, spread over failure domains; releases it when deleted
//	KubexmMachineTemplate  says what the hosts have at least that Machines made from it may get
//	KubexmHost             says whether a host may be claimed, and why not
//	KubexmCluster          publishes the endpoint and the failure domains
//
// Each kind's reconciler is in a file of its name. It reads all it needs, decides by pure functions (claim.go, availability.go,
// endpoint.go), acts, and writes conditions. No host is dialled here.
//
// A claim is one write of a host's spec.claimRef at the resource version that was read, so of many claimants one wins.
// Nor does a host go to a Machine while another KubexmHost that is the same machine is claimed (twins.go).
// Hosts are read from the API server and not from a cache: a claim that the cache does not show yet would be made twice.
package reconcilers

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=kubexmclusters;kubexmhosts;kubexmmachines,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=kubexmclusters/status;kubexmhosts/status;kubexmmachines/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=kubexmmachinetemplates,verbs=get;list;watch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=kubexmmachinetemplates/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=kubexmclusters/finalizers;kubexmhosts/finalizers;kubexmmachines/finalizers,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=get;list;watch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubexmcontrolplanes,verbs=get
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmclusterconfigs,verbs=get
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
