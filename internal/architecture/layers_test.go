// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"maps"
	"path"
	"slices"
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

// uses are the places where a file uses identifiers of a package of this repository, by identifier.
func uses(f *file, dir string) map[string]ast.Node {
	spec, imported := f.imports()["./"+dir]
	if !imported {
		return nil
	}
	name := path.Base(dir)
	if spec.Name != nil {
		name = spec.Name.Name
	}
	used := map[string]ast.Node{}
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if of, ok := selector.X.(*ast.Ident); ok && of.Name == name {
				used[selector.Sel.Name] = node
			}
		}
		return true
	})
	return used
}

// Generic steps are for the packages below pkg/step, one for each component, which make dedicated steps of them, and
// tasks are made of these. What every step is, and the data that steps take, is for all.
func TestGenericStepsAreForDedicatedOnes(t *testing.T) {
	all := files(t)
	generic := genericKinds(all)
	if len(generic) < 10 || !generic["File"] || !generic["Command"] {
		t.Fatalf("the generic kinds of pkg/step were not found: %v", generic)
	}
	for _, f := range all {
		// Plans are printed and read, and engines run, whatever the step; what is tested and measured is as generic as can be.
		if within(f.dir, "pkg/step/...", "pkg/plan/...", "pkg/engine/...", "pkg/kube/...", "test/...") || f.isTest() {
			continue
		}
		for name, node := range uses(f, "pkg/step") {
			if generic[name] {
				t.Errorf("%s uses the generic step.%s: make a dedicated step of it, below pkg/step", f.at(node), name)
			}
		}
	}
}

// Pipelines are made of modules, and modules of tasks. What tasks are told is made by pipelines.
func TestPipelinesAreMadeOfModules(t *testing.T) {
	all := files(t)
	tasks := map[string]bool{}
	for _, f := range all {
		for _, declaration := range f.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if ok && f.dir == "pkg/task" && function.Recv == nil && function.Type.Results != nil {
				tasks[function.Name.Name] = kindOf(function.Type.Results.List[0].Type) == "plan.Task"
			}
		}
	}
	if !slices.Contains(slices.Collect(maps.Values(tasks)), true) {
		t.Fatal("no tasks were found in pkg/task")
	}
	for _, f := range all {
		for name, node := range uses(f, "pkg/task") {
			if tasks[name] && !f.isTest() && !within(f.dir, "pkg/task/...", "pkg/module/...") {
				t.Errorf("%s uses task.%s: make it a part of a module", f.at(node), name)
			}
		}
	}
}

// Only pkg/host speaks SSH. The pool of test hosts makes keys, and checks the hosts that it starts; bundles are signed by SSH keys.
func TestOnlyHostsSpeakSSH(t *testing.T) {
	for _, f := range files(t) {
		for name, spec := range f.imports() {
			if within(name, "golang.org/x/crypto/ssh/...") && !within(f.dir, "pkg/host/...", "pkg/artifact", "test/...") && !f.isTest() {
				t.Errorf("%s: only pkg/host speaks SSH: use its Host", f.at(spec))
			}
		}
	}
}
