// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"path"
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

// Generic steps are for components, and for the packages below pkg/step, which make dedicated steps of them, and tasks are made of
// these. What every step is, and the data that steps take, is for all.
func TestGenericStepsAreForDedicatedOnes(t *testing.T) {
	all := files(t)
	generic := genericKinds(all)
	if len(generic) < 10 || !generic["File"] || !generic["Command"] {
		t.Fatalf("the generic kinds of pkg/step were not found: %v", generic)
	}
	for _, f := range all {
		// Plans are printed and read, and engines run, whatever the step; what is tested and measured is as generic as can be.
		if within(f.dir, "pkg/step/...", "pkg/component/...", "pkg/plan/...", "pkg/engine/...", "pkg/kube/...", "test/...") || f.isTest() {
			continue
		}
		for name, node := range uses(f, "pkg/step") {
			if generic[name] {
				t.Errorf("%s uses the generic step.%s: make a dedicated step of it, below pkg/step", f.at(node), name)
			}
		}
	}
}

// A component is its own folder's business: its siblings do not know it, and others ask its slot. Only the tables name it.
func TestComponentsAreAskedByTheirSlot(t *testing.T) {
	const all, tables = "pkg/component", "pkg/component/tables"
	named := 0
	for _, f := range files(t) {
		for name, spec := range f.imports() {
			imported, ours := strings.CutPrefix(name, "./")
			switch {
			case !ours || path.Dir(imported) != all || imported == tables:
			case f.dir == tables:
				named++
			case f.dir != imported && !f.isTest() && !within(f.dir, "test/..."):
				t.Errorf("%s knows the component %s: ask what fills its slot (component.Slots)", f.at(spec), path.Base(imported))
			}
		}
	}
	if named == 0 {
		t.Fatal("no table names a component")
	}
}

// What fills a slot is chosen by its table. The names by which a cluster's specification chooses are those of a component's folder.
func TestNobodyAsksForAComponentByName(t *testing.T) {
	choices := map[string]bool{"NetworkPlugin": true, "ContainerRuntimeType": true}
	names := map[string]bool{}
	for _, f := range files(t) {
		for _, declaration := range f.syntax.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || f.dir != "pkg/spec" {
				continue
			}
			for _, s := range general.Specs {
				if value, ok := s.(*ast.ValueSpec); ok && value.Type != nil && choices[kindOf(value.Type)] {
					names[value.Names[0].Name] = true
				}
			}
		}
	}
	if len(names) == 0 {
		t.Fatal("pkg/spec has no names of components")
	}
	for _, f := range files(t) {
		if within(f.dir, "pkg/component/...") || f.isTest() {
			continue
		}
		for name, node := range uses(f, "pkg/spec") {
			if names[name] {
				t.Errorf("%s asks for spec.%s: ask what fills the slot (component.Slots)", f.at(node), name)
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
