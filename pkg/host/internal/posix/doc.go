// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package posix is host.Host by means of POSIX sh on the far side and nothing else: coreutils, util-linux, systemd and
// the distribution's package tool. ssh and local differ only in the Transport that they bring.
//
//	one exchange = one script, rendered here, run there by sh ──▶ frames on standard output, parsed here
//
// Observe and Exec are a process each. A session is one process: a pump that holds the lock and copies standard input
// into a worker shell, which has the library (lib/*.sh) loaded and evaluates one script per act. When the connection
// goes, the pump sees the end of its input and the lock is free; the worker finishes the act that it is in, and the
// next writer waits for it on the second lock.
//
// # The host's memory
//
// undo.log is a write-ahead log: a line per saved thing ("+ seq run node task kind …") is appended and synced before
// the thing is changed, and a line ("- seq") once it is restored. What does not fit a line lies in undo/<seq>. A line
// that was cut in the middle lacks its end mark and does not count. journal has a line per finished node in the
// same manner, not synced: a lost line costs an observation, not a host. An undo takes its lines back before anything
// else, and synced: what is undone must not count as done. A claim that is made again for that has no effect while its
// entry is there. digests remembers the sha256 of large files by inode, size and change time, so that a converged host
// does not hash its binaries again and again.
//
// # Quoting
//
// Scripts and everything in them travel on standard input. All values go through quote; contents become arguments of
// the shell's own printf, which is no process and so has no argv that others could read.
package posix
