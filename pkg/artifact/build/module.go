// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// Module is a version of a Go module.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

func (m Module) String() string { return m.Path + "@" + m.Version }

// source is a module that is on this machine, its content verified.
type source struct {
	Dir      string
	GoMod    string
	Sum      string
	GoModSum string
}

// goEnv takes everything out of the user's environment that would change what comes out of a build. What says
// where modules come from (GOPROXY, GOSUMDB, GOMODCACHE …) stays the user's.
func goEnv(extra ...string) []string {
	return append([]string{
		"GO111MODULE=on", "GOFLAGS=-mod=mod", "GOWORK=off", "GOTOOLCHAIN=local", "GOEXPERIMENT=", "GOFIPS140=off",
		"GOAMD64=v1", "GOARM64=v8.0", "CGO_CFLAGS=", "CGO_CPPFLAGS=", "CGO_CXXFLAGS=", "CGO_LDFLAGS=",
	}, extra...)
}

// download brings a module into the module cache, in the context of the module that dir holds. The go command checks it by the checksum
// database; sums are lines of go.sum that it must match besides.
func download(ctx context.Context, dir string, m Module, sums []string) (source, error) {
	var out bytes.Buffer
	err := command{dir: dir, env: goEnv(), stdout: &out}.run(ctx, "go", "mod", "download", "-json", m.String())
	var got struct {
		source
		Error string
	}
	// On failure the reason stands in the JSON as well, and there it is complete.
	if jsonErr := json.Unmarshal(out.Bytes(), &got); jsonErr == nil && got.Error != "" {
		return source{}, fmt.Errorf("module %s: %s", m, got.Error)
	}
	if err != nil {
		return source{}, fmt.Errorf("module %s: %w", m, err)
	}
	want := m.Path + " " + m.Version + " "
	for _, pinned := range sums {
		if len(pinned) > len(want) && pinned[:len(want)] == want && pinned[len(want):] != got.Sum {
			return source{}, fmt.Errorf("module %s: its sum is %s, the catalogue pins %s", m, got.Sum, pinned[len(want):])
		}
	}
	return got.source, nil
}

// moduleFile is the go.mod of a module made for one build. Only a main module's go line, godebug lines and replacements
// take effect, so they are taken over from the modules that are built: the programs come out as upstream's own would.
// localVersion stands in for replacements by a local directory, which a published module does not carry; if it is empty those
// are dropped and the version that the module requires is used. A version in replace may be a directory of the build (./trimmed).
func moduleFile(modules []Module, upstream []*modfile.File, localVersion string, replace []Module) ([]byte, error) {
	f := new(modfile.File)
	if err := f.AddModuleStmt("kubexm.build"); err != nil {
		return nil, err
	}
	for _, m := range modules {
		f.AddNewRequire(m.Path, m.Version, false)
	}
	// AddReplace overwrites, so what the catalogue says comes last.
	for _, up := range upstream {
		if up.Go != nil && (f.Go == nil || f.Go.Version < up.Go.Version) {
			if err := f.AddGoStmt(up.Go.Version); err != nil {
				return nil, err
			}
		}
		for _, g := range up.Godebug {
			if err := f.AddGodebug(g.Key, g.Value); err != nil {
				return nil, err
			}
		}
		for _, r := range up.Replace {
			path, version := r.New.Path, r.New.Version
			if version == "" {
				if localVersion == "" {
					continue
				}
				path, version = r.Old.Path, localVersion
			}
			if err := f.AddReplace(r.Old.Path, r.Old.Version, path, version); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range replace {
		path, version := r.Path, r.Version
		if modfile.IsDirectoryPath(version) {
			path, version = version, ""
		}
		if err := f.AddReplace(r.Path, "", path, version); err != nil {
			return nil, err
		}
	}
	f.Cleanup()
	return f.Format()
}

// leaveOut copies the module from dir into work with those of the packages empty that are its own, and returns where to, relative
// to work; "" if none is. The module cache itself cannot be overlaid.
func leaveOut(work string, m Module, dir string, packages []string) (string, error) {
	var copied string
	for _, pkg := range packages {
		inner, ok := strings.CutPrefix(pkg, m.Path+"/")
		if !ok {
			continue
		}
		if copied == "" {
			copied = "./trimmed/" + strings.ReplaceAll(m.Path, "/", "_")
			if err := os.CopyFS(filepath.Join(work, copied), os.DirFS(dir)); err != nil {
				return "", err
			}
		}
		if err := emptyPackage(filepath.Join(work, copied, filepath.FromSlash(inner))); err != nil {
			return "", fmt.Errorf("package %s, which is to be left out: %w", pkg, err)
		}
	}
	return copied, nil
}

func emptyPackage(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("it has no Go files")
	}
	clause, err := parser.ParseFile(token.NewFileSet(), files[0], nil, parser.PackageClauseOnly)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "empty.go"), []byte("package "+strings.TrimSuffix(clause.Name.Name, "_test")+"\n"), 0o644)
}

// sumFile joins go.sum files. The modules' own sums come along so that what they were tested with is checked even where
// no checksum database is asked.
func sumFile(files ...[]byte) []byte {
	var lines []string
	for _, f := range files {
		for line := range bytes.Lines(f) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				lines = append(lines, string(line)+"\n")
			}
		}
	}
	slices.Sort(lines)
	var out bytes.Buffer
	for _, line := range slices.Compact(lines) {
		out.WriteString(line)
	}
	return out.Bytes()
}
