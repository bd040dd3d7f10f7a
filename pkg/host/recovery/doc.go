// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recovery is what is done with a host that is not well before it is given up: its logs are read, and it is rebooted.
//
// Both work by commands outside of sessions: they take no lock, and write nothing to the host. A host whose disk is full or
// has become read-only is one of those that they are for.
package recovery
