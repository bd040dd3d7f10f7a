// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/module"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// SaveEtcd plans that a snapshot of etcd is saved on a control plane host, wherever etcd runs: before its hosts are replaced by others
// with another version. The plan does so once; asked is when that was asked for.
func SaveEtcd(t spec.Target, asked time.Time) (*plan.Plan, error) {
	if t.Host.Role != spec.RoleControlPlane {
		return nil, fmt.Errorf("host %s: it is no control plane host, which snapshots of etcd are saved on", t.Host.Name)
	}
	p := newLayout("SaveEtcd", t.ClusterName)
	in, err := module.NewInstalled(t)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", t.Host.Name, err)
	}
	p.host(in, module.EtcdSnapshot(in, asked))
	return p.plan()
}
