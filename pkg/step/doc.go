// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package step is one act on one host, or on the cluster through its API, as a plain value.
//
// There are few generic kinds (File, Directory, Absent, Block, Service, Sysctl, Module, SwapOff, Package, User, Claim,
// Command, Import, WaitFor, Steady, Savepoint, Commit; and on the controller Await, Token, Apply, Release, Drain, Uncordon). Dedicated
// steps — the packages below this one, one per component — are Sequences of generic ones with a name, a description and limits. Tasks are
// made of dedicated steps only.
//
// A step is decided before it is run: Observe says what must be known, Precheck is a pure function of what was seen to
// what differs, and only what differs is run. Steps are serialisable (Marshal, Unmarshal), so a plan is data; what is
// secret or not known yet stands in them as a reference (Text).
package step
