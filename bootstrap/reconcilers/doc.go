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
// The verbs, by their operation:
//
//	enroll.go             close_access.go       converge.go     keep_up.go              check_drift.go
//	assess_disruption.go  renew_certificates.go restart.go      reboot.go               snapshot_etcd.go
//	collect_logs.go       recover.go            stop_apiserver.go                       reset.go
//
// What they ask:
//
//	access.go        by which address and credentials the host is reached
//	door.go          the key pair and the user of the bootstrap data
//	sources.go       the Secrets and ConfigMaps that the host takes something from
//	consent.go       which of these may come to hosts
//	authorities.go   whether the cluster's certificate authority may be used
//	inventory.go     whether a host that the KubexmConfig names is a member
//	owner.go         whose the host is
//	maintenance.go   whether nobody is to touch it
//	policy.go        the policies that the cluster's hosts share
//	disruption.go    what may be disrupted, and when
//	turns.go         whose turn it is
//
// What becomes of what they see:
//
//	doubt.go         observations that know nothing of some steps
//	drift.go         what differs
//	certificates.go  the host's certificates
//	etcd.go          how its etcd is
//	bmc.go           the reset of a machine by its management controller
//	without_plan.go  what needs no plan, and takes no lock
//	heartbeat.go     hosts of the inventory that nobody has
//
// Of workers' hosts:
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
