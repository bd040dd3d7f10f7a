// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"strings"
	"testing"
)

// conditionReaders are files that read a host's conditions beside those who write and judge them, and why. The list only gets shorter.
var conditionReaders = map[string]string{
	"bootstrap/operations/verbs.go":           "shows what keeps a host from what it was asked for",
	"cmd/kubexm/internal/rollout/adopt.go":    "asks for the one reason that an owner is named for",
	"cmd/kubexm/internal/rollout/again.go":    "asks for the one reason that a host is asked again for",
	"cmd/kubexm/internal/rollout/snapshot.go": "asks whether the summary is of the last change",
}

// How a host is follows from its conditions in one place. Who writes them reads them, too.
func TestHostsAreJudgedInOnePlace(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range files(t) {
		if f.isTest() || within(f.dir, "bootstrap/reconcilers", "internal/hosthealth", "test/...") {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok && strings.HasPrefix(called(call), "hosthealth.") {
				return false // it is asked there
			}
			selector, ok := node.(*ast.SelectorExpr)
			if !ok || selector.Sel.Name != "HostConvergedCondition" && selector.Sel.Name != "HostReadyCondition" {
				return true
			}
			if seen[f.path] = true; conditionReaders[f.path] == "" {
				t.Errorf("%s reads how a host is: ask internal/hosthealth", f.at(selector))
			}
			return true
		})
	}
	for reader := range conditionReaders {
		if !seen[reader] {
			t.Errorf("%s does not read a host's conditions any more: take it off the list", reader)
		}
	}
}
