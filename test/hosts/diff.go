// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// Diff returns how b differs from a, one line for each thing, by section and key
// ("file /etc/hosts: changed from … to …"), without what Rules names. Hosts that are
// equal give nothing.
func Diff(a, b Snapshot) []string {
	ignored := map[string][]*regexp.Regexp{}
	for _, rule := range Rules() {
		ignored[rule.Section] = append(ignored[rule.Section], regexp.MustCompile(rule.Pattern))
	}
	var differences []string
	for _, section := range union(a, b) {
		for _, key := range union(a[section], b[section]) {
			before, was := a[section][key]
			after, is := b[section][key]
			if before == after && was == is {
				continue
			}
			if slices.ContainsFunc(ignored[section], func(r *regexp.Regexp) bool { return r.MatchString(key) }) {
				continue
			}
			switch {
			case !was:
				differences = append(differences, fmt.Sprintf("%s %s: added: %s", section, key, after))
			case !is:
				differences = append(differences, fmt.Sprintf("%s %s: removed: %s", section, key, before))
			default:
				differences = append(differences, fmt.Sprintf("%s %s: changed from %s to %s", section, key, before, after))
			}
		}
	}
	return differences
}

// union returns the keys of both maps, sorted.
func union[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
