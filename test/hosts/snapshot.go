// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
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

// errTorn is a listing of files that is not of one moment: a directory that changes, or a
// file system such as fuse-overlayfs under load, may show an entry twice and pass over another.
var errTorn = errors.New("listed twice")

// listings is how often files are listed when that is torn.
const listings = 3

// Snapshot records the host's state, in one exchange of about a second.
func (h *Host) Snapshot(ctx context.Context) (Snapshot, error) {
	var snapshot Snapshot
	var err error
	for range listings {
		if snapshot, err = h.snapshot(ctx); !errors.Is(err, errTorn) {
			break
		}
	}
	return snapshot, err
}

func (h *Host) snapshot(ctx context.Context) (Snapshot, error) {
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

// Snapshots are taken of several hosts at once, by name.
func Snapshots(ctx context.Context, hosts []*Host) (map[string]Snapshot, error) {
	var mu sync.Mutex
	taken := make(map[string]Snapshot, len(hosts))
	all, ctx := errgroup.WithContext(ctx)
	for _, host := range hosts {
		all.Go(func() error {
			snapshot, err := host.Snapshot(ctx)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			taken[host.Name] = snapshot
			return nil
		})
	}
	return taken, all.Wait()
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
