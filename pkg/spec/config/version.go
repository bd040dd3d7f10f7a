// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// errNoVersion is why a version cannot be set.
var errNoVersion = errors.New("spec.kubernetes.version was not found where it can be changed: set it yourself")

// SetKubernetesVersion is a config file's content with another version of Kubernetes. Nothing else is changed: comments,
// order and spacing stay.
func SetKubernetesVersion(data []byte, version string) ([]byte, error) {
	document, err := readOne(data)
	if err != nil {
		return nil, err
	}
	if len(document.Content) != 1 {
		return nil, errNoVersion
	}
	node := document.Content[0]
	for _, name := range []string{"spec", "kubernetes", "version"} {
		if node = child(node, name); node == nil {
			return nil, errNoVersion
		}
	}
	start, err := offsetOf(data, node)
	if err != nil {
		return nil, err
	}
	changed := slices.Concat(data[:start], []byte(version), data[start+len(node.Value):])
	if c, _, err := Parse(changed); err != nil {
		return nil, err
	} else if c.KubernetesVersion != version {
		return nil, errNoVersion
	}
	return changed, nil
}

// offsetOf is where the value of a scalar on one line begins, behind its quotes if it has some.
func offsetOf(data []byte, node *yaml.Node) (int, error) {
	offset := 0
	for range node.Line - 1 {
		end := bytes.IndexByte(data[offset:], '\n')
		if end < 0 {
			return 0, errNoVersion
		}
		offset += end + 1
	}
	line, _, _ := bytes.Cut(data[offset:], []byte("\n"))
	runes := []rune(string(line))
	if node.Column < 1 || node.Column > len(runes) {
		return 0, errNoVersion
	}
	offset += len(string(runes[:node.Column-1]))
	if node.Style == yaml.DoubleQuotedStyle || node.Style == yaml.SingleQuotedStyle {
		offset++
	}
	if node.Kind != yaml.ScalarNode || !bytes.HasPrefix(data[offset:], []byte(node.Value)) {
		return 0, fmt.Errorf("line %d: %w", node.Line, errNoVersion)
	}
	return offset, nil
}
