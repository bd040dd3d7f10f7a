// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e takes one cluster through its life by plain objects, on real hosts, with a real Kubernetes:
//
//	held back      what another manager has, and what is paused, is left alone
//	created        the managers are killed in mid-create, and those that follow take up where the host stands
//	proven         pods reach a Service by its name, across Nodes
//	recovered      the Secrets of all authorities are lost, and read back from the control plane host, which is not changed
//	scaled         MachineDeployment 1 → 3 → 1; the managers are stopped and started while hosts are worked on
//	replaced       a worker's Machine is deleted: its Node is drained within a PodDisruptionBudget, its host reset and
//	               released, and another host takes its place
//	deleted        every host is reset, although the managers are killed while they reset one
//
// TestHandover freezes a manager that works on a host for longer than its lease: another one takes over, and no host has two
// writers.
//
// TestMove moves a cluster with etcd and load balancers on hosts of their own to another management cluster and back, and restores a
// backup of it in a third one when the first is lost. No file of the hosts changes, and no process is another, by any of that.
//
// TestBYOH, TestMetal3 and TestDev have hosts of other infrastructure providers (test/pairing), which are installed when our managers
// already run: the first two are played, the third is Cluster API's own for development. Nobody has ever logged in there for us: the
// bootstrap data lets us in.
//
// TestKubeadmWorkers has workers of Cluster API's own bootstrap provider by kubeadm join a control plane of ours.
//
// A host that was reset equals its snapshot from before.
//
// The management cluster is the embedded plane with Cluster API's own reconcilers. Ours run as they do in production: the
// program cmd/manager, once for each provider, with the rights of the ServiceAccount and the webhooks that config/ has
// for it, installed as clusterctl would. The objects are those of templates/cluster.
//
// Environment:
//
//	E2E_SUBNET     the hosts' network; by default one that is free
//	KUBEXM_BUNDLE  the bundle, by default build/bundle
package e2e
