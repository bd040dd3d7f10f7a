// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// A changeover that took two runs, because the first was stopped, is undone as a whole; a run before it is not.
func TestChangeoverIsUndoneOverRuns(t *testing.T) {
	m := newMemory("n1")
	m.files = map[string]string{"/node": "", "/p": "1"}
	hosts, c, events, runs := map[string]*memory{"n1": m}, &cluster{}, &told{}, 0
	o := options(hosts, c, events)
	o.NewID = func() string { runs++; return fmt.Sprint("run-", runs) }
	run := func(ctx context.Context, text string) error {
		t.Helper()
		p, err := parsePlan(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.New(o).Run(ctx, p)
		return err
	}
	if err := run(t.Context(), "n1 os/task: /a"); err != nil {
		t.Fatal(err)
	}
	const upgrade = `
		gate cluster/drain: drain:n1>drained
		gate cluster/verify: api<installed>verified
		n1 up/grade: begin:/p=2<drained
		n1 up/date: /p=2 /conf /run>installed
		n1 up/done: end<verified>upgraded`
	ctx, stop := context.WithCancelCause(t.Context())
	errStop := errors.New("stopped")
	acts := 0
	m.acting = func() {
		if acts++; acts == 2 { // of which the first begins the changeover
			stop(errStop)
		}
	}
	if err := run(ctx, upgrade); !errors.Is(err, errStop) {
		t.Fatalf("got %v, want it stopped", err)
	}
	if m.files["/p"] != "2" || m.files["/under"] == "" {
		t.Fatalf("the changeover is not half way: %s", m)
	}
	m.acting = nil
	m.faults = append(m.faults, fault{op: "file /run", times: 1, err: &host.Error{Kind: host.KindCommand, Host: "n1", Message: "asked to fail"}})
	err := run(t.Context(), upgrade)
	if err == nil || !strings.Contains(err.Error(), "Host n1 was put back to what it was before its programs were replaced") {
		t.Fatalf("got %v, want the host put back", err)
	}
	want := "/a \"/a\"\n/node \"\"\n/p \"1\"\n1 journaled, 1 to undo\n"
	if got := m.String(); got != want {
		t.Errorf("on the host is\n%swant\n%s", got, want)
	}
}
