// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// worded are the paths below spec of the fields for whose values a config file has words of its own: the values in lower case, but for
// these.
var (
	worded = []string{
		"kubernetes.type", "kubernetes.proxy.mode", "etcd.type", "etcd.metrics", "containerRuntime.type", "network.plugin", "network.flannel.backend",
		"dns.type",
	}
	irregular = map[string]string{
		string(spec.KubernetesKubexm): "kubexm", // etcd's too
		string(spec.FlannelHostGW):    "host-gw",
	}
)

// values are those of the fields that are worded.
var values = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, path := range worded {
		for _, value := range spec.ValuesOf(path) {
			all[value] = true
		}
	}
	return all
})

// Word is what a config file says for a value of spec.Cluster.
func Word[T ~string](value T) string {
	if word, is := irregular[string(value)]; is {
		return word
	}
	if values()[string(value)] {
		return strings.ToLower(string(value))
	}
	for _, b := range slices.Concat(externalBalancers, internalBalancers) {
		if string(b.of) == string(value) {
			return b.file
		}
	}
	return string(value)
}

// resolveWords gives every field below spec its value for the file's word.
func (t *tree) resolveWords(body *yaml.Node) {
	for _, path := range worded {
		node := body
		for name := range strings.SplitSeq(path, ".") {
			node = child(node, name)
		}
		if node == nil || node.Kind != yaml.ScalarNode || node.Tag != "!!str" {
			continue // decode refuses what is no text
		}
		var supported []string
		named := ""
		for _, value := range spec.ValuesOf(path) {
			supported = append(supported, Word(value))
			if Word(value) == node.Value || Word(value) == strings.ReplaceAll(node.Value, "-", "") { // cri-o
				named = value
			}
		}
		if named == "" {
			t.refuse(node, "%s", field.NotSupported(nil, node.Value, supported).ErrorBody())
			t.void(node)
			continue
		}
		node.Value = named
	}
}

// namedValue is a value in an error's text, behind a word that says that it is one.
var namedValue = regexp.MustCompile(`\b(to|is|type|plugin|backend|use|or) ([A-Z][A-Za-z]+)\b`)

// inWords is an error's text with the file's words for values.
func inWords(text string) string {
	return namedValue.ReplaceAllStringFunc(text, func(both string) string {
		before, value, _ := strings.Cut(both, " ")
		return before + " " + Word(value)
	})
}
