// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package turn lets the control plane hosts of a cluster take turns at what disrupts, by a Lease that the cluster keeps. It is for
// the scripts of steps, which may run on several hosts at once and know nothing of each other.
package turn

import (
	_ "embed"
	"time"
)

// Script holds the functions by which a script takes its turn (have_turn), sees right before it disrupts that it still has it
// (keep_turn) and gives it back (is_given_back). Its first lines say what it needs.
//
//go:embed turn.sh
var Script string

const (
	// Patience is how long one component of the control plane may take to come up.
	Patience = 4 * time.Minute
	// Term is how long a turn lasts after its holder was last heard of. The holder is heard of before each component that it
	// restarts, and cannot be while its only API server is away: until that has failed to come up with what is new, and has come
	// up with what was there before.
	Term = 2*Patience + 2*time.Minute
	// Asking is for how long whoever keeps the turn is asked for it once more, before it counts as lost.
	Asking = 20 * time.Second
	// Limit is how long a host waits for its turn, all before it included.
	Limit = 30 * time.Minute
)
