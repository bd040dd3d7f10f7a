// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"context"
	"fmt"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// link is what is known of the way to the host.
type link struct{}

// Stage implements host.Session.
func (s *session) Stage(ctx context.Context, blobs []host.Blob) error {
	return fmt.Errorf("not yet")
}
