// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"testing"
)

const header = `// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0
`

func TestHeaders(t *testing.T) {
	for _, f := range files(t) {
		content := f.content
		if f.isGenerated() { // begins with a build constraint
			_, content, _ = bytes.Cut(content, []byte("\n\n"))
		}
		if !bytes.HasPrefix(content, []byte(header)) {
			t.Errorf("%s does not begin with the licence:\n%s", f.path, header)
		}
	}
}

// longest is more than a file needs that is about one thing.
const longest = 600

func TestFilesAreShort(t *testing.T) {
	for _, f := range files(t) {
		if lines := bytes.Count(f.content, []byte("\n")); lines > longest && !f.isGenerated() {
			t.Errorf("%s has %d lines, more than %d: what are the two things that it is about?", f.path, lines, longest)
		}
	}
}

// nothing are names that say nothing of what is in a package.
var nothing = []string{
	"util", "utils", "utility", "common", "commons", "helper", "helpers", "type", "types", "misc", "shared", "lib", "stuff", "tools",
}

func TestPackageNames(t *testing.T) {
	for _, f := range files(t) {
		name := f.syntax.Name.Name
		for _, word := range append(strings.Split(f.dir, "/"), strings.TrimSuffix(name, "_test")) {
			if slices.Contains(nothing, word) {
				t.Errorf("%s: %q does not say what is in the package: name it after its one noun", f.path, word)
			}
		}
		if plain := strings.TrimSuffix(name, "_test"); plain != "main" && plain != path.Base(f.dir) {
			t.Errorf("%s: the package %s lies in a directory that is called %s", f.path, name, path.Base(f.dir))
		}
	}
}

func TestPackagesSayWhatTheyAre(t *testing.T) {
	docs, names := map[string]int{}, map[string]string{}
	for _, f := range files(t) {
		if f.isTest() {
			continue
		}
		name := f.syntax.Name.Name
		names[f.dir] = name
		if f.syntax.Doc == nil || f.isGenerated() {
			continue
		}
		docs[f.dir]++
		begin := "Package " + name + " "
		if name == "main" {
			begin = "Command " + path.Base(f.dir) + " "
		}
		if !strings.HasPrefix(f.syntax.Doc.Text(), begin) {
			t.Errorf("%s: begin the package's comment with %q", f.path, begin)
		}
	}
	for dir, name := range names {
		switch docs[dir] {
		case 0:
			t.Errorf("%s: the package %s does not say what it is", dir, name)
		case 1:
		default:
			t.Errorf("%s: the package %s says what it is in %d files", dir, name, docs[dir])
		}
	}
}
