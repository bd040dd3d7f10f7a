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

// What took two runs behind a savepoint, because the first was stopped, is rolled back as a whole; what was done before it is not.
func TestSavepointSpansRuns(t *testing.T) {
	m := newMemory("n1")
	m.files = map[string]string{"/node": "", "/p": "0"}
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
	// One that was committed before is of no interest.
	if err := run(t.Context(), strings.ReplaceAll(upgrade, "=2", "=1")); err != nil {
		t.Fatal(err)
	}
	journaled := m.journal["n1/up/grade/begin"]
	delete(m.files, "/run")
	ctx, stop := context.WithCancelCause(t.Context())
	errStop := errors.New("stopped")
	acts := 0
	m.acting = func() {
		if acts++; acts == 2 { // of which the first opens the savepoint
			stop(errStop)
		}
	}
	if err := run(ctx, upgrade); !errors.Is(err, errStop) {
		t.Fatalf("got %v, want it stopped", err)
	}
	if m.files["/p"] != "2" || m.files["/under"] == "" {
		t.Fatalf("the savepoint is not open: %s", m)
	}
	m.acting = nil
	m.journal["n1/up/grade/begin"] = journaled // as if the step had been cut right after it had opened the savepoint
	m.faults = append(m.faults, fault{op: "file /run", times: 1, err: &host.Error{Kind: host.KindCommand, Host: "n1", Message: "asked to fail"}})
	err := run(t.Context(), upgrade)
	if err == nil || !strings.Contains(err.Error(), "Host n1 was rolled back to what it was before the replacement of its programs") {
		t.Fatalf("got %v, want the host rolled back", err)
	}
	want := "/a \"/a\"\n/conf \"/conf\"\n/node \"\"\n/p \"1\"\n4 journaled, 5 to undo\n"
	if got := m.String(); got != want {
		t.Errorf("on the host is\n%swant\n%s", got, want)
	}
}
