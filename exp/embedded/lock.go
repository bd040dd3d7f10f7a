// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
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

// holder is the content of the lock file.
type holder struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// lock makes dir this process's own until the returned file is closed, which the kernel sees to in any case.
func lock(dir string) (*os.File, error) {
	path := filepath.Join(dir, "plane.lock")
	f, err := child.TryLock(path)
	if err != nil {
		return nil, err
	}
	if f == nil {
		var h holder
		if content, err := os.ReadFile(path); err == nil {
			_ = json.Unmarshal(content, &h) // not yet written: the zero holder says so
		}
		return nil, &InUseError{Dir: dir, PID: h.PID, Since: h.Since}
	}
	content, err := json.Marshal(holder{PID: os.Getpid(), Since: time.Now().UTC().Truncate(time.Second)})
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(content, 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), f.Close())
	}
	return f, nil
}
