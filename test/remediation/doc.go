// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remediation breaks hosts of a control plane of three, or of workers, on real hosts with a spare one, and leaves them to the
// reconcilers and a MachineHealthCheck. Each time all must become healthy by itself, by the cheapest means that can help:
//
//	converge   the kubelet is stopped and disabled
//	reboot     something is mounted over the kubelet, which no file that is written puts right
//	drift      a unit or a static Pod's manifest is spoiled, a certificate is deleted, etcd is masked
//	replace    the host that has the cluster's address, or a worker's, is switched off and never comes back: the spare one takes its
//	           place, and it goes into quarantine
//
// A member of etcd that no host of the cluster has is left to who declares it to be gone (TestUnknownMember): nothing is scaled until
// then.
//
// What was done, as events tell it, and how long it took is logged.
//
// The management cluster is the embedded plane with the reconcilers of all providers.
//
// Environment:
//
//	REMEDIATION_SUBNET  the hosts' network; by default one that is free
//	KUBEXM_BUNDLE   the bundle, by default build/bundle
package remediation
