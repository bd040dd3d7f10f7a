// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
)

// RemovedAPIs are those in use that a version of Kubernetes does not serve.
func RemovedAPIs(ctx context.Context, d clusterdir.Dir, version string) ([]kube.RemovedAPI, error) {
	config, err := restConfig(d)
	if err != nil {
		return nil, err
	}
	cluster, err := kube.New(config)
	if err != nil {
		return nil, err
	}
	return cluster.RemovedAPIs(ctx, version)
}
