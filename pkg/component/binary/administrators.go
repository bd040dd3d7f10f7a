// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import (
	_ "embed"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

//go:embed administrators.yaml
var administrators string

// Administrators binds roles to the users of the control plane hosts' certificates: to the administrators of admin.conf, and to
// API servers where they ask kubelets. Until then these may do nothing. after is made when the API server answers.
func Administrators(after graph.Output[string]) step.Step {
	return step.New(step.Meta{
		Name: "kubernetes/administrators", Description: "bind the administrators' roles", Timeout: step.Duration(time.Minute),
		Retry: step.Retry{Attempts: 5, Delay: step.Duration(time.Second), MaxDelay: step.Duration(10 * time.Second)},
	}, step.Apply{Title: "the administrators' roles", Manifest: step.Literal(administrators), After: []string{after.Name}})
}
