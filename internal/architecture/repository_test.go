// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/mensylisir/cluster-api-provider-kubexm"

// file is one file of the repository.
type file struct {
	// path is relative to the repository, with slashes; dir is its directory.
	path, dir string
	content   []byte
	// syntax is that of a Go file.
	syntax *ast.File
	set    *token.FileSet
}

// tree is what rules are about: Go files, and texts of the other kinds that programs and people read. Files of testdata are in neither.
type tree struct{ files, texts []*file }

// isTest reports whether the file is a part of tests, be it that of a package which helps them, such as hosttest.
func (f *file) isTest() bool {
	return strings.HasSuffix(f.path, "_test.go") || strings.HasSuffix(f.dir, "test")
}

func (f *file) isGenerated() bool { return ast.IsGenerated(f.syntax) }

// at is where a node is, for messages.
func (f *file) at(node ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.set.Position(node.Pos()).Line)
}

// imports are the imported paths. Those of this repository are relative to it, and begin with "./".
func (f *file) imports() map[string]*ast.ImportSpec {
	all := map[string]*ast.ImportSpec{}
	for _, spec := range f.syntax.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser refuses such files
		}
		if relative, ours := strings.CutPrefix(name, module+"/"); ours {
			name = "./" + relative
		}
		all[name] = spec
	}
	return all
}

// readers are the names of texts: shell, what steps write to hosts, the docs, and CI's rota.
var readers = regexp.MustCompile(`\.(sh|md|yaml|conf|service|conflist|cfg|json)$|^\.ci/`)

// repository reads all files once.
var repository = sync.OnceValues(func() (*tree, error) {
	root, all := filepath.Join("..", ".."), &tree{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if entry.IsDir() {
			if base := entry.Name(); relative != "." && relative != ".ci" &&
				(strings.HasPrefix(base, ".") || base == "testdata" || relative == "build" || relative == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") && !readers.MatchString(relative) {
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return all.add(relative, content)
	})
	return all, err
})

// positions are those of all Go files.
var positions = token.NewFileSet()

// add adds a file, or replaces the one with its path.
func (in *tree) add(name string, content []byte) (err error) {
	f := &file{path: name, dir: path.Dir(name), content: content, set: positions}
	named := func(other *file) bool { return other.path == name }
	if !strings.HasSuffix(name, ".go") {
		in.texts = append(slices.DeleteFunc(in.texts, named), f)
		return nil
	}
	in.files = append(slices.DeleteFunc(in.files, named), f)
	f.syntax, err = parser.ParseFile(f.set, name, content, parser.ParseComments|parser.SkipObjectResolution)
	return err
}

// text is the content of the text with this path.
func (in *tree) text(path string) string {
	for _, f := range in.texts {
		if f.path == path {
			return string(f.content)
		}
	}
	return ""
}

// check reports each place that breaks a rule.
type check func(in *tree, report func(format string, args ...any))

// exempt are files that break a rule, and why they may. Such a list only gets shorter.
type exempt map[string]string

// but returns what reports a file that is not exempt, and, in the end, what reports files that need no exemption.
func (e exempt) but(report func(string, ...any)) (broken func(path, format string, args ...any), end func()) {
	seen := map[string]bool{}
	return func(path, format string, args ...any) {
			if seen[path] = true; e[path] == "" {
				report(format, args...)
			}
		}, func() {
			for path := range e {
				if !seen[path] {
					report("%s breaks the rule no more: take it off the list", path)
				}
			}
		}
}

// plant is a message, and files by which a rule must report it: a path and its content, and so on. Of a Go file, the line of its package
// may be left out, and imports that begin with "./" are of the repository.
type plant []string

// kept checks the repository, and that the rule can fail, for each plant.
func kept(t *testing.T, rule check, plants ...plant) {
	t.Helper()
	all, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	if len(all.files) < 100 || len(all.texts) < 100 {
		t.Fatalf("only %d Go files and %d texts were found: this test does not see the repository", len(all.files), len(all.texts))
	}
	rule(all, t.Errorf)
	if len(plants) == 0 {
		t.Error("plant what breaks the rule: nobody knows whether it sees anything")
	}
	for _, p := range plants {
		with, seen := &tree{slices.Clone(all.files), slices.Clone(all.texts)}, []string{}
		for i := 1; i < len(p); i += 2 {
			content := strings.ReplaceAll(p[i+1], `"./`, `"`+module+`/`)
			if strings.HasSuffix(p[i], ".go") && !strings.Contains("\n"+content, "\npackage ") {
				content = "package " + path.Base(path.Dir(p[i])) + "\n" + content
			}
			if err := with.add(p[i], []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		rule(with, func(format string, args ...any) { seen = append(seen, fmt.Sprintf(format, args...)) })
		if !slices.ContainsFunc(seen, func(message string) bool { return strings.Contains(message, p[0]) }) {
			t.Errorf("%q was planted, and is not reported: %q", p, seen)
		}
	}
}

// within reports whether dir is one of the packages: "a/b" is that package alone, "a/b/..." those below it as well.
func within(dir string, packages ...string) bool {
	for _, pattern := range packages {
		tree, below := strings.CutSuffix(pattern, "/...")
		if dir == tree || below && strings.HasPrefix(dir, tree+"/") || pattern == "..." {
			return true
		}
	}
	return false
}
