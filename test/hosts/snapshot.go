// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
)

//go:embed snapshot.sh
var snapshotScript string

// Snapshot is what can be seen of a host at one moment: section (file, unit, sysctl,
// mount, iptables, ip6tables, nft, ipset, link, address, route, rule, account, group,
// process, cgroup), key in the section (a path, a unit's name …), and what is known
// of it. Two of them are compared by Diff.
//
// Of firewalls the content counts and not the order; a built-in chain that lets
// everything pass and has no rule is as good as none, so it is not recorded.
type Snapshot map[string]map[string]string

// add records one thing. What occurs again under the same key is added to its value.
func (s Snapshot) add(section, key, value string) {
	if s[section] == nil {
		s[section] = map[string]string{}
	}
	if old, again := s[section][key]; again {
		value = old + "\n" + value
	}
	s[section][key] = value
}

// Snapshot records the host's state, in one exchange of about a second.
func (h *Host) Snapshot(ctx context.Context) (Snapshot, error) {
	out, err := docker(ctx, strings.NewReader(snapshotScript), h.execArgs([]string{"sh", "-s"})...)
	if err != nil {
		return nil, fmt.Errorf("snapshot of host %s: %w", h.Name, err)
	}
	snapshot, err := parseSnapshot(out)
	if err != nil {
		return nil, fmt.Errorf("snapshot of host %s: %w", h.Name, err)
	}
	return snapshot, nil
}

// parseSnapshot reads what snapshot.sh printed.
func parseSnapshot(out string) (Snapshot, error) {
	texts := map[string]string{}
	for part := range strings.SplitSeq("\n"+out, "\n@@ ") {
		name, text, _ := strings.Cut(part, "\n")
		texts[name] = text
	}
	// The last line the script prints; without it the output was cut short.
	if _, whole := texts["end"]; !whole {
		return nil, errors.New("the output is not whole")
	}
	snapshot := Snapshot{}
	for _, section := range sections() {
		text, there := texts[section.name]
		if !there {
			return nil, fmt.Errorf("section %q is missing", section.name)
		}
		if err := section.parse(snapshot, text); err != nil {
			return nil, fmt.Errorf("section %q: %w", section.name, err)
		}
	}
	return snapshot, nil
}
