// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
)

// TestRemovedAPIsStopTheCommand as hosts that are not fit do, in words that say which, by whom and how to go on.
func TestRemovedAPIsStopTheCommand(t *testing.T) {
	err := &removedAPIs{version: "v1.37.0", inUse: []kube.RemovedAPI{
		{
			Group: "networking.k8s.io", Version: "v1beta1", Resource: "servicecidrs", RemovedIn: "1.37", Objects: 2,
			Examples: []string{"more", "other"}, Managers: []string{"helm"},
		},
		{Group: "storage.k8s.io", Version: "v1beta1", Resource: "volumeattributesclasses", RemovedIn: "1.37", Requested: true},
	}}
	const want = `preflight: APIs are in use that v1.37.0 does not serve, nothing was changed:
  servicecidrs in networking.k8s.io/v1beta1, which is not served any more from v1.37 on: 2 objects are written by it, such as more, other (by helm)
  volumeattributesclasses in storage.k8s.io/v1beta1, which is not served any more from v1.37 on: somebody has asked for it since the API server was started
    Remedy: have who uses them use another version; that somebody has asked is forgotten when the API servers are restarted. To go on all the same, give --accept-removed-apis`
	if got := err.Error(); got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	if code := exitCode(t.Context(), err); code != exitPreflight {
		t.Errorf("it exits with %d, want %d", code, exitPreflight)
	}
}
