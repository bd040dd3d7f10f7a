// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"strings"
	"testing"
)

// genericKinds are the types of pkg/step that are steps, and its functions that make some.
func genericKinds(all []*file) map[string]bool {
	kinds := map[string]bool{}
	for _, f := range all {
		for _, declaration := range f.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if ok && f.dir == "pkg/step" && function.Recv != nil && function.Name.Name == "Meta" {
				kinds[strings.TrimPrefix(kindOf(function.Recv.List[0].Type), "*")] = true
			}
		}
	}
	makers := map[string]bool{}
	for _, f := range all {
		for _, declaration := range f.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || f.dir != "pkg/step" || function.Recv != nil || function.Type.Results == nil {
				continue
			}
			for _, result := range function.Type.Results.List {
				made := strings.TrimLeft(kindOf(result.Type), "[]*")
				makers[function.Name.Name] = makers[function.Name.Name] || made == "Step" || kinds[made]
			}
		}
	}
	for name, makes := range makers {
		kinds[name] = kinds[name] || makes
	}
	return kinds
}

// Tasks are made of dedicated steps, by the packages below pkg/step, one for each component. What every step is, and
// the data that steps take, is for all.
func TestTasksAreMadeOfDedicatedSteps(t *testing.T) {
	all := files(t)
	generic := genericKinds(all)
	if len(generic) < 10 || !generic["File"] || !generic["Command"] {
		t.Fatalf("the generic kinds of pkg/step were not found: %v", generic)
	}
	for _, f := range all {
		if !within(f.dir, "pkg/task/...", "pkg/module/...", "pkg/pipeline/...") || f.isTest() {
			continue
		}
		spec, imports := f.imports()["./pkg/step"]
		if !imports {
			continue
		}
		name := "step"
		if spec.Name != nil {
			name = spec.Name.Name
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := selector.X.(*ast.Ident); ok && of.Name == name && generic[selector.Sel.Name] {
				t.Errorf("%s: a task is made of the generic step.%s: make a dedicated step of it, below pkg/step", f.at(node), selector.Sel.Name)
			}
			return true
		})
	}
}

// Only pkg/host speaks SSH. The pool of test hosts makes keys, and checks the hosts that it starts.
func TestOnlyHostsSpeakSSH(t *testing.T) {
	for _, f := range files(t) {
		for name, spec := range f.imports() {
			if within(name, "golang.org/x/crypto/ssh/...") && !within(f.dir, "pkg/host/...", "test/...") && !f.isTest() {
				t.Errorf("%s: only pkg/host speaks SSH: use its Host", f.at(spec))
			}
		}
	}
}
