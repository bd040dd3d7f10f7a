// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"strings"
	"testing"
)

// conditionReaders are files that read a host's conditions beside those who write and judge them.
var conditionReaders = exempt{
	"bootstrap/operations/verbs.go":           "shows what keeps a host from what it was asked for",
	"cmd/kubexm/internal/rollout/adopt.go":    "asks for the one reason that an owner is named for",
	"cmd/kubexm/internal/rollout/again.go":    "asks for the one reason that a host is asked again for",
	"cmd/kubexm/internal/rollout/snapshot.go": "asks whether the summary is of the last change",
}

// How a host is follows from its conditions in one place. Who writes them reads them, too.
func TestHostsAreJudgedInOnePlace(t *testing.T) {
	kept(t, judgements,
		plant{"controlplane/desired/planted.go:2 reads how a host is", "controlplane/desired/planted.go", "var is = bootstrapv1.HostReadyCondition"},
		plant{"controlplane/desired/planted.go:2 reads how a host is", "controlplane/desired/planted.go", `const is = "HostConverged"`},
		plant{"bootstrap/operations/verbs.go breaks the rule no more", "bootstrap/operations/verbs.go", ""},
	)
}

func judgements(in *tree, report func(string, ...any)) {
	broken, end := conditionReaders.but(report)
	defer end()
	for _, f := range in.files {
		if f.isTest() || within(f.dir, "bootstrap/reconcilers", "internal/hosthealth", "test/...") {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok && strings.HasPrefix(called(call), "hosthealth.") {
				return false // it is asked there
			}
			selector, ok := node.(*ast.SelectorExpr)
			reads := ok && (selector.Sel.Name == "HostConvergedCondition" || selector.Sel.Name == "HostReadyCondition")
			if text, ok := node.(*ast.BasicLit); ok && f.dir != "bootstrap/api/v1beta1" {
				reads = text.Value == `"HostConverged"` || text.Value == `"HostReady"`
			}
			if reads {
				broken(f.path, "%s reads how a host is: ask internal/hosthealth", f.at(node))
			}
			return true
		})
	}
}
