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
	const name, text = "var canals = `calico`", "# a comment\nmode=Flannel\n"
	kept(t, knownInFewPlaces,
		plant{"calico is known by name in", "cmd/a.go", name, "cmd/b.go", name, "exp/c.go", name, "exp/d.go", name},
		plant{"flannel is known by name in", "pkg/a.sh", text, "pkg/b.conf", text, "bootstrap/c.sh", text, "cmd/d.yaml", text},
		plant{"pkg/component/binary does not know kubeproxy any more", "pkg/component/tables/tables.go", ""},
	)
}

func knownInFewPlaces(in *tree, report func(string, ...any)) {
	known, seen := knownIn(in, report), map[string]bool{}
	for name, where := range known {
		where = slices.DeleteFunc(where, func(file string) bool {
			theirs := beside[name] != "" && path.Dir(file) == beside[name]
			seen[name] = seen[name] || theirs
			return theirs
		})
		if len(where) > edits {
			report("%s is known by name in %d files outside of its folder, more than %d: %s\nask what fills its slot, or have its folder say it",
				name, len(where), edits, strings.Join(where, ", "))
		}
	}
	for name, where := range beside {
		if !seen[name] {
			report("%s does not know %s any more: take it off the list", where, name)
		}
	}
}

// knownIn are the files that have a component's name, by component, outside of its folder and its homes.
func knownIn(in *tree, report func(string, ...any)) map[string][]string {
	words := map[string]*regexp.Regexp{}
	for _, f := range in.files {
		for name := range f.imports() {
			if folder := path.Base(name); f.dir == "pkg/component/tables" && path.Dir(name) == "pkg/component" && !slices.Contains(domainWords, folder) {
				// cri-o and CRIO, kube-vip and KubeVIP, …
				words[folder] = regexp.MustCompile(`(?i)` + strings.Join(strings.Split(folder, ""), `-?`))
			}
		}
	}
	if len(words) < 10 {
		report("only %d components were found in the tables", len(words))
	}
	known := map[string][]string{}
	note := func(file, text string) {
		for name, word := range words {
			if word.MatchString(text) && !strings.HasPrefix(file, "pkg/component/"+name+"/") && !slices.Contains(known[name], file) {
				known[name] = append(known[name], file)
			}
		}
	}
	for _, f := range in.files {
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
	for _, f := range in.texts {
		if within(f.path, homes...) || within(f.dir, homes...) || !within(f.dir, "pkg/...", "bootstrap/...", "controlplane/...", "cmd/...") ||
			path.Ext(f.path) == ".md" {
			continue
		}
		for line := range strings.Lines(string(f.content)) {
			if code := strings.TrimSpace(line); !strings.HasPrefix(code, "#") {
				note(f.path, code)
			}
		}
	}
	return known
}
