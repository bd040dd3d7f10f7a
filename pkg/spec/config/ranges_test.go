// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
	"testing"
)

func TestExpandRange(t *testing.T) {
	for entry, want := range map[string][]string{
		"node1":            {"node1"},
		"node[5:6]":        {"node5", "node6"},
		"node[3:3]":        {"node3"},
		"node[9:11]":       {"node9", "node10", "node11"},
		"node[08:10]":      {"node08", "node09", "node10"},
		"node[0:1]":        {"node0", "node1"},
		"node[000:001]":    {"node000", "node001"},
		"rack[1:2]-a.prod": {"rack1-a.prod", "rack2-a.prod"},
		"[1:2]":            {"1", "2"},
	} {
		got, err := expandRange(entry)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v (%v), want %v", entry, got, err, want)
		}
	}
	for _, entry := range []string{
		"", "[", "]", "node[]", "node[:]", "node[1:]", "node[:2]", "node[1]", "node[2:1]", "node[1:2]]", "node[[1:2]", "node[1:2][1:2]",
		"node[-1:2]", "node[1-2]", "node[ 1:2]", "node[1:2:3]", "node[08:9]", "node[8:09]", "node[01:100]", "node[1:5001]", "node[1:9999999999]",
	} {
		if got, err := expandRange(entry); err == nil {
			t.Errorf("%q is taken for %d names", entry, len(got))
		}
	}
}

func FuzzExpandRange(f *testing.F) {
	for _, entry := range []string{"node1", "node[5:6]", "node[08:10]", "node[2:1]", "a[1:2]b", "[0:4999]", "node[999999999:999999999]", "x[", "：[1:2]"} {
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		names, err := expandRange(entry)
		if err != nil {
			return
		}
		if len(names) == 0 || len(names) > maxRange {
			t.Fatalf("%q stands for %d names", entry, len(names))
		}
		sorted := slices.Sorted(slices.Values(names))
		if len(slices.Compact(sorted)) != len(names) {
			t.Fatalf("%q names a host twice: %q", entry, names)
		}
		for _, name := range names {
			if strings.ContainsAny(name, "[]") {
				t.Fatalf("%q leaves brackets: %q", entry, name)
			}
		}
	})
}
