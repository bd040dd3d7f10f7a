// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults breaks what the engine works with while it creates and deletes a cluster on real hosts, and while a
// control plane of them grows, renews its certificates and shrinks, and demands that the next run, or the same one, comes to
// the same end:
//
//	kill_test.go      the process is killed at every step boundary, and within steps
//	members_test.go   so it is while a control plane host joins, and while it is taken out again, for both kinds of members
//	renewal_test.go   and while certificates are renewed
//	upgrade_test.go   and while a control plane host and a worker are upgraded (make faults-upgrade: it needs two bundles)
//	cutoff_test.go    a second host joins the control plane while the first that does so is cut off
//	line_test.go      connections are cut, hosts are paused and lose their power
//	disk_test.go      a disk is full
//	network_test.go   flannel cannot start on a Node that is Ready
//	artifact_test.go  a file of the bundle is corrupt
//	trust_test.go     the host key is wrong; sudo is refused
//	writers_test.go   two runs want one host
//	leak_test.go      nobody sees a secret
//
// The same end is this: the engine finds every step of the plan as it should be, a further run changes nothing, the
// Nodes are Ready and their pods run, etcd consists of the hosts that it should, certificates are whole and in use, nothing
// half made lies on the hosts; and after a reset each host equals its snapshot from before.
//
// What the single host does when it is cut within an act is the matter of package hosttest.
//
// Environment:
//
//	FAULTS_BUDGET  how long to go on killing, e.g. 10m for a sample of about ten minutes in all, a third of it each while
//	               a cluster is made and while its control plane changes; by default every boundary is visited, and a few
//	               random rounds follow
//	FAULTS_SEED    repeats the random choices of an earlier run, which has printed it
//	FAULTS_SUBNET  the hosts' network; by default one that is free
//	KUBEXM_BUNDLE  the bundle, by default build/bundle
//	KUBEXM_BUNDLE_PREVIOUS  that of the version before, of which upgrades begin, by default build/bundle-v1.35.4
package faults
