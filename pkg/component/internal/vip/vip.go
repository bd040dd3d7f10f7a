// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package vip is what those have in common that let a virtual address move between hosts.
package vip

import (
	_ "embed"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

//go:embed release.sh
var release string

// Release takes the virtual address off the host, whichever interface has it.
func Release(address string) step.Cleanup {
	return step.Cleanup{Title: "take off the virtual address", Argv: []string{"/bin/sh", "-c", release, "sh", address + "/32"}}
}
