// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
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

// holder is the content of the lock file.
type holder struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// Lock makes d and keeps other commands from changing the cluster until unlock is called or the process ends. The error
// is a *LockedError if one is at it.
func (d Dir) Lock() (unlock func(), err error) {
	if err := d.Make(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(d.Path(lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		var h holder
		_ = json.NewDecoder(f).Decode(&h) // who holds it may not have written yet
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &LockedError{Cluster: d.Cluster, PID: h.PID, Since: h.Since}
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	content, err := json.Marshal(holder{PID: os.Getpid(), Since: time.Now().UTC()})
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(content, 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { _ = f.Close() }, nil // the kernel unlocks
}
