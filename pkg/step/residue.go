// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import "slices"

// Residue is what Pods leave on a host, and what a reset removes when nothing of ours runs any more.
type Residue struct {
	// Paths are files and directories, absolute.
	Paths []string
	// Links are names of network interfaces.
	Links []string
	// Chains are what the names of iptables' chains begin with.
	Chains []string
	// Tables are nftables' tables, as "family name".
	Tables []string
	// Sets are what the names of ipset's sets begin with. They go after the chains whose rules use them.
	Sets []string
	// Script is shell that removes what no name tells, before links go. What it needs that is not there is not to be removed.
	Script string
}

// And is what both leave.
func (r Residue) And(other Residue) Residue {
	return Residue{
		Paths: slices.Concat(r.Paths, other.Paths), Links: slices.Concat(r.Links, other.Links),
		Chains: slices.Concat(r.Chains, other.Chains), Tables: slices.Concat(r.Tables, other.Tables),
		Sets: slices.Concat(r.Sets, other.Sets), Script: r.Script + other.Script,
	}
}
