// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package task has the goals on one host that belong to no component: a list of dedicated steps for each. Tasks have no logic of their
// own beyond which steps, with which part of the inputs. Those of components are in their folders.
package task
