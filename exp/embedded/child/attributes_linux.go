// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import "syscall"

// attributes puts the child into a process group of its own, out of the reach of a terminal's Ctrl-C: its parent ends
// it, in order. The kernel kills it if its parent dies without doing so.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
