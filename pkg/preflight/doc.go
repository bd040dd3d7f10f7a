// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight says, before anything is changed, whether hosts can become what they must be.
//
// All that it wants to know of a host is one Query, which is merged into the one observation of it; all that is wrong
// with a host comes back at once, each problem with its cause and its remedy. The checks are pure functions, a file for
// each subject; checks.go is the list of them. What cannot be asked of a host that does not answer, whether it is
// reached, trusted and lets us become root, is a *host.Error of the observation itself.
package preflight
