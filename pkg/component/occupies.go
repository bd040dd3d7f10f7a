// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import "github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"

// Occupant is what a part of a LoadBalancer is besides, where it takes a place on hosts of its own that others may have: a reset takes such
// a place back to what it was, whatever others have done there since.
type Occupant interface {
	// Occupies are these paths on a host with this operating system: files, and directories that are not empty.
	Occupies(os family.Family) []string
}
