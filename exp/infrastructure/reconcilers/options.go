// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// Options is what all reconcilers need.
type Options struct {
	// Client reads from a cache.
	Client client.Client
	// Reader reads from the API server.
	Reader client.Reader
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter that objects must have. Empty means all objects.
	WatchFilter string
	// Now is the clock, time.Now if nil.
	Now func() time.Time
}

func (o *Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// isOthers reports whether another manager has the object.
func (o *Options) isOthers(object client.Object) bool {
	return o.WatchFilter != "" && !labels.HasWatchLabel(object, o.WatchFilter)
}

// members are a Cluster's Machines and KubexmMachines.
func (o *Options) members(ctx context.Context, cluster *clusterv1.Cluster) ([]clusterv1.Machine, []infrav1.KubexmMachine, error) {
	of := []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}}
	owners, machines := &clusterv1.MachineList{}, &infrav1.KubexmMachineList{}
	if err := o.Client.List(ctx, owners, of...); err != nil {
		return nil, nil, fmt.Errorf("list the Machines of the Cluster %s: %w", klog.KObj(cluster), err)
	}
	if err := o.Client.List(ctx, machines, of...); err != nil {
		return nil, nil, fmt.Errorf("list the KubexmMachines of the Cluster %s: %w", klog.KObj(cluster), err)
	}
	return owners.Items, machines.Items, nil
}
