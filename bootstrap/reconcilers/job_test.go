// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"runtime"
	"testing"
	"weak"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// What is remembered of each host for as long as it is ours does not keep all that was seen of it.
func TestSystemDoesNotKeepFacts(t *testing.T) {
	seen := func() (*host.System, weak.Pointer[host.Facts]) {
		facts := &host.Facts{System: host.System{Hostname: "cp-1"}, Paths: map[string]host.Path{"/etc/large": {Content: make([]byte, 1<<16)}}}
		return systemIn(engine.Report{Hosts: []engine.HostReport{{Facts: facts}}}), weak.Make(facts)
	}
	system, facts := seen()
	runtime.GC()
	if facts.Value() != nil {
		t.Error("the facts are kept")
	}
	if system.Hostname != "cp-1" {
		t.Errorf("%+v", system)
	}
}
