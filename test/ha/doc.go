// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ha makes highly available clusters on real hosts by the program kubexm and a config.yaml, as a user would, takes
// hosts away from them, and resets all hosts:
//
//	TestFailover   kubeadm, its etcd on three control plane hosts, keepalived and haproxy on two hosts. While ConfigMaps are
//	               written through the virtual address without a pause, the host that has the address is paused, and a
//	               control plane host is killed and comes back. No acknowledged write is lost.
//	TestKubeVIP    kubeadm, and units, on three control plane hosts that hold the address themselves by kube-vip: the host that has it is
//	               killed under writes, comes back, and kube-vip's certificates are renewed
//	TestKinds      other kinds of clusters come up, are proven by pods, renew certificates when asked and when these end soon,
//	               stay as they are when asked again, and go
//	TestUpgrade    three control plane hosts and three workers are brought to the next minor version by one command, in place
//	               and by replacing hosts, under writes and with a workload that has a PodDisruptionBudget
//	TestScale      a control plane grows from one host to three and shrinks to one, another goes from three to five and back; an
//	               even number is refused
//	TestSettings   another domain and port of the API, another domain of services, host-gw and name servers of Pods, seen from Pods and
//	               on hosts
//	TestCalico     Calico connects pods, in VXLAN and by the hosts' addresses, with an MTU and blocks of its own; NetworkPolicies are kept
//	               to; a worker that goes releases its block
//	TestNetworkPolicy  Kubernetes' own tests of NetworkPolicy judge Calico
//	TestAddons     metrics-server answers, and a manifest of the user's own is applied; both are repaired, and uninstalled when they leave
//	               the list
//	TestCRIO       CRI-O runs pods: images of the bundle and of a mirror with a password, a restart, and hosts reset
//
// A host that was reset equals its snapshot from before.
//
// Environment:
//
//	HA_SUBNET      the hosts' network; by default one that is free
//	KUBEXM_BUNDLE  the bundle, by default build/bundle
//	KUBEXM_BUNDLE_PREVIOUS  that of the version before, by default beside it (make artifacts-previous)
//	KUBEXM_BUNDLE_CALICO    one with Calico, by default beside it (make artifacts-calico)
//	KUBEXM_BUNDLE_NETWORK_POLICY  one with Calico and Kubernetes' tests of NetworkPolicy, by default beside it
//	                        (make artifacts-network-policy)
//	KUBEXM_BUNDLE_KUBE_VIP  one that has kube-vip too, by default beside it (make artifacts-kube-vip)
//	KUBEXM_BUNDLE_ADDONS    one with what addons take, by default beside it (make artifacts-addons)
//	KUBEXM_BUNDLE_CRIO  one with CRI-O, by default beside it (make artifacts-cri-o)
//	KUBEXM         the program, by default bin/kubexm
package ha
