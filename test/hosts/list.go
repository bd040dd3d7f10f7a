// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
)

// Listed is one host as Docker sees it, whether or not its pool is whole.
type Listed struct {
	Pool    string
	Host    string
	Address string
	State   string // Docker's word: running, paused, exited …

	number int
}

// List returns every host of every pool on this Docker engine, by pool and number.
func List(ctx context.Context) ([]Listed, error) {
	out, err := docker(ctx, nil, "ps", "--all", "--filter", "label="+hostLabel, "--format",
		`{{.Label "`+poolLabel+`"}} {{.Label "`+hostLabel+`"}} {{.Label "`+addrLabel+`"}} {{.State}}`)
	if err != nil {
		return nil, fmt.Errorf("list test hosts: %w", err)
	}
	var all []Listed
	for _, line := range lines(out) {
		var entry Listed
		if _, err := fmt.Sscan(line, &entry.Pool, &entry.number, &entry.Address, &entry.State); err != nil {
			return nil, fmt.Errorf("list test hosts: container %q is not one of ours: %w", line, err)
		}
		entry.Host = fmt.Sprintf("%s-%d", entry.Pool, entry.number)
		all = append(all, entry)
	}
	slices.SortFunc(all, func(a, b Listed) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.number, b.number))
	})
	return all, nil
}

// Find returns the host of that name. It can be acted on through Docker; it has no
// keys, which only Open gives.
func Find(ctx context.Context, name string) (*Host, error) {
	all, err := List(ctx)
	if err != nil {
		return nil, err
	}
	for _, entry := range all {
		if entry.Host != name {
			continue
		}
		address, err := netip.ParseAddr(entry.Address)
		if err != nil {
			return nil, fmt.Errorf("test host %s: %w", name, err)
		}
		return newHost(entry.Pool, entry.number, address), nil
	}
	return nil, fmt.Errorf("test host %q: %w", name, ErrNotFound)
}
