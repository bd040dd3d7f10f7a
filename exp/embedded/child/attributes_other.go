// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package child

import "syscall"

// attributes puts the child into a process group of its own, out of the reach of a terminal's Ctrl-C: its parent ends
// it, in order. Where a parent's death is not signalled, the next Start ends what was left behind.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
