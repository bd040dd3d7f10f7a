// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"io"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apiMetrics is what an API server's metrics say of the use of its APIs.
type apiMetrics struct {
	// requested are deprecated versions that somebody has asked for, with the version of Kubernetes in which each is removed, "" if
	// that is not known.
	requested map[schema.GroupVersionResource]string
	// objects is how many there are of a resource.
	objects map[schema.GroupResource]int
}

func readAPIMetrics(text io.Reader) (apiMetrics, error) {
	m := apiMetrics{requested: map[schema.GroupVersionResource]string{}, objects: map[schema.GroupResource]int{}}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return m, err
	}
	for _, one := range families["apiserver_requested_deprecated_apis"].GetMetric() {
		if said := labelsOf(one.GetLabel()); one.GetGauge().GetValue() != 0 {
			m.requested[schema.GroupVersionResource{Group: said["group"], Version: said["version"], Resource: said["resource"]}] = said["removed_release"]
		}
	}
	// Until Kubernetes v1.33 the group was a part of the resource.
	for _, one := range families["apiserver_storage_objects"].GetMetric() {
		resource, group, _ := strings.Cut(labelsOf(one.GetLabel())["resource"], ".")
		m.objects[schema.GroupResource{Group: group, Resource: resource}] = int(one.GetGauge().GetValue())
	}
	for _, one := range families["apiserver_resource_objects"].GetMetric() {
		said := labelsOf(one.GetLabel())
		m.objects[schema.GroupResource{Group: said["group"], Resource: said["resource"]}] = int(one.GetGauge().GetValue())
	}
	return m, nil
}

func labelsOf[L interface {
	GetName() string
	GetValue() string
}](pairs []L) map[string]string {
	all := map[string]string{}
	for _, l := range pairs {
		all[l.GetName()] = l.GetValue()
	}
	return all
}
