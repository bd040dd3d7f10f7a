// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade tests hosts of two versions of Kubernetes: by the library alone, by the command (TestCommand), and by
// objects.
//
// By the library, hosts follow another version in place (TestInPlace): a control plane host and a worker, under a write load and
// with Pods that a disruption budget guards. What is tried on the way is a version that cannot run, which is undone, and a run
// that is stopped half way, which the next goes on with. Hosts of both versions live in one cluster (TestMixed), as they do in a
// rollout by replacement. At the end the hosts are what they were after the reset.
//
// By objects, a cluster follows when a maintenance window opens and somebody agrees, behind a canary (TestDisruption). Workers that are in
// use are changed by hand, by settings that restart their kubelets and by one that fails, and a version that does not serve what is in use
// is not begun (TestPool, which needs one bundle).
//
// TestAPIServerAway takes the API server away for five minutes in the midst of an upgrade by the command.
//
// It needs two bundles: make artifacts artifacts-previous.
//
// Environment:
//
//	KUBEXM_BUNDLE, KUBEXM_BUNDLE_PREVIOUS  the bundles, by default those in build
//	KUBEXM                                 the program, by default bin/kubexm
package upgrade
