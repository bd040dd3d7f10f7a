// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operations does once what a KubexmOperation asks for: it asks the hosts of its target, some at a time, by the annotations of
// their KubexmConfigs that people and GitOps use as well, and gathers what came of it. It touches no host itself, but for a restore of
// etcd, which is one plan over several hosts: these stand still meanwhile.
//
//	kubexmoperation_controller.go  the flow: phases in order
//	verbs.go       what there is to ask for, a line each, and how a KubexmConfig answers
//	target.go      whose hosts are meant
//	progress.go    pure: who is asked next, and what came of those that were
//	restore.go     a restore of etcd: its phases in order, and what is written before each
//	hold.go        who holds the hosts, and whether all of them stand still
//	unsettled.go   pure: what keeps a restore from beginning
//	source.go      where a backup lies
//	operations.go  the jobs: what is done with several hosts by one plan
//
// A status may be lost, by a move to another management cluster for one. So that nothing is done twice then, a KubexmOperation has in
// annotations when it began and that it has ended, and what a KubexmConfig was asked for names who asked.
package operations

// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmoperations,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmoperations/status,verbs=patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmoperations/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmconfigs,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=kubexmclusterconfigs,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines;machinedeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
