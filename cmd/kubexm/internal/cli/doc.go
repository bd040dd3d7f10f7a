// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line: a file for each command, which checks what it is given, calls the packages beside this
// one, and shows what came of it. Results go to standard output, all else to standard error.
package cli
