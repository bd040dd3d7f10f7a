// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tables has a table for each slot of a cluster: which components may fill it. A component is in its house when its folder
// is below pkg/component and its line is here.
package tables

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/containerd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/flannel"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Runtimes run containers.
var Runtimes = map[spec.ContainerRuntimeType]component.Runtime{
	spec.ContainerRuntimeContainerd: containerd.Runtime{},
}

// Networks connect pods.
var Networks = map[spec.NetworkPlugin]component.Network{
	spec.NetworkFlannel: flannel.Network{},
}

// Slots are what fills those of a cluster. An error names a field whose component is not in its table.
func Slots(c spec.Cluster) (component.Slots, error) {
	runtime, noRuntime := pick("containerRuntime.type", c.ContainerRuntime.Type, Runtimes)
	network, noNetwork := pick("network.plugin", c.Network.Plugin, Networks)
	return component.Slots{Runtime: runtime, Network: network}, errors.Join(noRuntime, noNetwork)
}

func pick[K ~string, C any](field string, name K, table map[K]C) (C, error) {
	c, ok := table[name]
	if !ok {
		return c, fmt.Errorf("cluster.%s: there is no %q, but %q", field, name, slices.Sorted(maps.Keys(table)))
	}
	return c, nil
}
