// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serial keeps apart two copies of a cluster's state. Each run that changes hosts writes a serial one higher, into the state first
// and then on the hosts that have the control plane and etcd. A copy that is behind what a host says is refused.
//
//	Guard   the copy that a command works with
//	Behind  why it may not
package serial

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Hosts are the names of those that keep the serial: the hosts with these roles that have the control plane or etcd. They are in order.
func Hosts(roles map[string]spec.Role) []string {
	var names []string
	for name, role := range roles {
		if role == spec.RoleControlPlane || role == spec.RoleEtcd {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Behind refuses a copy of the state that is not the newest.
type Behind struct {
	Cluster, Dir string
	// Local is the copy's serial, nil if it has none.
	Local *host.Serial
	// Host is one that has a later one, and Is that; nil if it cannot be read, because of Unreadable.
	Host       string
	Is         *host.Serial
	Unreadable string
}

// Error names the host, both serials and what to do.
func (b *Behind) Error() string {
	text := fmt.Sprintf("the state of %s in %s ", b.Cluster, b.Dir)
	remedy := "work with the newer copy"
	switch {
	case b.Is == nil:
		text += fmt.Sprintf("may be an older copy, and no host was changed: the record of host %s, %s/%s, cannot be read: %s",
			b.Host, host.StateDir, host.SerialFile, b.Unreadable)
		remedy = "find out which copy of the state the cluster was changed with last, and work with that"
	case b.Local != nil && b.Local.Number == b.Is.Number:
		text += fmt.Sprintf("is another copy than the one that the cluster was changed with last, and no host was changed: "+
			"both have gone on from serial %d: host %s has serial %s, and this copy has the same number of another run (%s)",
			b.Is.Number-1, b.Host, b.Is, b.Local)
	case b.Local != nil:
		text += fmt.Sprintf("is an older copy, and no host was changed: host %s was changed with serial %s, and this copy has serial %s",
			b.Host, b.Is, b.Local)
	default:
		text += fmt.Sprintf("is an older copy, and no host was changed: host %s was changed with serial %s, and this copy has none",
			b.Host, b.Is)
	}
	return text + fmt.Sprintf("\nRemedy: %s. Where that is lost, move %s away and read the state back from the hosts: "+
		"kubexm recover -f config.yaml. To take this copy for the truth, with what it declares, add --state-is-current: "+
		"others are refused from then on", remedy, b.Dir)
}

// Judge compares a copy's serial, which may be nil, with what hosts with these names say, for the cluster with this authority. Facts that
// are missing, and hosts that have no serial, say nothing. The error is a *Behind without Cluster and Dir.
func Judge(local *clusterdir.Serial, names []string, facts map[string]*host.Facts, authority string) error {
	var mine host.Serial
	b := &Behind{}
	if local != nil {
		mine, b.Local = local.Serial, &local.Serial
	}
	for _, name := range names {
		f := facts[name]
		if f == nil {
			continue
		}
		if f.SerialUnreadable != "" {
			if b.Host == "" {
				b.Host, b.Unreadable = name, f.SerialUnreadable
			}
			continue
		}
		// Of several, the highest says most.
		if is := f.SerialOf(authority); is != nil && is.Supersedes(mine) && (b.Is == nil || is.Number > b.Is.Number) {
			b.Host, b.Is = name, is
		}
	}
	if b.Host == "" {
		return nil
	}
	return b
}

// Next is the serial of a run that goes on from a copy's, above what hosts say. A serial that no host has yet is used again: numbers that
// are not on hosts would hide from another copy's.
func Next(local *clusterdir.Serial, names []string, facts map[string]*host.Facts, authority, by string, now time.Time) clusterdir.Serial {
	highest := int64(0)
	known := false
	for _, name := range names {
		if f := facts[name]; f != nil {
			if is := f.SerialOf(authority); is != nil {
				highest = max(highest, is.Number)
				known = known || local != nil && is.Same(local.Serial)
			}
		}
	}
	next := host.Serial{Number: highest + 1, Authority: authority, By: printable(by), Time: now.UTC().Truncate(time.Second)}
	if local != nil {
		if local.Pending && !known && local.Number > highest {
			next.Number, next.Token = local.Number, local.Token
		} else {
			next.Number = max(next.Number, local.Number+1)
		}
	}
	next.Token = cmp.Or(next.Token, token())
	return clusterdir.Serial{Serial: next, Pending: true}
}

// Highest is the serial of the newest state that hosts say they were changed with, for a state that is read back from them; nil if none
// says so. Where two copies have gone on from the same number, neither is it: the state that is read back goes above both.
func Highest(names []string, facts map[string]*host.Facts, authority string) *clusterdir.Serial {
	var highest *clusterdir.Serial
	for _, name := range names {
		f := facts[name]
		if f == nil {
			continue
		}
		is := f.SerialOf(authority)
		switch {
		case is == nil || highest != nil && (is.Number < highest.Number || is.Same(highest.Serial)):
		case highest != nil && is.Number == highest.Number && !highest.Pending:
			above := *is
			above.Number, above.Token = above.Number+1, token()
			highest = &clusterdir.Serial{Serial: above, Pending: true}
		default:
			highest = &clusterdir.Serial{Serial: *is}
		}
	}
	return highest
}

func token() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// printable is a name as a record may have it.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name[:min(len(name), 256)])
}
