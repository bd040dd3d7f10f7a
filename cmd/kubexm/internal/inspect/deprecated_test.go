// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDeprecated(t *testing.T) {
	got, err := deprecated(strings.NewReader(`# HELP apiserver_requested_deprecated_apis [STABLE] Gauge of deprecated APIs that have been requested
# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="",version="v1"} 1
apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="status",version="v1"} 1
apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.37",resource="flowschemas",subresource="",version="v1beta3"} 1
apiserver_requested_deprecated_apis{group="apps",removed_release="1.16",resource="deployments",subresource="",version="v1beta1"} 0
# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 12.5
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []DeprecatedAPI{
		{Version: "v1", Resource: "endpoints"},
		{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta3", Resource: "flowschemas", RemovedIn: "1.37"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if text := got[0].String() + ", " + got[1].String(); text != "endpoints in core/v1, flowschemas in flowcontrol.apiserver.k8s.io/v1beta3" {
		t.Error(text)
	}
	for kubernetes, gone := range map[string]bool{"v1.36.3": false, "v1.37.0": true, "v1.38.1": true} {
		if got[0].GoneIn(kubernetes) || got[1].GoneIn(kubernetes) != gone {
			t.Errorf("%s: %v and %v", kubernetes, got[0].GoneIn(kubernetes), got[1].GoneIn(kubernetes))
		}
	}
	if _, err := deprecated(strings.NewReader("this is { no metrics")); err == nil {
		t.Error("what cannot be read must be an error")
	}
}
