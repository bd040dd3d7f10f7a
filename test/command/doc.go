// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command runs the program kubexm on real hosts as a person does, each of its verbs, and reads what it prints.
package command
