// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// inProse is a command in prose, which may go on in the next line, and inBlock one that is shown by itself.
	inProse = regexp.MustCompile("(?s)`(kubexm [^`]+)`")
	inBlock = regexp.MustCompile(`(?m)^ {4,}(?:\$ )?(?:bin/)?(kubexm (?:[^\\\n]|\\\n)*)`)
	// beside is what a shell does with a command, and what a person reads beside it.
	beside = regexp.MustCompile(` +(#|\||>|&&).*$`)
)

// TestGuides: each command that a document shows is there, with its flags, and takes as many arguments as are shown.
func TestGuides(t *testing.T) {
	paths := []string{"../../../../README.md"}
	err := filepath.WalkDir("../../../../docs", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "decisions" {
			return filepath.SkipDir // they tell of a day
		}
		if err == nil && filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range inBlock.FindAllStringSubmatch(string(content), -1) {
			lines++
			if err := isCommand(found[1], true); err != nil {
				t.Errorf("%s: %s: %v", path, found[1], err)
			}
		}
		for _, found := range inProse.FindAllStringSubmatch(string(content), -1) {
			if err := isCommand(found[1], false); err != nil {
				t.Errorf("%s: %s: %v", path, found[1], err)
			}
		}
	}
	if lines < 40 {
		t.Errorf("%d lines with commands were found", lines)
	}
}

// isCommand is an error if there is no such command line. One that is whole has all arguments that it needs.
func isCommand(line string, whole bool) error {
	line = strings.ReplaceAll(line, "\\\n", " ")
	line = beside.ReplaceAllString(strings.ReplaceAll(line, "\n", " "), "")
	// [what may be left out] is given, and of one|another the first.
	words := strings.Fields(strings.NewReplacer("[", "", "]", "", " …", "").Replace(line))[1:]
	for i, word := range words {
		if !strings.HasPrefix(word, "-") {
			words[i], _, _ = strings.Cut(word, "|")
		}
	}
	cmd, rest, err := (&app{}).root().Find(words)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	args := cmd.Flags().Args()
	switch {
	case !cmd.HasSubCommands() && whole:
		return cmd.ValidateArgs(args)
	case cmd.HasSubCommands() && (whole || len(args) > 0):
		return fmt.Errorf("%s has no command %q", cmd.CommandPath(), args)
	}
	return nil
}
