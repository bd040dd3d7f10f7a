// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
)

func TestAPIMetrics(t *testing.T) {
	got, err := readAPIMetrics(strings.NewReader(`# HELP apiserver_requested_deprecated_apis [STABLE] Gauge of deprecated APIs that have been requested
# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="",version="v1"} 1
apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="status",version="v1"} 1
apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.37",resource="flowschemas",subresource="",version="v1beta3"} 1
apiserver_requested_deprecated_apis{group="apps",removed_release="1.16",resource="deployments",subresource="",version="v1beta1"} 0
# TYPE apiserver_storage_objects gauge
apiserver_storage_objects{resource="pods"} 7
apiserver_storage_objects{resource="deployments.apps"} 2
# TYPE apiserver_resource_objects gauge
apiserver_resource_objects{group="storage.k8s.io",resource="volumeattributesclasses"} 3
# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 12.5
`))
	if err != nil {
		t.Fatal(err)
	}
	flow := schema.GroupVersionResource{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta3", Resource: "flowschemas"}
	want := apiMetrics{
		requested: map[schema.GroupVersionResource]string{{Version: "v1", Resource: "endpoints"}: "", flow: "1.37"},
		objects: map[schema.GroupResource]int{
			{Resource: "pods"}: 7, {Group: "apps", Resource: "deployments"}: 2, {Group: "storage.k8s.io", Resource: "volumeattributesclasses"}: 3,
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(apiMetrics{})); diff != "" {
		t.Error(diff)
	}
	for kubernetes, gone := range map[string]bool{"v1.36.3": false, "v1.37.0-rc.1": true, "v1.37.0": true, "v1.38.1": true} {
		if v := version.MustParseSemantic(kubernetes); goneIn("", v) || goneIn("1.37", v) != gone {
			t.Errorf("%s: %v and %v", kubernetes, goneIn("", v), goneIn("1.37", v))
		}
	}
	if _, err := readAPIMetrics(strings.NewReader("this is { no metrics")); err == nil {
		t.Error("what cannot be read must be an error")
	}
}

// TestRemovedIn: Kubernetes' own types say when they go.
func TestRemovedIn(t *testing.T) {
	for kind, want := range map[schema.GroupVersionKind]string{
		{Group: "networking.k8s.io", Version: "v1beta1", Kind: "ServiceCIDR"}: "1.37",
		{Group: "networking.k8s.io", Version: "v1", Kind: "ServiceCIDR"}:      "",
		{Group: "apps", Version: "v1beta1", Kind: "Deployment"}:               "1.16",
		{Group: "example.com", Version: "v1beta1", Kind: "Deployment"}:        "",
	} {
		if got := removedIn(kind); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}
