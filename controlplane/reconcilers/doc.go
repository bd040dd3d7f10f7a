// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconcilers decides of each KubexmControlPlane which Machines there are, and makes its certificate authorities
// and its kubeconfig. It never opens a connection to a host: that is for the KubexmConfigs that it makes.
//
//	kubexmcontrolplane_controller.go  the reconciler: phases in order
//	certificates.go  the certificate authorities
//	authorities.go   those that are not the ones which hosts know
//	recover.go       those that are read back from hosts
//	kubeconfig.go    the administrator's kubeconfig
//	apis.go          which APIs are in use that another version does not serve
//	members.go       the list of all hosts of the cluster, in the KubexmClusterConfig
//	inventory.go     hosts of the cluster that are no Nodes
//	scale.go         making, replacing and changing Machines, one at a time
//	remediate.go     replacing unhealthy Machines
//	discard.go       what was made for a Machine that never came to be
//	serving.go       kubelets' requests for serving certificates
//	sync.go          what reaches Machines in place
//	status.go        what is said of it
//	available.go     whether the cluster's API answers, and its components are well
//	rolling.go       what is said of changes on their way
//	delete.go        the workers first, then the Machines
package reconcilers

// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubexmcontrolplanes,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubexmcontrolplanes/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubexmcontrolplanes/finalizers,verbs=update
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmconfigs,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmconfigs/finalizers,verbs=update
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmclusterconfigs,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmoperations,verbs=get
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=*,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines;machines/status,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
