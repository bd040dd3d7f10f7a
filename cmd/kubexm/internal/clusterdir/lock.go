// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdir

import (
	"fmt"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/lockfile"
)

// LockedError refuses a second command that changes a cluster.
type LockedError struct {
	Cluster string
	// PID is the process that is changing the cluster, since Since; 0 if it has not said so yet.
	PID   int
	Since time.Time
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("another kubexm is changing cluster %s: wait until it has ended", e.Cluster)
	}
	return fmt.Sprintf("another kubexm (process %d, since %s) is changing cluster %s: wait until it has ended, or end it",
		e.PID, e.Since.Local().Format(time.DateTime), e.Cluster)
}

// Lock makes d and keeps other commands from changing the cluster until unlock is called or the process ends. The error
// is a *LockedError if one is at it.
func (d Dir) Lock() (unlock func(), err error) {
	if err := d.Make(); err != nil {
		return nil, err
	}
	f, by, err := lockfile.Take(d.Path(lockFile))
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, &LockedError{Cluster: d.Cluster, PID: by.PID, Since: by.Since}
	}
	return func() { _ = f.Close() }, nil // the kernel unlocks
}
