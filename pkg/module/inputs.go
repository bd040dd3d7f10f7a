// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/tables"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	systems "github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/tables"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/task"
)

// NewInputs are the inputs for a host, with what it needs of the bundle. Its errors name what is missing.
func NewInputs(t spec.Target, sys host.System, b *artifact.Bundle) (component.Inputs, error) {
	in, err := installed(t)
	if err != nil {
		return in, err
	}
	in.System = sys
	if err := in.Check(); err != nil {
		return in, err
	}
	if in.OS, err = systems.Of(sys.OSID, sys.OSVersion); err != nil {
		return in, err
	}
	if err := in.Kubernetes.Check(in); err != nil {
		return in, err
	}
	if in.Artifacts, err = in.LookUp(b, needs(in)...); err != nil {
		return in, err
	}
	if err := in.Addons.Check(in); err != nil {
		return in, err
	}
	in.Files, err = task.Files(&in.Target)
	return in, err
}

// NewInstalled are the inputs for a host that has its artifacts: they need no bundle.
func NewInstalled(t spec.Target) (component.Inputs, error) { return installed(t) }

func installed(t spec.Target) (component.Inputs, error) {
	t.Default()
	slots, err := tables.Slots(t.Cluster)
	return component.Inputs{Target: t, Slots: slots}, err
}

// Services are systemd's names for what components run on hosts beside Kubernetes and etcd.
func Services() []string { return tables.Services() }

// needs are those of all components of a cluster.
func needs(in component.Inputs) []component.Needs {
	return slices.Concat([]component.Needs{
		in.Runtime.Needs(in),
		task.CNINeeds(in),
		in.DNS.Needs(in),
		in.Network.Needs(in),
		in.ServiceProxy.Needs(in),
		in.Kubernetes.Needs(in),
		in.Etcd.Needs(in),
	}, in.Internal.Needs(in), in.Addons.Needs(in))
}
