// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"context"
	"errors"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Owners say for whom a cluster's hosts are changed.
type Owners struct {
	// Cluster is the cluster's name.
	Cluster string
	// Authority is the fingerprint of its certificate authority, "" while it has none: then it owns no host. It is asked when a
	// host is dialled first, since a cluster's authority may be made after its hosts were observed.
	Authority func() (string, error)
	// Roles are what hosts are for, by name.
	Roles map[string]spec.Role
	// Adopt names, by host, the owner from whom a host is taken over.
	Adopt map[string]string
}

// Of is what is claimed of a host.
func (o Owners) Of(_ context.Context, name string) (host.Ownership, error) {
	if o.Authority == nil {
		return host.Ownership{}, errors.New("defect: nobody says for which cluster the hosts are changed")
	}
	authority, err := o.Authority()
	return host.Ownership{
		Owner: host.Owner{Cluster: o.Cluster, Authority: authority, Role: string(o.Roles[name]), Host: name},
		Adopt: o.Adopt[name],
	}, err
}
