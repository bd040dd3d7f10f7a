// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit keeps a record of who ran what on which hosts, and what came of it: one JSON object per line, each with the digest
// of the line before it, so that a line that is changed or removed later shows.
//
// An act (a command of a person) has an entry when it starts, one for each pipeline that it ran, and one when it ends. An act
// without an end was killed, or is still under way.
package audit
