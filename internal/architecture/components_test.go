// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// edits is how many files a component may be known in outside of its folder and of homes: what "a component is one folder" may cost.
const edits = 3

// homes are where each component has its line, its name and settings, where it comes from, the words that config.yaml has for it, and what
// its packages are called: docs/architecture.md names them.
var homes = []string{"pkg/component/tables", "pkg/spec", "pkg/spec/config", "pkg/artifact/catalogue.yaml", "pkg/os/..."}

// beside is where a component is run by another, as docs/architecture.md says: kube-proxy as a unit by what runs all others. The list only
// gets shorter.
var beside = map[string]string{"kubeproxy": "pkg/component/binary"}

// domainWords are folders whose names are more than a component's: etcd and kubeadm are spoken of wherever clusters are, and binary and
// none are no names.
var domainWords = []string{"etcd", "kubeadm", "binary", "none"}

func TestComponentsAreKnownInFewPlaces(t *testing.T) {
	known, seen := knownIn(t), map[string]bool{}
	for name, where := range known {
		where = slices.DeleteFunc(where, func(file string) bool {
			theirs := beside[name] != "" && path.Dir(file) == beside[name]
			seen[name] = seen[name] || theirs
			return theirs
		})
		if len(where) > edits {
			t.Errorf("%s is known by name in %d files outside of its folder, more than %d: %s\nask what fills its slot, or have its folder say it",
				name, len(where), edits, strings.Join(where, ", "))
		}
	}
	for name, where := range beside {
		if !seen[name] {
			t.Errorf("%s does not know %s any more: take it off the list", where, name)
		}
	}
}

// knownIn are the files that have a component's name, by component, outside of its folder and its homes.
func knownIn(t *testing.T) map[string][]string {
	t.Helper()
	words := map[string]*regexp.Regexp{}
	for _, f := range files(t) {
		for name := range f.imports() {
			if folder := path.Base(name); f.dir == "pkg/component/tables" && path.Dir(name) == "pkg/component" && !slices.Contains(domainWords, folder) {
				// cri-o and CRIO, kube-vip and KubeVIP, …
				words[folder] = regexp.MustCompile(`(?i)` + strings.Join(strings.Split(folder, ""), `-?`))
			}
		}
	}
	if len(words) < 10 {
		t.Fatalf("only %d components were found in the tables", len(words))
	}
	known := map[string][]string{}
	note := func(file, text string) {
		for name, word := range words {
			if word.MatchString(text) && !strings.HasPrefix(file, "pkg/component/"+name+"/") && !slices.Contains(known[name], file) {
				known[name] = append(known[name], file)
			}
		}
	}
	for _, f := range files(t) {
		if f.isTest() || f.isGenerated() || within(f.dir, homes...) || within(f.dir, "test/...", "hack/...") {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.CommentGroup, *ast.ImportSpec:
				return false
			case *ast.Ident:
				note(f.path, n.Name)
			case *ast.BasicLit:
				note(f.path, n.Value)
			}
			return true
		})
	}
	err := filepath.WalkDir("../../pkg", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "testdata" {
			return filepath.SkipDir
		}
		file := strings.TrimPrefix(filepath.ToSlash(name), "../../")
		home := within(file, homes...) || within(path.Dir(file), homes...)
		kinds := []string{".sh", ".yaml", ".conf", ".service", ".conflist", ".cfg", ".json"}
		if err != nil || entry.IsDir() || !slices.Contains(kinds, filepath.Ext(name)) || home {
			return err
		}
		content, err := os.ReadFile(name)
		for line := range strings.Lines(string(content)) {
			if code := strings.TrimSpace(line); !strings.HasPrefix(code, "#") {
				note(file, code)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}
