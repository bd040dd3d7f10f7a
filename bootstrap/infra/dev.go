// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

var devMachineKind = schema.GroupKind{Group: infrastructureGroup, Kind: "DevMachine"}

// dev is Cluster API's own infrastructure for development: hosts that are containers.
type dev struct{ foreign }

// Host is the container, which has addresses from when it is made. The DevMachine gives the Node its provider ID.
func (d *dev) Host(ctx context.Context, s Subject) (*Host, error) {
	machine, err := d.contractMachine(ctx, s)
	if err != nil {
		return nil, err
	}
	return machine.host(s, containerName(s.Machine.Spec.ClusterName, s.Machine.Spec.InfrastructureRef.Name), "")
}

// containerName is how the provider calls the container of a DevMachine: with the name of the Cluster in front, unless it is there.
func containerName(cluster, machine string) string {
	if strings.HasPrefix(machine, cluster) {
		return machine
	}
	return cluster + "-" + machine
}

// Reset is Never: the container is deleted.
func (d *dev) Reset() spec.ResetPolicy { return spec.ResetNever }
