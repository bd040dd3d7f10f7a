// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	// BackupDir is where a host keeps backups of etcd, if nobody says otherwise: in the host's state, so that a reset takes them along.
	BackupDir = host.StateDir + "/etcd-backups"
	// RestoreDir is where a host has what is of a restore that is under way.
	RestoreDir = host.StateDir + "/etcd-restore"
	// RestoreUnderWay is there from before a host's member ends until all is well again: what makes the host a member of etcd does nothing
	// then.
	RestoreUnderWay = RestoreDir + "/under-way"
	// RestoreHalted is there from before a host's control plane ends until it is started again, wherever etcd runs: what makes the host a
	// part of the control plane does nothing then.
	RestoreHalted = RestoreDir + "/halted"
)

// NoRestore is the first part of a step that must not be run while one of these paths is there.
func NoRestore(marks ...string) step.Command {
	const ask = `for mark; do
	[ ! -e "$mark" ] || { echo "etcd is being restored ($mark): finish that first, by the same kubexm etcd restore"; exit 1; }
done`
	return step.Command{
		Title: "wait for no restore", Argv: append([]string{"/bin/sh", "-c", "exec >&2; " + ask, "sh"}, marks...),
		Done: step.Done{Check: append([]string{"/bin/sh", "-c", ask, "sh"}, marks...)},
	}
}

// Backup is one of etcd, which somebody asks for.
type Backup struct {
	// Directory is where it is saved on the host of a member; "" is the host's state, which a reset takes along.
	Directory string
	// Keep is how many backups of the cluster stay there; 0 is all.
	Keep int32
	// Asked is when it was asked for. The plan saves one backup for that, however often it is run.
	Asked time.Time
}

// Restore is one of etcd, which somebody asks for.
type Restore struct {
	// Digest and Size are those of the snapshot, which whoever runs the plan can open by them.
	Digest string
	Size   int64
	// ID tells it from other restores. Run again with the same one, the plan goes on where it was.
	ID string
	// Asked is when it was asked for.
	Asked time.Time
}
