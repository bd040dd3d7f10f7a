// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// EtcdUnits is what an Etcd is, in addition, whose members are units of systemd: those of others become its own when a cluster is adopted.
type EtcdUnits interface {
	// UnitName is that of the unit, ours as well as theirs.
	UnitName() string
	// AskTheirs asks a control plane host with this address how such a unit runs. It changes nothing, and prints no secret.
	AskTheirs(address string) host.Command
	// Theirs is what the host has said.
	Theirs(said host.Result) (TheirEtcd, error)
	// FlagsOf are those with which our unit, which has this content, runs etcd, sorted.
	FlagsOf(unit string) []string
}

// TheirEtcd is a member of etcd that others have made as a unit on a host, as it runs.
type TheirEtcd interface {
	// Runs reports whether the unit is active, and etcd is nothing else on the host.
	Runs() bool
	// Answer is what it says of its members and alarms, as pkg/quorum reads it.
	Answer() host.Result
	// Flags are its settings as a command line has them, wherever they are set, sorted, without those that one with data does not read.
	Flags() []string
	// Unfit are the reasons for which it cannot go on as ours on a host with this address, by a program of this version. What it
	// answers, and what its Files hold, are judged elsewhere.
	Unfit(e spec.Etcd, address, version string) []Reason
	// Files are those that Authority is found in; its key, at Key, only one member's host needs to have.
	Files() []string
	Key() string
	// Authority is what it knows members and clients by, of what its Files hold: with its key if the host has that, zero if there is none,
	// and the reasons for which it cannot be taken over.
	Authority(files map[string][]byte, now time.Time) (pki.KeyPair, []Reason)
	// Own are the paths that are etcd's as a whole on the host, and elsewhere what it reads besides, which may be anybody's.
	Own() (own, elsewhere []string)
}

// Reason is why something of others cannot become ours, and what to do about it.
type Reason struct{ Cause, Remedy string }
