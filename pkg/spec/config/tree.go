// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxSize is how many bytes a config file may have.
const maxSize = 1 << 20

// place is where a node was written.
type place struct {
	path string
	line int
}

// tree is a config file on its way: its nodes, where they were written, and what is wrong so far.
type tree struct {
	root   *yaml.Node
	places map[*yaml.Node]place
	// decoded are the places of what was decoded, by its path in the Go types.
	decoded map[string]place
	// refused are the paths in the Go types that a problem is known of.
	refused map[string]bool
	// voided are nodes that were refused before it was known which field they are.
	voided   map[*yaml.Node]bool
	problems []Problem
}

// refuse records a problem with a node.
func (t *tree) refuse(node *yaml.Node, format string, args ...any) {
	at := t.places[node]
	t.refuseAt(at.path, at.line, format, args...)
}

func (t *tree) refuseAt(path string, line int, format string, args ...any) {
	t.problems = append(t.problems, Problem{Path: path, Line: line, Text: fmt.Sprintf(format, args...)})
}

// parseTree reads YAML. Without a root there is nothing to go on with.
func parseTree(data []byte) *tree {
	t := &tree{places: map[*yaml.Node]place{}, decoded: map[string]place{}, refused: map[string]bool{}, voided: map[*yaml.Node]bool{}}
	if len(data) > maxSize {
		t.refuseAt("", 0, "%s", tooLarge(int64(len(data))))
		return t
	}
	document, err := readOne(data)
	if err != nil {
		repaired, lines := repairColons(data)
		for _, line := range lines {
			t.refuseAt("", line, "has a full-width colon '：' behind a name: write ':' and a space")
		}
		if len(lines) > 0 {
			document, err = readOne(repaired)
		}
	}
	if err != nil {
		t.refuseAt("", 0, "is not YAML that can be read: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return t
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		t.refuseAt("", 0, "is empty or not a mapping: begin with apiVersion: %s", apiVersion)
		return t
	}
	t.root = document.Content[0]
	t.check(t.root, place{line: t.root.Line})
	return t
}

// readOne reads the only document of a file.
func readOne(data []byte) (*yaml.Node, error) {
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return &document, nil
	case err != nil:
		return nil, err
	}
	return nil, fmt.Errorf("line %d: a second document begins: one file describes one cluster", second.Line)
}

var fullWidthColon = regexp.MustCompile(`^(\s*(?:- )?[A-Za-z_][A-Za-z0-9_.-]*)：[ \t]*(.*)$`)

// repairColons exchanges the full-width colons that an input method writes behind names, so that the rest of the file can be
// read and all of its problems be told at once. It returns the lines that had one.
func repairColons(data []byte) ([]byte, []int) {
	lines := strings.Split(string(data), "\n")
	var changed []int
	for i, line := range lines {
		if parts := fullWidthColon.FindStringSubmatch(line); parts != nil {
			lines[i] = parts[1] + ": " + parts[2]
			changed = append(changed, i+1)
		}
	}
	return []byte(strings.Join(lines, "\n")), changed
}

// check notes where each node was written and refuses what would make a file mean something else than it seems to.
func (t *tree) check(node *yaml.Node, at place) {
	t.places[node] = at
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		t.refuse(node, "anchors and aliases (& and *) are not supported: write the value out")
		t.void(node)
	case node.Style&yaml.TaggedStyle != 0:
		t.refuse(node, "tags (!) are not supported: write the plain value")
		t.void(node)
	case node.Kind == yaml.SequenceNode:
		for i, item := range node.Content {
			t.check(item, place{path: fmt.Sprintf("%s[%d]", at.path, i), line: item.Line})
		}
	case node.Kind == yaml.MappingNode:
		t.checkMapping(node, at)
	}
}

func (t *tree) checkMapping(node *yaml.Node, at place) {
	first := map[string]int{}
	kept := node.Content[:0:0]
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			t.refuseAt(at.path, key.Line, "a key must be a plain name")
			continue
		case first[key.Value] > 0:
			t.refuseAt(join(at.path, key.Value), key.Line, "is there twice, first in line %d: remove one of them", first[key.Value])
			continue
		}
		first[key.Value] = key.Line
		t.check(value, place{path: join(at.path, key.Value), line: key.Line})
		kept = append(kept, key, value)
	}
	node.Content = kept
}

// void makes a node that was refused mean nothing.
func (t *tree) void(node *yaml.Node) {
	t.voided[node] = true
	*node = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: node.Line}
}

// plainName is a key that can be shown: one that is not may be a password with its colon missing.
var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,62}$`)

func join(path, name string) string {
	switch {
	case !plainName.MatchString(name):
		return path
	case path == "":
		return name
	}
	return path + "." + name
}

// child is a mapping's value for a key, nil if there is none.
func child(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// take removes and returns the node at a path below scope, and the mappings that are empty without it.
func take(scope *yaml.Node, path []string) *yaml.Node {
	if scope == nil || scope.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(scope.Content); i += 2 {
		if scope.Content[i].Value != path[0] {
			continue
		}
		value, found := scope.Content[i+1], scope.Content[i+1]
		if len(path) > 1 {
			if found = take(value, path[1:]); found == nil || len(value.Content) > 0 {
				return found
			}
		}
		scope.Content = append(scope.Content[:i:i], scope.Content[i+2:]...)
		return found
	}
	return nil
}

// put sets the node at a path below scope, making the mappings on the way. What is there already stays, and node is refused.
func (t *tree) put(scope *yaml.Node, path []string, node *yaml.Node) {
	for {
		next := child(scope, path[0])
		if next == nil {
			if next = node; len(path) > 1 {
				next = t.derive(node, yaml.MappingNode)
				t.places[next] = place{path: join(t.places[scope].path, path[0]), line: t.places[node].line}
			}
			scope.Content = append(scope.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: path[0], Line: node.Line}, next)
		}
		switch {
		case next == node:
			return
		case isNull(next) && len(path) == 1:
			*next = *node
			t.places[next] = t.places[node]
			return
		case isNull(next):
			*next = yaml.Node{Kind: yaml.MappingNode, Line: next.Line}
		case len(path) == 1:
			there := t.places[next]
			t.refuse(node, "says the same as %s in line %d: remove one of them", there.path, there.line)
			return
		case next.Kind != yaml.MappingNode:
			return // decode refuses what is there
		}
		scope, path = next, path[1:]
	}
}

// derive makes a node that was written where another was.
func (t *tree) derive(from *yaml.Node, kind yaml.Kind, content ...*yaml.Node) *yaml.Node {
	node := &yaml.Node{Kind: kind, Line: from.Line, Content: content}
	t.places[node] = t.places[from]
	return node
}

// text is derive for a text.
func (t *tree) text(from *yaml.Node, value string) *yaml.Node {
	node := t.derive(from, yaml.ScalarNode)
	node.Tag, node.Value = "!!str", value
	return node
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }
