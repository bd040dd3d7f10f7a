// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package nulltest

import "github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"

// Addon adds nothing.
type Addon struct{}

var _ component.Addon = Addon{}

// Needs an image and the chart of another.
func (Addon) Needs(in component.Inputs) component.Needs {
	if !in.IsControlPlane() {
		return component.Needs{}
	}
	return component.Needs{Images: component.ImagesNamed("pause"), Charts: []string{"metrics-server"}}
}

// Release is of that chart.
func (Addon) Release(in component.Inputs) component.Chart {
	return component.Chart{Namespace: "null-addon", Archive: in.Chart("metrics-server"), Values: map[string]any{"image": in.ImageRef("pause")}}
}

// Deployments are one.
func (Addon) Deployments() []string { return []string{"null-addon/null"} }
