// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pipeline is the top of the engine's four layers: one function per intent of a user, each a literal list of
// modules.
//
//	pipeline  CreateControlPlane, JoinWorker, CreateCluster   a user's intent: modules in order
//	module    os, runtime, etcd, kubernetes, network          a strategic domain: tasks in order
//	task      containerd, kubelet, control plane, …           one component, one goal: dedicated steps in order
//	step      containerd/config, etcd/member, …               one act on one host: generic steps in order
//
// All of it is pure: a pipeline turns a specification, what is known of the hosts and a bundle's list of contents into a
// plan. There is no pipeline for giving a host back: the undo store on the host knows better than any plan what was
// there before (engine.Undo).
package pipeline
