// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// GateMap has whether each feature gate is on, as configuration files have it.
func GateMap(gates []spec.FeatureGate) map[string]bool {
	m := make(map[string]bool, len(gates))
	for _, g := range gates {
		m[g.Name] = g.State == spec.FeatureEnabled
	}
	return m
}

// GateArgs is the flag feature-gates, or none.
func GateArgs(gates []spec.FeatureGate) []spec.Arg {
	if len(gates) == 0 {
		return nil
	}
	m := GateMap(gates)
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, name+"="+strconv.FormatBool(m[name]))
	}
	return []spec.Arg{{Name: "feature-gates", Value: strings.Join(pairs, ",")}}
}

// JoinLabels are a Node's labels as the kubelet's flag has them.
func JoinLabels(labels map[string]string) string {
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, k+"="+labels[k])
	}
	return strings.Join(pairs, ",")
}
