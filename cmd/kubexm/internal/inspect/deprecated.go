// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/state"
)

// DeprecatedAPI is a kind's version that is deprecated, and that somebody has asked for.
type DeprecatedAPI struct {
	Group, Version, Resource string
	// RemovedIn is the minor version of Kubernetes from which on it is not served any more, such as 1.37; "" if that is not
	// known yet.
	RemovedIn string
}

// GoneIn reports whether a version of Kubernetes, such as v1.37.0, does not serve it any more.
func (d DeprecatedAPI) GoneIn(kubernetes string) bool {
	removed, err := version.ParseGeneric(d.RemovedIn)
	if err != nil {
		return false
	}
	wanted, err := version.ParseSemantic(kubernetes)
	return err == nil && wanted.AtLeast(removed)
}

func (d DeprecatedAPI) String() string {
	return fmt.Sprintf("%s in %s", d.Resource, cmp.Or(d.Group, "core")+"/"+d.Version)
}

// DeprecatedAPIs are those that were asked for since the API server that answers was started.
func DeprecatedAPIs(ctx context.Context, d state.Dir) ([]DeprecatedAPI, error) {
	config, err := restConfig(d)
	if err != nil {
		return nil, err
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	text, err := api.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	return deprecated(bytes.NewReader(text))
}

// deprecated reads an API server's metrics.
func deprecated(metrics io.Reader) ([]DeprecatedAPI, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	var all []DeprecatedAPI
	for _, m := range families["apiserver_requested_deprecated_apis"].GetMetric() {
		if m.GetGauge().GetValue() == 0 {
			continue
		}
		var found DeprecatedAPI
		for _, l := range m.GetLabel() {
			switch l.GetName() {
			case "group":
				found.Group = l.GetValue()
			case "version":
				found.Version = l.GetValue()
			case "resource":
				found.Resource = l.GetValue()
			case "removed_release":
				found.RemovedIn = l.GetValue()
			}
		}
		all = append(all, found)
	}
	slices.SortFunc(all, func(a, b DeprecatedAPI) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(all), nil
}
