// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"go/build/constraint"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tagOf are the tags of make's targets whose tests RUN chooses by their names.
var tagOf = map[string]string{"e2e": "e2e", "e2e-ha": "ha", "clusterctl": "clusterctl", "faults": "faults", "faults-upgrade": "previous"}

// TestSuitesRunEverything keeps CI's rota true: each test on hosts that is behind a tag of its own is run by .ci/run or is a part of a
// suite in .ci/suites, and each suite names one test that there is, and parts that it has.
func TestSuitesRunEverything(t *testing.T) {
	const test, tagged = "test/e2e/planted_test.go", "//go:build e2e\n\npackage e2e\nfunc TestPlanted(t *testing.T) { t.Run(`a part`, nil) }\n"
	kept(t, suites,
		plant{"test/e2e/planted_test.go: TestPlanted runs in no stage of .ci/run and in no suite", test, tagged},
		plant{"RUN=TestPlantedAnew chooses 0 tests of the tag e2e", test, tagged, ".ci/suites", "planted e2e RUN=TestPlantedAnew\n"},
		plant{`no part of TestPlanted is called "other"`, test, tagged, ".ci/suites", "planted e2e RUN='TestPlanted/(a_part|other)'\n"},
		plant{"pool.Planted is no spec of test/upstream", ".ci/suites", "planted e2e-upstream RUN=pool.Planted\n"},
	)
}

func suites(in *tree, report func(string, ...any)) {
	tests := suiteTests(in)
	if len(tests) == 0 {
		report("there are no tests with tags")
	}
	covered := map[*suiteTest]bool{}
	for _, s := range chosen(in) {
		parts := strings.Split(s.run, "/")
		var runs []*suiteTest
		for _, one := range tests {
			if slices.Contains(one.tags, s.tag) && regexp.MustCompile(parts[0]).MatchString(one.name) {
				runs = append(runs, one)
				covered[one] = true
			}
		}
		switch {
		case s.run == "":
		case len(runs) != 1:
			report("%s: RUN=%s chooses %d tests of the tag %s, not one", s.line, s.run, len(runs), s.tag)
		default:
			for _, pattern := range parts[1:] {
				for _, part := range alternatives(pattern) {
					if !runs[0].hasPart(part) {
						report("%s: no part of %s is called %q: nothing would run, and nothing fail", s.line, runs[0].name, part)
					}
				}
			}
		}
	}
	for _, run := range regexp.MustCompile(`(?m)^[^#\n]*\be2e-upstream RUN=(\S+)`).FindAllStringSubmatch(in.text(".ci/suites"), -1) {
		if !slices.ContainsFunc(specs(in), regexp.MustCompile(run[1]).MatchString) {
			report(".ci/suites: %s is no spec of test/upstream", run[1])
		}
	}
	for _, one := range tests {
		if !covered[one] {
			report("%s: %s runs in no stage of .ci/run and in no suite of .ci/suites", one.path, one.name)
		}
	}
}

// specs are the texts of what ginkgo runs of test/upstream, which RUN chooses from.
func specs(in *tree) (all []string) {
	for _, f := range in.files {
		if described := regexp.MustCompile(`\bDescribe\("([^"]*)"`).FindAllSubmatch(f.content, -1); f.dir == "test/upstream" && described != nil {
			for _, inner := range described[1:] {
				all = append(all, string(described[0][1])+" "+string(inner[1]))
			}
		}
	}
	return all
}

// choice is what a line of CI's files runs of the tests with a tag; run is empty for all.
type choice struct{ line, tag, run string }

func chosen(in *tree) []choice {
	var all []choice
	for _, path := range []string{".ci/run", ".ci/suites"} {
		for line := range strings.Lines(in.text(path)) {
			words := strings.Fields(strings.ReplaceAll(line, "'", ""))
			switch {
			case len(words) < 2 || words[0] == "#":
				continue
			case path == ".ci/suites":
				words = words[1:]
			case words[0] != "stage" || words[1] != "make":
				continue
			}
			for _, word := range words {
				if tag := tagOf[word]; tag != "" {
					c := choice{line: path + ": " + strings.TrimSpace(line), tag: tag}
					for _, w := range words {
						if run, found := strings.CutPrefix(w, "RUN="); found {
							c.run = run
						}
					}
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// alternatives are those of a pattern such as (made|as_it).
func alternatives(pattern string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(pattern, "("), ")"), "|")
}

// suiteTest is a test that needs a tag.
type suiteTest struct {
	path, name string
	tags       []string
	body       *ast.BlockStmt
}

func suiteTests(in *tree) []*suiteTest {
	var all []*suiteTest
	for _, f := range in.files {
		if !f.isTest() || !within(f.dir, "test/...") {
			continue
		}
		tags := slices.DeleteFunc([]string{"e2e", "ha", "clusterctl", "faults", "previous"}, func(tag string) bool { return !f.needs(tag) })
		for _, d := range f.syntax.Decls {
			fun, ok := d.(*ast.FuncDecl)
			if ok && len(tags) > 0 && fun.Recv == nil && strings.HasPrefix(fun.Name.Name, "Test") && fun.Name.Name != "TestMain" {
				all = append(all, &suiteTest{path: f.path, name: fun.Name.Name, tags: tags, body: fun.Body})
			}
		}
	}
	return all
}

// needs reports whether the file is built with the tag alone, and not without it.
func (f *file) needs(tag string) bool {
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			if expr, err := constraint.Parse(c.Text); err == nil && constraint.IsGoBuild(c.Text) {
				return expr.Eval(func(t string) bool { return t == tag }) && !expr.Eval(func(string) bool { return false })
			}
		}
	}
	return false
}

// hasPart reports whether a text in the test, as go test writes the names of parts, is matched by the pattern: names of parts are
// written there.
func (s *suiteTest) hasPart(pattern string) (found bool) {
	name := regexp.MustCompile("^" + pattern)
	ast.Inspect(s.body, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, err := strconv.Unquote(lit.Value)
			found = found || err == nil && name.MatchString(strings.ReplaceAll(text, " ", "_"))
		}
		return !found
	})
	return found
}
