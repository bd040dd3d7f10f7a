// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"context"
	"path/filepath"

	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/child"
)

// startControllerManager starts the controllers of Kubernetes that any API with owner references, namespaces and roles made of others
// relies on. Nothing waits for them.
func startControllerManager(ctx context.Context, o Options) (*child.Process, error) {
	return child.Start(ctx, child.Spec{
		Name: "kube-controller-manager", Path: o.ControllerManager, Dir: o.Dir,
		Env: []string{"GOGC=50"},
		Args: []string{
			"--kubeconfig=" + filepath.Join(o.Dir, kubeconfigFile),
			"--controllers=garbage-collector-controller,namespace-controller,clusterrole-aggregation-controller",
			"--leader-elect=false",
			"--secure-port=0",
			"--profiling=false",
		},
	})
}
