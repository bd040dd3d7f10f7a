// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"
)

// typed has what go/types knows of the repository's Go files but tests. Packages of others are empty to it: what comes from there has no
// type, and nothing is said of that. So it takes a second, and needs no compiled package.
type typed struct {
	types.Info
	dirs  map[string][]*ast.File
	known map[string]*types.Package
}

// inRepository is the one of the repository. Those with plants begin with it, and check the packages that have some.
var inRepository *typed

func typesOf(in *tree) *typed {
	t := &typed{dirs: map[string][]*ast.File{}, known: map[string]*types.Package{}, Info: types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
	}}
	for _, f := range in.files {
		if !strings.HasSuffix(f.path, "_test.go") {
			t.dirs[f.dir] = append(t.dirs[f.dir], f.syntax)
		}
	}
	if inRepository != nil {
		t.Info = inRepository.Info // of other files, too
		for dir, files := range t.dirs {
			if known := inRepository.known[module+"/"+dir]; known != nil && slices.Equal(files, inRepository.dirs[dir]) {
				t.known[module+"/"+dir] = known
			}
		}
	} else {
		inRepository = t
	}
	for dir := range t.dirs {
		_, _ = t.Import(module + "/" + dir)
	}
	return t
}

// Import is a types.Importer. What does not compile is for the compiler to say.
func (t *typed) Import(name string) (*types.Package, error) {
	if known := t.known[name]; known != nil {
		return known, nil
	}
	dir, _ := strings.CutPrefix(name, module+"/")
	files := t.dirs[dir]
	if len(files) == 0 {
		t.known[name] = types.NewPackage(name, path.Base(name))
		t.known[name].MarkComplete()
		return t.known[name], nil
	}
	config := types.Config{Importer: t, Error: func(error) {}}
	t.known[name], _ = config.Check(name, positions, files, &t.Info)
	return t.known[name], nil
}

// named is the name of an expression's type if it, or what it points to, is of this package.
func (t *typed) named(e ast.Expr, dir string) string {
	of := t.TypeOf(e)
	if of == nil {
		return ""
	}
	if pointer, ok := types.Unalias(of).(*types.Pointer); ok {
		of = pointer.Elem()
	}
	if named, ok := types.Unalias(of).(*types.Named); ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == module+"/"+dir {
		return named.Obj().Name()
	}
	return ""
}
