// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fake is a machine in memory, for tests of what stands on host: files, units, settings and packages with the
// semantics of the real thing, a lock, a journal and an undo store, and faults where a test wants them.
//
//	machine := fake.New("node1")
//	machine.Put("/etc/motd", "welcome\n", 0o644)
//	h := machine.Connect()                       // a host.Host; every connection sees the same machine
//	machine.CutAt(3)                             // the next session dies at its third boundary
//
// What runs on a real machine does not run here: Commands and CommandQuery go to Machine.OnCommand.
package fake
