// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"regexp"
	"slices"
	"testing"
)

// called is the name of a function that a call calls, as package.Function or receiver.Method.
func called(call *ast.CallExpr) string {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		return function.Name
	case *ast.SelectorExpr:
		if of, ok := function.X.(*ast.Ident); ok {
			return of.Name + "." + function.Sel.Name
		}
		return "." + function.Sel.Name
	}
	return ""
}

func calls(f *file, found func(call *ast.CallExpr, name string)) {
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			found(call, called(call))
		}
		return true
	})
}

// A test that does not run does not fail. What needs hosts or an API server has a build tag, and its own make target.
func TestNothingIsSkipped(t *testing.T) {
	skips := regexp.MustCompile(`^(t|b|f|tb)\.(Skip|Skipf|SkipNow)$`)
	for _, f := range files(t) {
		calls(f, func(call *ast.CallExpr, name string) {
			if f.isTest() && skips.MatchString(name) {
				t.Errorf("%s skips a test: give it a build tag instead", f.at(call))
			}
		})
	}
}

// Sleeping waits too long on one machine, and not long enough on another. In a loop it is how often one looks.
func TestTestsDoNotSleep(t *testing.T) {
	for _, f := range files(t) {
		inLoop := map[*ast.CallExpr]bool{}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			if loop, ok := node.(*ast.ForStmt); ok {
				ast.Inspect(loop.Body, func(node ast.Node) bool {
					if call, ok := node.(*ast.CallExpr); ok {
						inLoop[call] = true
					}
					return true
				})
			}
			return true
		})
		calls(f, func(call *ast.CallExpr, name string) {
			if f.isTest() && name == "time.Sleep" && !inLoop[call] {
				t.Errorf("%s sleeps: wait for what must become so", f.at(call))
			}
		})
	}
}

// Errors are told apart by errors.Is and errors.As: their texts are for people, and change.
func TestErrorsAreNotReadAsText(t *testing.T) {
	reads := []string{"strings.Contains", "strings.HasPrefix", "strings.HasSuffix", "strings.EqualFold"}
	for _, f := range files(t) {
		calls(f, func(call *ast.CallExpr, name string) {
			if f.isTest() || !slices.Contains(reads, name) || len(call.Args) == 0 {
				return
			}
			if text, ok := call.Args[0].(*ast.CallExpr); ok && len(text.Args) == 0 {
				if method, ok := text.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Error" {
					t.Errorf("%s reads the text of an error: use errors.Is or errors.As", f.at(call))
				}
			}
		})
	}
}

// A panic takes every other host's run with it.
func TestNobodyPanics(t *testing.T) {
	for _, f := range files(t) {
		calls(f, func(call *ast.CallExpr, name string) {
			if !f.isTest() && name == "panic" {
				t.Errorf("%s panics: return an error", f.at(call))
			}
		})
	}
}

// What is left to do is in the issues, and what is there works.
func TestNothingIsLeftToDo(t *testing.T) {
	left := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
	for _, f := range files(t) {
		for _, group := range f.syntax.Comments {
			for _, comment := range group.List {
				if word := left.FindString(comment.Text); word != "" {
					t.Errorf("%s: %s", f.at(comment), word)
				}
			}
		}
	}
}
