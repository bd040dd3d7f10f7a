// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hostrun

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// TestLost: the first attempt to reach a host that fails is reported, until the host answers; what fails elsewhere is not the host's.
func TestLost(t *testing.T) {
	var p Progress
	dial := event.Event{
		Type: event.Retrying, Host: "w1", Attempt: 1, Attempts: 6, Delay: 2 * time.Second,
		Err: &host.Error{Kind: host.KindUnreachable, Host: "w1", Message: "no route"},
	}
	if !p.read(dial) || p.Why != host.KindUnreachable ||
		!strings.Contains(p.Lost, "attempt 1 of 6 failed: host w1: no route; again in 2s") {
		t.Errorf("after the first attempt: %+v", p)
	}
	for _, ev := range []event.Event{{Type: event.HostObserved, Host: "w1"},
		{Type: event.Changed, Host: "w1"}, {Type: event.Undone, Host: "w1"}} {
		p.read(dial)
		if p.read(ev); p.Lost != "" || p.Why != "" {
			t.Errorf("after %s: %+v", ev.Type, p)
		}
	}
	p.read(dial)
	if p.read(event.Event{Type: event.Changed}); p.Lost == "" {
		t.Error("what happens on the controller says nothing of the host")
	}
	p = Progress{}
	api := dial
	api.Host, api.Err = "", errors.New("connect to the cluster's API: refused")
	p.read(api)
	failed := dial
	failed.Err = &host.Error{Kind: host.KindCommand, Host: "w1", Message: "exit code 1"}
	if p.read(failed); p.Lost != "" {
		t.Errorf("neither the API nor a command is the way to the host: %+v", p)
	}
}
