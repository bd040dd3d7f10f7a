// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/module"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// WithdrawAPIServer plans that the API server of a control plane host ends, which comes before the host's etcd member is removed:
// anyone who has a connection to it goes to another one. An API server that has lost its etcd would keep connections, and let every
// request on them wait.
func WithdrawAPIServer(t spec.Target) (*plan.Plan, error) {
	p := newLayout("WithdrawAPIServer", t.ClusterName)
	in, err := module.NewInstalled(t)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", t.Host.Name, err)
	}
	p.host(in, module.Withdrawal(in))
	return p.plan()
}
