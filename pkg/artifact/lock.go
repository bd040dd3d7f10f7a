// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a lock that another has is tried again. flock(2) cannot be waited for and cancelled at once.
const lockPoll = 100 * time.Millisecond

var errLocked = errors.New("another has the lock")

// tryLock takes the exclusive lock of a file, against other processes and against other calls in this one. The error is
// errLocked if another has it. The lock goes with its holder, however that ends.
func tryLock(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errLocked
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f.Close, nil
}

// lock waits for the lock of a file. waiting, which may be nil, is called once if it has to.
func lock(ctx context.Context, path string, waiting func()) (unlock func() error, err error) {
	for told := false; ; {
		unlock, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return unlock, err
		}
		if !told && waiting != nil {
			waiting()
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(lockPoll):
		}
	}
}
