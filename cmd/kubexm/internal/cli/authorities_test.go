// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/state"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// TestTrustOfAKnownCluster: neither what changes hosts nor what only compares gets key pairs made for a cluster that is known.
func TestTrustOfAKnownCluster(t *testing.T) {
	dir, err := state.Of(t.TempDir(), "prod")
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteInventory(&state.Inventory{Cluster: "prod"}); err != nil {
		t.Fatal(err)
	}
	d := &declared{Cluster: &config.Cluster{Name: "prod"}, dir: dir}
	for _, keep := range []bool{true, false} {
		_, err := d.trust(keep)
		var missing *state.MissingAuthoritiesError
		if !errors.As(err, &missing) || len(missing.Files) != 8 || dir.HasAuthorities() {
			t.Errorf("keep %t: got %v, want that all files are missing, and none to be made", keep, err)
		}
	}
}
