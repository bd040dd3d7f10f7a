// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reconcilers makes each KubexmConfig's host what it must be, keeps it so, and resets it; and it has the hosts of unhealthy
// workers repaired before their Machines are replaced.
//
//	kubexmconfig_controller.go       the flow: phases in order
//	operations.go  what is done with a host: the table of verbs in order of precedence, a file each
//	scope.go       all that one reconcile knows, read once
//	publish.go     the bootstrap data, which allows SSH to the host
//	target.go      pure: what the host must be
//	decide.go      pure: run now, look again later, or wait
//	job.go         what runs on the host, outside of the reconcile
//	status.go      pure: conditions from what a job came to
//	stand_still.go what an operation over several hosts wants of one: that nothing goes on there
//	party.go       how such an operation comes to the host, and what that must be
//
//	kubexmremediation_controller.go  what a KubexmRemediation asks of a host, and of its Machine
//	remediation.go                   pure: what becomes of an unhealthy worker; what is tried with its host is in internal/remediation
package reconcilers

// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmconfigs,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmconfigs/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmconfigs/finalizers,verbs=update
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmremediations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmremediations/status,verbs=patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmclusterconfigs,verbs=get;list;watch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmoperations,verbs=get
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmclusterconfigs/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=*,verbs=get;list;watch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=kubexmhosts,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=kubexmhosts/finalizers,verbs=update
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=kubexmhosts/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
