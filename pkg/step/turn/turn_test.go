// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package turn_test

import (
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/turn"
)

// While its holder restarts its only API server it can tell nobody: a turn must last for that, and for taking it back.
func TestTermCoversAStartAndItsUndoing(t *testing.T) {
	if turn.Term <= 2*turn.Patience || turn.Limit <= turn.Term {
		t.Errorf("a turn ends after %s, a component may take %s to start and as long to start as it was, and others wait for %s",
			turn.Term, turn.Patience, turn.Limit)
	}
}
