// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"slices"
	"testing"
)

func TestMemoryGrowsWithHosts(t *testing.T) {
	for hosts, limit := range map[int]string{0: "192MiB", 50: "192MiB", 51: "193MiB", 1000: "1142MiB"} {
		if env := apiServerEnv(hosts); !slices.Contains(env, "GOMEMLIMIT="+limit) {
			t.Errorf("%d hosts: %v, want a limit of %s", hosts, env, limit)
		}
	}
}
