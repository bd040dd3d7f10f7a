// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory sets how a program trades memory for processor time.
package memory

import (
	"os"
	"runtime/debug"
)

// percent is how much garbage may lie beside what is alive before it is collected. Runs on many hosts make garbage in step, and a
// manager's memory is what its Pod's limit must allow for; Go's default of 100 lets a third of the peak be garbage.
const percent = 40

// Save collects garbage earlier than Go does by default, unless the environment variable GOGC says how.
func Save() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
