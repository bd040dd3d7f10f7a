// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/state"
)

// managed reports whether a management plane has the cluster.
func managed(d state.Dir) bool {
	info, err := os.Stat(d.Plane())
	return err == nil && info.IsDir()
}
