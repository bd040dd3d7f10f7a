// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"strings"
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
	kept(t, skips,
		plant{"pkg/kube/planted_test.go:2 skips a test", "pkg/kube/planted_test.go", "func TestPlanted(c *testing.T) { c.Skip(`slow`) }"},
		plant{"test/lab/planted.go:2 skips a test", "test/lab/planted.go", "func planted(l *lab) { l.t.SkipNow() }"},
	)
}

func skips(in *tree, report func(string, ...any)) {
	skip := regexp.MustCompile(`(^|\.)(Skip|Skipf|SkipNow)$`)
	for _, f := range in.files {
		calls(f, func(call *ast.CallExpr, name string) {
			if (f.isTest() || within(f.dir, "test/...")) && skip.MatchString(name) {
				report("%s skips a test: give it a build tag instead", f.at(call))
			}
		})
	}
}

// Sleeping waits too long on one machine, and not long enough on another. In a loop it is how often one looks.
func TestTestsDoNotSleep(t *testing.T) {
	kept(t, sleeps,
		plant{"pkg/kube/planted_test.go:2 sleeps", "pkg/kube/planted_test.go", "func TestPlanted(t *testing.T) { time.Sleep(time.Second) }"},
		plant{"test/lab/planted.go:2 sleeps", "test/lab/planted.go", "func planted() { <-time.After(time.Second) }"},
	)
}

func sleeps(in *tree, report func(string, ...any)) {
	for _, f := range in.files {
		if !f.isTest() && !within(f.dir, "test/...") {
			continue
		}
		paced := map[ast.Node]bool{}
		pace := func(by ast.Node, name string) {
			ast.Inspect(by, func(node ast.Node) bool {
				call, ok := node.(*ast.CallExpr)
				paced[node] = paced[node] || ok && strings.HasPrefix(called(call), name)
				return true
			})
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.ForStmt:
				pace(n.Body, "time.")
			case *ast.RangeStmt: // over what comes in time
				pace(n.Body, "time.After")
			case *ast.SelectStmt: // it waits for something else, too
				pace(n.Body, "time.After")
			case *ast.UnaryExpr:
				if call, ok := n.X.(*ast.CallExpr); ok && called(call) == "time.After" && !paced[call] {
					report("%s sleeps: wait for what must become so", f.at(call))
				}
			case *ast.CallExpr:
				if called(n) == "time.Sleep" && !paced[n] {
					report("%s sleeps: wait for what must become so", f.at(n))
				}
			}
			return true
		})
	}
}

// Errors are told apart by errors.Is and errors.As: their texts are for people, and change.
func TestErrorsAreNotReadAsText(t *testing.T) {
	const reads = "pkg/kube/planted.go:2 reads the text of an error"
	kept(t, errorsAsText,
		plant{reads, "pkg/kube/planted.go", "func planted(err error) bool { return strings.Contains(err.Error(), `refused`) }"},
		plant{reads, "pkg/kube/planted.go", "func planted(err error) bool { text := err.Error(); return refused.MatchString(text) }"},
		plant{reads, "pkg/kube/planted.go", "func planted(err error) bool { return err.Error() == `refused` }"},
		plant{"pkg/engine/redact.go breaks the rule no more", "pkg/engine/redact.go", ""},
	)
}

// errorReaders are files that read errors' texts.
var errorReaders = exempt{
	"pkg/engine/redact.go":    "compares a text with what is left of it without secrets",
	"pkg/spec/config/tree.go": "shows it without the library's name",
}

func errorsAsText(in *tree, report func(string, ...any)) {
	broken, end := errorReaders.but(report)
	defer end()
	says := func(e ast.Expr) bool {
		call, ok := e.(*ast.CallExpr)
		return ok && len(call.Args) == 0 && strings.HasSuffix(called(call), ".Error")
	}
	for _, f := range in.files {
		if !f.isTest() {
			read := func(n ast.Node) {
				broken(f.path, "%s reads the text of an error: use errors.Is or errors.As", f.at(n))
			}
			readAsText(f, says, read, read)
		}
	}
}

// A panic takes every other host's run with it.
func TestNobodyPanics(t *testing.T) {
	kept(t, panics, plant{"pkg/kube/planted.go:2 panics", "pkg/kube/planted.go", "func planted() { panic(`no`) }"})
}

func panics(in *tree, report func(string, ...any)) {
	for _, f := range in.files {
		calls(f, func(call *ast.CallExpr, name string) {
			if !f.isTest() && name == "panic" {
				report("%s panics: return an error", f.at(call))
			}
		})
	}
}

// What is left to do is in the issues, and what is there works.
func TestNothingIsLeftToDo(t *testing.T) {
	kept(t, leftToDo,
		plant{"pkg/kube/planted.go:2: TO" + "DO", "pkg/kube/planted.go", "// TO" + "DO: more"},
		plant{"pkg/host/planted.sh: FIX" + "ME", "pkg/host/planted.sh", "# FIX" + "ME: quote\n"},
	)
}

func leftToDo(in *tree, report func(string, ...any)) {
	left := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
	for _, f := range in.texts {
		if word := left.Find(f.content); word != nil && filepath.Ext(f.path) == ".sh" {
			report("%s: %s", f.path, word)
		}
	}
	for _, f := range in.files {
		for _, group := range f.syntax.Comments {
			for _, comment := range group.List {
				if word := left.FindString(comment.Text); word != "" {
					report("%s: %s", f.at(comment), word)
				}
			}
		}
	}
}
