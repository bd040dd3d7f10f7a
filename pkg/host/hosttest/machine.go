// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import "testing"

func testMachine(*testing.T, func(*testing.T) Fixture) {}
