// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/lockfile"
)

// InUseError refuses a second plane on one directory.
type InUseError struct {
	// Dir is the plane's directory.
	Dir string
	// PID is the process that uses it, since Since. 0 if it has not said so yet.
	PID   int
	Since time.Time
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s: in use by a process that has just started; wait until that has ended", e.Dir)
	}
	return fmt.Sprintf("%s: in use by process %d since %s; wait until that has ended, or end it",
		e.Dir, e.PID, e.Since.Local().Format(time.DateTime))
}

// lock makes dir this process's own until the returned file is closed, which the kernel sees to in any case.
func lock(dir string) (*os.File, error) {
	f, by, err := lockfile.Take(filepath.Join(dir, "plane.lock"))
	if err == nil && f == nil {
		err = &InUseError{Dir: dir, PID: by.PID, Since: by.Since}
	}
	return f, err
}
