// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config reads config.yaml, a cluster and its hosts in one file:
//
//	apiVersion: kubexm.mensylisir.io/v1alpha1
//	kind: Cluster
//	metadata: {name: prod}
//	spec:
//	  hosts:      [{name: node1, address: 172.16.0.2, user: ops, privateKeyPath: ~/.ssh/id_ed25519}, …]
//	  proxyJump:  {host: bastion.example.org, user: jump}   where hosts are not reached directly; a host may have its own, or none
//	  roleGroups: {master: [node1], worker: ["node[2:4]"]}
//	  kubernetes: {version: v1.36.3}
//	  …           the rest is spec.Cluster
//
// Hosts of etcd and of load balancers, that spec.Cluster names or selects in an inventory, are role groups of a file: etcd
// (where it is not the control plane's hosts) and loadbalancer. Of an external etcd a file names the PEM files on this machine.
//
// A file goes through these stages; nothing is ever ignored, and all problems are reported at once, each with its line:
//
//	tree         YAML without anchors, tags and keys that are there twice
//	aliases      older spellings become the fields of spec.Cluster           kubernetes.maxPods → kubernetes.kubelet.maxPods
//	unsupported  fields and values that are known, but that this version cannot honour, are refused by name
//	decode       unknown fields are refused, with the nearest known name
//	validate     defaults, then the rules of spec and those of hosts and roles
//
// A field belongs to spec.Cluster (or Host) alone: another spelling of it is a row of the alias table, and a field that
// becomes supported leaves the table of unsupported ones.
package config
