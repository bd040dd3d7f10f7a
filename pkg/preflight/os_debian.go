// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

func debian() family {
	return family{id: "debian", name: "Debian", releases: []string{"12", "13"}}
}
