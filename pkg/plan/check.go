// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"

// Check is what a look at one node that is not so yet found.
type Check struct {
	// Node is the node's ID.
	Node string
	// Diff is what differs.
	Diff step.Diff
	// Lines are those in which content differs, as a unified diff of few lines, by the subjects of Diff; only content that everybody
	// on the host may read.
	Lines map[string]string
	// Unknown says why it cannot be told yet: an input that another node makes first, a cluster that does not answer, a check that was
	// stopped. The node will be decided when its turn comes.
	Unknown string
}
