// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func itoa(i int32) string { return strconv.Itoa(int(i)) }

func gateMap(gates []spec.FeatureGate) map[string]bool {
	m := make(map[string]bool, len(gates))
	for _, g := range gates {
		m[g.Name] = g.State == spec.FeatureEnabled
	}
	return m
}

// gateFlag is the --feature-gates flag, or none.
func gateFlag(gates []spec.FeatureGate) []arg {
	if len(gates) == 0 {
		return nil
	}
	m := gateMap(gates)
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, name+"="+strconv.FormatBool(m[name]))
	}
	return []arg{{"feature-gates", strings.Join(pairs, ",")}}
}

func joinLabels(labels map[string]string) string {
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, k+"="+labels[k])
	}
	return strings.Join(pairs, ",")
}
