// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// machineSettings are sysctls that belong to the machine and that its hosts
// cannot have to themselves. The kubelet compares the first three with what it
// wants and writes them when they differ; the others are used up by several
// systemds and container runtimes on one kernel.
func machineSettings() map[string]int {
	return map[string]int{
		"vm/overcommit_memory":          1,
		"kernel/panic":                  10,
		"kernel/panic_on_oops":          1,
		"fs/inotify/max_user_instances": 1024,
		"fs/inotify/max_user_watches":   524288,
		"kernel/keys/root_maxkeys":      1000000,
	}
}

// PrepareMachine raises the machine's settings to what many hosts need and leaves
// them so: other pools may be using them. Settings it may not write are logged.
func PrepareMachine(log func(format string, args ...any)) {
	for name, want := range machineSettings() {
		path := filepath.Join("/proc/sys", name)
		content, err := os.ReadFile(path)
		if err != nil {
			log("cannot read the machine's sysctl %s: %v", name, err)
			continue
		}
		if got, err := strconv.Atoi(strings.TrimSpace(string(content))); err == nil && got >= want {
			continue
		}
		if err := os.WriteFile(path, []byte(strconv.Itoa(want)), 0o644); err != nil {
			log("cannot set the machine's sysctl %s to %d: %v", name, want, err)
		}
	}
}
