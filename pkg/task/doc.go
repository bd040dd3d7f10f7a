// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package task is one component's one goal on one host: a list of dedicated steps. Tasks have no logic of their own
// beyond which steps, with which part of the inputs.
package task
