// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The layout in docs/architecture.md has each directory of packages down to the second level, and none that is not there.
func TestLayoutIsThatOfTheRepository(t *testing.T) {
	const page = "docs/architecture.md"
	kept(t, layout,
		plant{"the layout does not name pkg/planted/", "pkg/planted/deep/planted.go", ""},
		plant{"the layout does not name planted/", "planted/planted.go", ""},
		plant{"the layout names planted/ below pkg/, which is not there", page, "## Layout\n\n    pkg/   planted/, plan/\n\n"},
		plant{"the layout names plan/ below cmd/, which is not there", page, "## Layout\n\n    pkg/   plan/\n    cmd/   plan/\n\n"},
	)
}

func layout(in *tree, report func(string, ...any)) {
	dirs := map[string]bool{}
	for _, f := range in.files {
		for dir := f.dir; dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(dirs))
	_, text, _ := strings.Cut(in.text("docs/architecture.md"), "## Layout\n\n")
	text, _, _ = strings.Cut(text, "\n\n")
	name, section := regexp.MustCompile(`(?:^|[\s(])([a-z][a-z0-9]*(?:/[a-z0-9]+)*)/`), ""
	named := map[string]bool{}
	for line := range strings.Lines(text) {
		begins := !strings.HasPrefix(line, "     ")
		for _, found := range name.FindAllStringSubmatch(line, -1) {
			below := section + "/" + found[1]
			switch {
			case dirs[found[1]] && (begins || section == ""): // a line may have several sections
				section, _, _ = strings.Cut(found[1], "/")
				named[section], named[found[1]] = true, true
			case dirs[below]:
				named[below] = true
			default: // further below
				if !slices.ContainsFunc(sorted, func(dir string) bool {
					return within(dir, section+"/...") && strings.HasSuffix(dir, "/"+found[1])
				}) {
					report("the layout names %s/ below %s/, which is not there", found[1], section)
				}
			}
		}
	}
	for _, dir := range sorted {
		if strings.Count(dir, "/") < 2 && !named[dir] {
			report("the layout does not name %s/", dir)
		}
	}
}

// Where a package says which files it has, it says so of all.
func TestListsOfFilesAreWhole(t *testing.T) {
	kept(t, listsOfFiles,
		plant{"bootstrap/operations/doc.go does not name planted.go", "bootstrap/operations/planted.go", ""},
		plant{"controlplane/reconcilers/doc.go names planted.go, which is not there", "controlplane/reconcilers/doc.go",
			"// Package reconcilers is:\n//\n//\tplanted.go  planted\npackage reconcilers\n"},
	)
}

func listsOfFiles(in *tree, report func(string, ...any)) {
	has := map[string][]string{}
	for _, f := range in.files {
		if name := path.Base(f.path); name != "doc.go" && (!strings.HasSuffix(name, "_test.go") || f.dir == "internal/architecture") {
			has[f.dir] = append(has[f.dir], name)
		}
	}
	for _, f := range in.files {
		if path.Base(f.path) != "doc.go" ||
			!within(f.dir, "bootstrap/reconcilers", "bootstrap/operations", "controlplane/reconcilers", "internal/architecture") {
			continue
		}
		var named []string
		for _, found := range regexp.MustCompile(`(?m)^//\t.*$`).FindAllString(string(f.content), -1) {
			named = append(named, regexp.MustCompile(`\b\w+\.go\b`).FindAllString(found, -1)...)
		}
		for _, name := range has[f.dir] {
			if !slices.Contains(named, name) {
				report("%s does not name %s", f.path, name)
			}
		}
		for _, name := range named {
			if !slices.Contains(has[f.dir], name) {
				report("%s names %s, which is not there", f.path, name)
			}
		}
	}
}
