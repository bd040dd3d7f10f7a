// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fetch downloads published files and takes nothing that it cannot verify: a file comes with its sha256, or
// with the URL of the checksum file that its publisher keeps beside it. What was fetched before an interruption is used again.
package fetch
