// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
)

// Whatever components say of what they run is known where logs are collected.
func TestServices(t *testing.T) {
	const want = "containerd.service crio.service haproxy.service keepalived.service nginx.service"
	if got := strings.Join(pipeline.Services(), " "); got != want {
		t.Errorf("the services are %q, want %q", got, want)
	}
}
