// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// lastingSources takes events about clusters for as long as life lasts, which is longer than the controllers that they are for. The
// cache of clusters hands them over whatever happens: where one came while the manager ended, nobody took it any more, and the manager
// waited for the cache's reconciler until its time to end was over.
type lastingSources struct {
	clustercache.ClusterCache
	life context.Context
}

func (l lastingSources) GetClusterSource(
	controller string, mapFunc func(context.Context, client.Object) []ctrl.Request, opts ...clustercache.GetClusterSourceOption,
) source.Source {
	return lastingSource{Source: l.ClusterCache.GetClusterSource(controller, mapFunc, opts...), life: l.life}
}

type lastingSource struct {
	source.Source
	life context.Context
}

func (s lastingSource) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	return s.Source.Start(s.life, queue)
}
