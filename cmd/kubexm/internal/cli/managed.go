// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
)

// stopTimeout is how long the management plane may take to end.
const stopTimeout = 30 * time.Second

// managed reports whether a management plane has the cluster.
func managed(d clusterdir.Dir) bool {
	info, err := os.Stat(d.Plane())
	return err == nil && info.IsDir()
}

// stop ends a management plane. All that it knows is written down as it comes to know it, so one that does not end as it
// should is worth a word and no more.
func (a *app) stop(ctx context.Context, p *embedded.Plane) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		a.warn(fmt.Sprintf("the management plane did not end as it should: %v", err))
	}
}
