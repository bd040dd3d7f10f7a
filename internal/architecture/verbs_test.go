// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// vocabulary are the names of an API's enumeration: its marker, and its constants by their values.
func vocabulary(in *tree, kind string) (marked []string, constants map[string]string) {
	constants = map[string]string{}
	for _, f := range in.files {
		if f.dir != "bootstrap/api/v1beta1" || f.isTest() {
			continue
		}
		marker := regexp.MustCompile(`(?m)^// \+kubebuilder:validation:Enum=(.*)\ntype ` + kind + ` string$`)
		if found := marker.FindSubmatch(f.content); found != nil {
			marked = strings.Split(string(found[1]), ";")
		}
		for _, found := range regexp.MustCompile(`(?m)^\t(\w+)\s+`+kind+`\s+= "(\w+)"$`).FindAllSubmatch(f.content, -1) {
			constants[string(found[1])] = string(found[2])
		}
	}
	return marked, constants
}

// What is done with a host is a table: each verb that the API knows is there once, and nothing is started past it.
func TestVerbsAreTables(t *testing.T) {
	const constant = "const (\n\tOperationPlanted OperationType = \"Planted\"\n)\n"
	kept(t, verbs,
		plant{"OperationPlanted is 0 times in the tables of bootstrap/reconcilers", "bootstrap/api/v1beta1/planted.go", constant},
		plant{"OperationType is marked as one of", "bootstrap/api/v1beta1/planted.go", constant},
		plant{"bootstrap/reconcilers/planted.go:2 starts work on a host past the table", "bootstrap/reconcilers/planted.go",
			"func (r *KubexmConfigReconciler) planted(s *scope) { r.Runner.Start(s.key, run{}) }"},
		plant{"bootstrap/operations/planted.go:2 starts work on a host past the table", "bootstrap/operations/planted.go",
			"func (r *KubexmOperationReconciler) planted() { jobs := r.Jobs; jobs.Start(r.key, nil) }"},
	)
}

func verbs(in *tree, report func(string, ...any)) {
	info, starts := typesOf(in), 0
	for kind, table := range map[string]string{"OperationType": "bootstrap/reconcilers", "KubexmOperationType": "bootstrap/operations"} {
		marked, constants := vocabulary(in, kind)
		entries := map[string]int{}
		for _, f := range in.files {
			if f.dir != table || f.isTest() {
				continue
			}
			ast.Inspect(f.syntax, func(node ast.Node) bool {
				if name := entryOf(node); name != "" && constants[name] != "" {
					entries[name]++
				}
				call, ok := node.(*ast.SelectorExpr)
				if !ok || call.Sel.Name != "Start" || info.named(call.X, "bootstrap/hostrun") != "Runner" {
					return true
				}
				if starts++; path.Base(f.path) != "operations.go" {
					report("%s starts work on a host past the table of operations", f.at(call))
				}
				return true
			})
		}
		var values []string
		for name, value := range constants {
			if values = append(values, value); entries[name] != 1 {
				report("%s is %d times in the tables of %s, not once", name, entries[name], table)
			}
		}
		slices.Sort(values)
		if slices.Sort(marked); len(marked) == 0 || !slices.Equal(marked, values) {
			report("%s is marked as one of %q, and has constants for %q", kind, marked, values)
		}
	}
	if starts == 0 {
		report("nobody starts work on a host")
	}
}

// entryOf is the constant that names an entry of a table: operation{name: bootstrapv1.X, …} or a row {bootstrapv1.X, …}.
func entryOf(node ast.Node) string {
	literal, ok := node.(*ast.CompositeLit)
	if !ok || len(literal.Elts) < 2 {
		return ""
	}
	first := literal.Elts[0]
	if pair, ok := first.(*ast.KeyValueExpr); ok {
		if key, ok := pair.Key.(*ast.Ident); !ok || key.Name != "name" {
			return ""
		}
		first = pair.Value
	}
	if selector, ok := first.(*ast.SelectorExpr); ok {
		return selector.Sel.Name
	}
	return ""
}
