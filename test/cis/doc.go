// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cis asserts on a real control plane host what the CIS Kubernetes Benchmark v1.10 asks for, as far as it can be found out by
// a program: the controls that the benchmark calls automated, of its sections 1 to 4, and of the manual ones those about encryption at
// rest. Suites that have such a host call Check.
//
// The audits are written from the benchmark's text. They are not those of kube-bench, which reads the same files and arguments.
// docs/reference/cis.md has the same table; TestDocument keeps both alike.
package cis
