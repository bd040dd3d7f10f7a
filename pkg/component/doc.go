// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package component is what the parts that a cluster is made of have in common: what they plan from, what they take from the
// bundle, and the slots that they fill. A component is one folder below: its tasks and steps, what it needs, what it leaves on a
// host. Which component fills which slot is in the package tables. Nothing but its table asks for it by name.
package component
