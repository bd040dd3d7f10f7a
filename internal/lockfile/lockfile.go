// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lockfile has files that one process at a time holds.
package lockfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Holder is the process that holds a file, and since when. It is zero while that process has not written it yet.
type Holder struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// Try opens path, creating it with mode 0600, and locks it. The lock lasts until every copy of the descriptor is closed, in processes
// that inherited it as well, which the kernel sees to in any case. It returns a nil file and no error if another holds the lock.
func Try(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return f, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, f.Close()
	default:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
}

// Take is Try by a process that writes who it is. The holder is the other one where the file is nil and there is no error.
func Take(path string) (*os.File, Holder, error) {
	f, err := Try(path)
	if err != nil {
		return nil, Holder{}, err
	}
	if f == nil {
		var by Holder
		if content, err := os.ReadFile(path); err == nil {
			_ = json.Unmarshal(content, &by) // not written yet: the zero Holder says so
		}
		return nil, by, nil
	}
	content, err := json.Marshal(Holder{PID: os.Getpid(), Since: time.Now().UTC().Truncate(time.Second)})
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(content, 0)
	}
	if err != nil {
		return nil, Holder{}, errors.Join(fmt.Errorf("write %s: %w", path, err), f.Close())
	}
	return f, Holder{}, nil
}
