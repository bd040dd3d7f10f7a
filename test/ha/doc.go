// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ha makes highly available clusters on real hosts by the program kubexm and a config.yaml, as a user would, takes
// hosts away from them, and gives all hosts back:
//
//	TestFailover   kubeadm, its etcd on three control plane hosts, keepalived and haproxy on two hosts. While ConfigMaps are
//	               written through the virtual address without a pause, the host that has the address is paused, and a
//	               control plane host is killed and comes back. No acknowledged write is lost.
//	TestKinds      other kinds of clusters come up, are proven by pods, renew certificates when asked and when these end soon,
//	               stay as they are when asked again, and go
//	TestUpgrade    three control plane hosts and three workers are brought to the next minor version by one command, in place
//	               and by replacing hosts, under writes and with a workload that has a PodDisruptionBudget
//	TestScale      a control plane grows from one host to three and shrinks to one, another goes from three to five and back; an
//	               even number is refused
//	TestSettings   another domain and port of the API, another domain of services, host-gw and name servers of Pods, seen from Pods and
//	               on hosts
//
// A host that was given back equals its snapshot from before.
//
// Environment:
//
//	HA_SUBNET      the hosts' network; by default one that is free
//	KUBEXM_BUNDLE  the bundle, by default build/bundle
//	KUBEXM_BUNDLE_PREVIOUS  that of the version before, by default beside it (make artifacts-previous)
//	KUBEXM         the program, by default bin/kubexm
package ha
