// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterctl takes the way that docs/guides/clusterctl.md describes, command by command, on real hosts:
//
//	made        two hosts become a management cluster by kubexm create cluster
//	installed   clusterctl init installs cert-manager, the core of Cluster API and our three providers from a directory
//	declared    an inventory, and a cluster that clusterctl generate makes of a template
//	ready       its Nodes are Ready; clusterctl describe shows every object so
//	scaled      a worker comes, and goes
//	moved       clusterctl move takes the cluster to the plane of the command kubexm, and back again; and the management cluster
//	            from that plane into itself, and back again; no host is touched by that
//	upgraded    clusterctl upgrade apply brings the next version of the providers; no host is touched by that
//	deleted     every host is reset
//	topology    a cluster of the class comes to the next version of Kubernetes by its topology, and is deleted
//	ha          so does one of three control plane hosts, whose Machines are replaced under a write load, and is deleted
//
// Everything that runs in the management cluster is compiled here: there is no registry. What is not ours is in
// catalogue.yaml; images are brought to the hosts as archives.
//
// Environment:
//
//	CLUSTERCTL_SUBNET  the hosts' network; by default one that is free
//	KUBEXM             the program, by default bin/kubexm
//	KUBEXM_BUNDLE      the bundle, by default build/bundle
//	KUBEXM_BUNDLE_PREVIOUS  that of the version before, by default beside it (make artifacts-previous)
package clusterctl
