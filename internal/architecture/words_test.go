// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ownWords are words of this house for what the field has words for, which readers search for: observed, repaired, rolled back, reset,
// released, reported, notified. To tell two things apart is no such word.
var ownWords = regexp.MustCompile(`(?i)\b(give[ns]? back|looked at|mend(s|ed|ing)?|(is|are|was|were|be|been) told|puts? back|as declared|lets? go)\b`)

// ownWordsToRead are more of them, for pages and messages: a drift check, checks or observes, releases.
var ownWordsToRead = regexp.MustCompile(`(?i)\b((a|the|each) look|looks? (at|whether)|g[ai]ves? .{0,30} back)\b`)

// words are the first of ownWords in a text, "" if there is none.
func words(text string) string {
	for _, at := range ownWords.FindAllStringIndex(text, -1) {
		if !strings.HasPrefix(text[at[1]:], " apart") {
			return text[at[0]:at[1]]
		}
	}
	return ""
}

// wordsToRead are the first of both in what users read, "" if there is none.
func wordsToRead(text string) string { return cmp.Or(words(text), ownWordsToRead.FindString(text)) }

func TestDocsHaveTheFieldsWords(t *testing.T) {
	kept(t, wordsOfDocs, plant{"docs/planted.md:2: looked at", "docs/planted.md", "A host is observed.\nIt is looked at.\n"})
}

func wordsOfDocs(in *tree, report func(string, ...any)) {
	for _, page := range in.texts {
		if path.Ext(page.path) != ".md" || !within(page.dir, "docs/...", ".") {
			continue
		}
		for _, found := range ownWordsIn(string(page.content)) {
			report("%s:%s: say it in the field's words", page.path, found)
		}
	}
}

// ownWordsIn are the lines of a page that have such a word, as line: word. What stands in fences or is indented was printed by a program.
func ownWordsIn(page string) []string {
	var found []string
	fenced := false
	for i, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if word := wordsToRead(line); word != "" && !fenced && !strings.HasPrefix(line, "    ") {
			found = append(found, fmt.Sprintf("%d: %s", i+1, word))
		}
	}
	return found
}

// What godoc lists of a declaration is the first line of its comment.
func TestDeclarationsHaveTheFieldsWords(t *testing.T) {
	kept(t, wordsOfDeclarations, plant{`pkg/kube/planted.go:2: "mended"`, "pkg/kube/planted.go", "// planted is mended.\nfunc planted() {}"})
}

func wordsOfDeclarations(in *tree, report func(string, ...any)) {
	for _, f := range in.files {
		docs := []*ast.CommentGroup{f.syntax.Doc}
		for _, decl := range f.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				docs = append(docs, decl.Doc)
			case *ast.GenDecl:
				docs = append(docs, decl.Doc)
			}
		}
		for _, doc := range docs {
			if doc == nil {
				continue
			}
			if word := words(doc.List[0].Text); word != "" {
				report("%s: %q: say it in the field's words", f.at(doc), word)
			}
		}
	}
}

// Users read what programs say: messages, reasons, Events, help.
func TestStringsHaveTheFieldsWords(t *testing.T) {
	kept(t, wordsOfStrings, plant{`pkg/kube/planted.go:2: "lets go"`, "pkg/kube/planted.go", "const planted = `it lets go`"})
}

func wordsOfStrings(in *tree, report func(string, ...any)) {
	for _, f := range in.files {
		if f.isTest() {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				if word := wordsToRead(text.Value); word != "" {
					report("%s: %q: say it in the field's words", f.at(text), word)
				}
			}
			return true
		})
	}
}

func TestOwnWordsAreSeen(t *testing.T) {
	page := "A host is observed.\nIt was looked at.\nThey are told apart.\n```\nit is told\n```\nMending is a repair.\nIt gives the turn back.\n"
	if got, want := ownWordsIn(page), []string{"2: looked at", "7: Mending", "8: gives the turn back"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
