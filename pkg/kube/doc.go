// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kube is a cluster's API as steps on the controller use it (step.Cluster), and as reset and upgrade use it for
// Nodes: is it healthy, is a Node or a workload ready, apply a manifest, install a Helm release, hand out a bootstrap
// token, drain a Node.
//
// Nothing here waits: a gate asks again (step.Await). The exceptions say so: Drain, and what must follow on itself
// within one manifest or release. Everything that can be asked is asked without changing anything (Differs,
// ReleaseDiffers), by server-side dry run where the server knows best. Every error names the server.
package kube
