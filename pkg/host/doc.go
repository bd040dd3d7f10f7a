// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package host is the hand on a machine: it observes and changes one Linux host, and can restore what it was.
//
// The package is a contract; ssh, local and fake keep it, and hosttest holds the suite that each of them must pass.
//
//	Query ──▶ Host.Observe ──▶ Facts            one exchange, however much is asked; changes nothing, takes no lock
//	Host.Begin ──▶ Session                      takes the host's write lock for as long as the connection lives
//	Act{Changes, Verify} ──▶ Session.Do ──▶ Facts   one exchange: save what was, change, look again, journal
//	Session.Undo                                last in, first out, from what Do saved
//
// Everything the host keeps for us lies in StateDir: the lock, the journal (which node, with which input digest,
// finished) and the undo store (what each file, unit, setting was before). Each act may be cut at any point, by a
// killed controller as much as by a power failure, and done again.
package host
