// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/lockfile"
)

// lockPoll is how often a lock is tried that a dying child still holds.
const lockPoll = 10 * time.Millisecond

// takeOver returns the locked lock file of spec. A child that holds it was left behind by an earlier process: it is
// asked to end, then killed.
func takeOver(ctx context.Context, spec Spec) (*os.File, error) {
	path := filepath.Join(spec.Dir, spec.Name+".lock")
	ctx, cancel := context.WithTimeout(ctx, 2*spec.grace())
	defer cancel()
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()

	grace := time.NewTimer(spec.grace())
	defer grace.Stop()

	wanted := syscall.SIGTERM
	for {
		lock, err := lockfile.Try(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", spec.Name, err)
		}
		if lock != nil {
			// An id of the past must not be taken for that of the next holder.
			if err := lock.Truncate(0); err != nil {
				return nil, errors.Join(fmt.Errorf("%s: %w", spec.Name, err), lock.Close())
			}
			return lock, nil
		}
		pid := readPID(path)
		// 0: the holder is dying with a parent that was killed before it wrote the id.
		if pid != 0 && wanted != 0 {
			if err := syscall.Kill(-pid, wanted); err != nil && !errors.Is(err, syscall.ESRCH) {
				return nil, fmt.Errorf("%s: an earlier process left it running as process %d, which cannot be ended: %w", spec.Name, pid, err)
			}
			wanted = 0
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: an earlier process left it running (process %d, 0 if unknown) and it does not end; end what holds %s: %w",
				spec.Name, pid, path, context.Cause(ctx))
		case <-grace.C:
			wanted = syscall.SIGKILL
		case <-ticker.C:
		}
	}
}

// readPID returns 0 if path does not hold a process id.
func readPID(path string) int {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(content)))
	if err != nil || pid <= 1 {
		return 0
	}
	return pid
}

func writePID(f *os.File, pid int) error {
	_, err := f.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0)
	return err
}
