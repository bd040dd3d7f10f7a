// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload is what a cluster is used for while something is done to it: writes to its API that must not be lost, and
// Pods of which only so many may be away at once.
package workload
