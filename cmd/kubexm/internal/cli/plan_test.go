// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestPlanOfSlowHost: a step of which it is not known whether it is so is no change of the plan, and fails it; all else is shown. Of
// hosts that do not answer nothing is known, so nothing is shown.
func TestPlanOfSlowHost(t *testing.T) {
	b := plan.New("CreateCluster", "prod")
	b.Host("w1", plan.Module{Name: "os", Tasks: []plan.Task{{Name: "files", Steps: []step.Step{
		step.New(step.Meta{Name: "a"}, step.File{Path: "/etc/a", Content: step.Literal("a")}),
		step.New(step.Meta{Name: "b"}, step.File{Path: "/etc/b", Content: step.Literal("b")}),
	}}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	report := engine.Report{Checks: []plan.Check{
		{Node: "w1/os/files/a", Unknown: "it cannot be told"},
		{Node: "w1/os/files/b", Diff: step.Diff{{Subject: "file /etc/b", From: "absent", To: "sha256:1"}}},
	}}
	failure := func(kind host.Kind) error {
		return &engine.Error{Failures: []engine.Failure{{Host: "w1", Err: &host.Error{Kind: kind, Host: "w1"}}}}
	}
	for _, tt := range []struct {
		err   error
		shows bool
	}{
		{nil, true},
		{failure(host.KindUndecided), true},
		{failure(host.KindUnreachable), false},
		{&engine.Error{Failures: []engine.Failure{{Err: &host.Error{Kind: host.KindUndecided}}, {Err: errors.New("no")}}}, false},
	} {
		var out bytes.Buffer
		a := &app{}
		a.Out = &out
		if got := a.showFound(p, report, tt.err); !errors.Is(got, tt.err) {
			t.Errorf("%v becomes %v", tt.err, got)
		}
		if got := strings.Contains(out.String(), "1 change on 1 host. 1 step to be decided"); got != tt.shows {
			t.Errorf("%v shows %q", tt.err, out.String())
		}
	}
}
