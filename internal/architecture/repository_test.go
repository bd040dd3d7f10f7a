// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/mensylisir/cluster-api-provider-kubexm"

// file is one Go file of the repository.
type file struct {
	// path is relative to the repository, with slashes; dir is its directory.
	path, dir string
	content   []byte
	syntax    *ast.File
	set       *token.FileSet
}

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

// repository reads all Go files once.
var repository = sync.OnceValues(func() ([]*file, error) {
	root := filepath.Join("..", "..")
	set := token.NewFileSet()
	var files []*file
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
			if base := entry.Name(); relative != "." &&
				(strings.HasPrefix(base, ".") || base == "testdata" || relative == "build" || relative == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(set, relative, bytes.NewReader(content), parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, &file{path: relative, dir: path.Dir(relative), content: content, syntax: syntax, set: set})
		return nil
	})
	return files, err
})

func files(t *testing.T) []*file {
	t.Helper()
	all, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("only %d Go files were found: this test does not see the repository", len(all))
	}
	return all
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
