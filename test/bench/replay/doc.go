// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replay plays many SSH hosts from what one real host has said. It is how a bench finds out what a hundred hosts
// cost the controller on a machine that cannot carry a hundred hosts.
//
//	memory := replay.NewMemory()
//	memory.Record(ctx, listener, "host-000", start)   // one real host, everything it answers is kept
//	memory.Play(ctx, listener, "host-001")            // answers as that host did, in the same order
//
// What speaks to a played host is all real: handshake, cipher, channels, windows, the bytes of each answer. What runs on
// it is not there, so it costs nothing and answers at once. Played hosts only know the answers to what the real host was
// asked, under a name of the same length.
//
// This package knows the form of what pkg/host sends: a script by its length, on standard input of a shell; answers under
// a mark that the script begins with; a session that goes on to evaluate one script after the other.
package replay
