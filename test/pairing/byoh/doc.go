// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package byoh plays Bring Your Own Host, the infrastructure provider whose hosts register themselves, for tests of our pairing with it:
// its controllers and, for each host of a test, its agent. It is written from what that provider does, and is as strict; its own code
// cannot be had as a module.
//
//	installed   the kinds ByoCluster, ByoMachine, ByoHost and the templates; they keep Cluster API's contract v1beta1
//	agent       registers a ByoHost named like the host, with the addresses of every interface, in CIDR form, the loopback's too
//	controller  waits for the Cluster's infrastructure and the bootstrap Secret, and attaches the first ByoHost that is in no Cluster
//	agent       deletes /run/kubeadm and what is in /etc/cni/net.d, and runs the bootstrap data, of which it knows a part; all again
//	            if it fails
//	controller  gets the Node that is named like the ByoHost, and fails while there is none, ever more rarely; gives it a provider ID,
//	            and only then is the ByoMachine ready; refuses a Node that has another
//	controller  lets a deleted ByoMachine go at once, and has the agent clean up afterwards
//	agent       cleans up, as with --skip-installation: kubeadm is not asked to reset
//
// What it does not play: installing Kubernetes (K8sInstallerConfig), the approval of agents' certificates, the webhook that refuses others'
// changes to a ByoHost (the manager has no right to change one), pausing, and the forks' own additions. Agents run beside the test, and act
// on their hosts as root.
package byoh
