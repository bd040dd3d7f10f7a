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

// What has no way back stays when it was done by the run before, which was stopped right after it.
func TestStaysSpansRuns(t *testing.T) {
	m := newMemory("n1")
	m.files = map[string]string{"/node": "", "/p": "0"}
	o, runs := options(map[string]*memory{"n1": m}, &cluster{}, &told{}), 0
	o.NewID = func() string { runs++; return fmt.Sprint("run-", runs) }
	run := func(ctx context.Context, version string) error {
		t.Helper()
		p, err := parsePlan(strings.ReplaceAll(`
			n1 up/grade: begin:/p=N
			n1 data/data: /bin=N /data=N!data
			n1 up/date: /p=N
			n1 up/done: end>upgraded`, "N", version))
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.New(o).Run(ctx, p)
		return err
	}
	if err := run(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	errStop := errors.New("stopped")
	m.faults = append(m.faults, fault{op: "file /p", times: 9, err: &host.Error{Kind: host.KindUnreachable, Host: "n1", Message: "asked to fail"}})
	m.acting = func() {
		if m.files["/data"] == "2" {
			stop(errStop)
		}
	}
	if err := run(ctx, "2"); !errors.Is(err, errStop) {
		t.Fatalf("got %v, want it stopped", err)
	}
	if m.files["/data"] != "2" || m.files["/under"] == "" {
		t.Fatalf("the savepoint is not open, or nothing was done behind it: %s", m)
	}
	m.acting, m.faults = nil, []fault{{op: "file /p", times: 1, err: &host.Error{Kind: host.KindCommand, Host: "n1", Message: "asked to fail"}}}
	err := run(t.Context(), "2")
	if err == nil || !strings.Contains(err.Error(), "What has no way back stays: data.") {
		t.Errorf("got %v, want it said that data stays", err)
	}
	if m.files["/data"] != "2" || m.files["/bin"] != "2" || m.files["/p"] != "1" || m.files["/under"] != "" {
		t.Errorf("on the host is\n%s", m)
	}
}
