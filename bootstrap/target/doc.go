// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package target computes what a host must be from the objects that declare it. It is pure, and the only place that does so: the
// reconcilers call it with the objects that they have read, and the command line with those that it would apply.
package target
