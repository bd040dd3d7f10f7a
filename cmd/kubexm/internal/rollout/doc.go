// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout puts a cluster's objects into a management plane, and reads from them how far the cluster is.
package rollout
