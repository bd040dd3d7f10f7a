// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

const (
	// BackupDir is where a host keeps backups of etcd, if nobody says otherwise: in the host's state, so that a reset takes them along.
	BackupDir = host.StateDir + "/etcd-backups"
	// RestoreDir is where a host has what is of a restore that is under way.
	RestoreDir = host.StateDir + "/etcd-restore"
	// RestoreUnderWay is there from before anything ends on a host until all is well again: what makes the host a member of etcd, or a
	// part of the control plane, does nothing then.
	RestoreUnderWay = RestoreDir + "/under-way"
)

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
