// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package embedded runs a whole Cluster API management plane in one process tree, so that the CLI, the quickstart and
// tests run the reconcilers that production runs, and need no cluster for it.
//
//	this process                                    children (package child: they never outlive it)
//	┌───────────────────────────────────────────┐
//	│ controller-runtime manager                │   ┌────────────────────────────┐
//	│   Cluster, Machine, MachineSet,           ├──▶│ kube-apiserver             │   ┌──────┐
//	│   MachineDeployment, MachineHealthCheck   │   │ 127.0.0.1, TLS, client     ├──▶│ etcd │
//	│   (sigs.k8s.io/cluster-api/core)          │   │ certificates, RBAC         │   └──────┘
//	│   Options.Setup: our providers            │   └────▲────────────────┬──────┘   Unix socket
//	│   webhook server, 127.0.0.1 ◀─────────────┼────────┼────────────────┘
//	└───────────────────────────────────────────┘   ┌────┴───────────────────────┐
//	                                                │ kube-controller-manager    │
//	                                                │ garbage collector,         │
//	                                                │ namespaces; nothing else   │
//	                                                └────────────────────────────┘
//
// The plane's directory (mode 0700) is all its state. A process that starts a plane there goes on with the objects that
// the last one left, however that ended:
//
//	etcd/                            the objects
//	pki/                             authority and service account keys, made once; the API server's certificate
//	kubeconfig                       the administrator's, for kubectl and clusterctl; its port stays the same while it can
//	plane.lock                       locked by the process that runs the plane; says which one and since when
//	plane.log                        what the manager and all libraries log; nothing goes to the terminal
//	etcd.log, etcd.lock, …           a child's output, and the lock that tells whether it runs (package child)
//	etcd.sock:0, etcd-peer.sock:0    etcd's sockets: who may not enter the directory cannot reach it
//
// What differs from a management cluster that clusterctl has set up: only the stored versions of core's kinds are
// served, there is no ClusterClass, no ClusterResourceSet, no IPAM and no Runtime SDK, no Pod runs, and built-in APIs
// that no reconciler needs (apps, batch, policy, storage …) are not served, which makes the API server smaller.
package embedded
