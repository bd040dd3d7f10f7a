// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestGuides: what the guides show of config.yaml is taken as they show it. What a part leaves out, such as hosts, is added.
func TestGuides(t *testing.T) {
	names := fileNames()
	found := 0
	for _, path := range documents(t) {
		var hooks any // which later parts of a guide refer to
		for _, block := range blocks(t, path) {
			shown := map[string]any{}
			first, _, _ := strings.Cut(block, ":")
			block = strings.ReplaceAll(block, "SHA256:…", "SHA256:"+strings.Repeat("A", 43))
			err := yaml.Unmarshal([]byte(block), &shown)
			if err != nil && (first == "spec" || slices.Contains(names, first)) {
				t.Errorf("%s: %v in\n%s", path, err, block)
			}
			body := partOf(shown, names)
			if err != nil || body == nil {
				continue
			}
			found++
			if body["hooks"] != nil {
				hooks = body["hooks"]
			} else if hooks != nil {
				body["hooks"] = hooks
			}
			complete(body)
			whole, err := yaml.Marshal(map[string]any{
				"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "prod"}, "spec": body,
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := Parse(whole); err != nil {
				t.Errorf("%s: %v\nin\n%s\ncompleted to\n%s", path, err, block, whole)
			}
		}
	}
	// A guide that shows them otherwise would not be read.
	if found < 20 {
		t.Errorf("%d parts of config.yaml were found", found)
	}
}

// documents are the paths of what people read.
func documents(t *testing.T) []string {
	t.Helper()
	paths := []string{"../../../README.md"}
	err := filepath.WalkDir("../../../docs", func(path string, e fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

var fence = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// blocks are the code in a document: what is fenced as YAML, and what is indented, up to an empty line.
func blocks(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, fenced := range fence.FindAllStringSubmatch(string(content), -1) {
		all = append(all, fenced[1])
	}
	for paragraph := range strings.SplitSeq(string(content), "\n\n") {
		if rest, indented := strings.CutPrefix(paragraph, "    "); indented {
			all = append(all, strings.ReplaceAll(rest, "\n    ", "\n"))
		}
	}
	return all
}

// fileNames are the names of the fields of spec that a config file may have.
func fileNames() []string {
	var names []string
	for _, path := range knownFields() {
		if rest, below := strings.CutPrefix(path, "spec."); below {
			name, _, _ := strings.Cut(strings.ReplaceAll(rest, "[]", ""), ".")
			names = append(names, name)
		}
	}
	return names
}

// partOf is the spec of what is shown, nil if it is of another object. A part of a config file is shown with or without spec, and what has
// any field of it has no other.
func partOf(shown map[string]any, names []string) map[string]any {
	if shown["apiVersion"] != nil && shown["apiVersion"] != apiVersion || shown["kind"] != nil && shown["kind"] != kind {
		return nil
	}
	if body, is := shown["spec"].(map[string]any); is {
		shown = body
	}
	if len(shown) == 0 {
		return nil
	}
	for name := range shown {
		if !slices.Contains(names, name) {
			return nil
		}
	}
	return shown
}

// complete adds what every config file has: the hosts that role groups name, or two, an endpoint for any number of them, and a version.
func complete(body map[string]any) {
	groups, _ := body["roleGroups"].(map[string]any)
	hosts, _ := body["hosts"].([]any)
	if groups == nil {
		groups = map[string]any{"master": []any{"cp1"}, "worker": []any{"worker1"}}
		if len(hosts) > 0 {
			named := make([]any, len(hosts))
			for i, h := range hosts {
				shown, _ := h.(map[string]any)
				named[i] = shown["name"]
			}
			groups = map[string]any{"master": named[:1], "worker": named[1:]}
		}
		body["roleGroups"] = groups
	}
	if hosts == nil {
		seen := map[string]bool{}
		for _, group := range groups {
			entries, _ := group.([]any)
			for _, entry := range entries {
				text, _ := entry.(string)
				members, _ := expandRange(text) // what is no range is refused by who parses it
				for _, name := range members {
					if !seen[name] {
						seen[name] = true
						hosts = append(hosts, map[string]any{"name": name, "address": fmt.Sprintf("172.16.0.%d", len(seen))})
					}
				}
			}
		}
		body["hosts"] = hosts
	}
	if body["controlPlaneEndpoint"] == nil {
		body["controlPlaneEndpoint"] = map[string]any{"internal": "haproxy"}
	}
	kubernetes, _ := body["kubernetes"].(map[string]any)
	if kubernetes == nil {
		kubernetes = map[string]any{}
		body["kubernetes"] = kubernetes
	}
	if kubernetes["version"] == nil {
		kubernetes["version"] = "v1.36.3"
	}
}
