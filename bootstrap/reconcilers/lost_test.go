// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestFirstFailedAttemptIsShown: a run dials a host several times before it gives up. That the host cannot be reached is known, and
// said, after the first.
func TestFirstFailedAttemptIsShown(t *testing.T) {
	for kind, reason := range map[host.Kind]string{
		host.KindUnreachable: bootstrapv1.UnreachableReason, host.KindNoAnswer: bootstrapv1.NotAnsweringReason,
	} {
		c := &bootstrapv1.KubexmConfig{}
		setTrue(c, bootstrapv1.HostReachableCondition, bootstrapv1.HostReachableReason, "")
		p := hostrun.Progress{Total: 5, Lost: "attempt 1 of 6 failed: no route", Why: kind}
		showProgress(c, &hostrun.State[outcome]{What: converging, Started: time.Now(), Progress: p})
		got := conditions.Get(c, bootstrapv1.HostReachableCondition)
		if hosthealth.Answers(c) || got.Reason != reason || got.Message != p.Lost {
			t.Errorf("%s: %s %s %q", kind, got.Status, got.Reason, got.Message)
		}
		p.Lost, p.Why = "", ""
		showProgress(c, &hostrun.State[outcome]{What: converging, Started: time.Now(), Progress: p})
		if !hosthealth.Answers(c) {
			t.Errorf("%s: the host has answered again", kind)
		}
	}
}

// TestHostThatAnswersNothing: that a host does not answer to an observation, or answers too much, is what its condition says.
func TestHostThatAnswersNothing(t *testing.T) {
	for kind, reason := range map[host.Kind]string{
		host.KindNoAnswer: bootstrapv1.NotAnsweringReason, host.KindProtocol: bootstrapv1.AnswerRefusedReason,
	} {
		c := &bootstrapv1.KubexmConfig{}
		cause := &host.Error{Kind: kind, Host: "w1", Message: "does not answer to an observation"}
		out := outcome{err: &engine.Error{Failures: []engine.Failure{{Host: "w1", Err: cause}}}}
		setReachability(c, &out)
		if got := conditions.Get(c, bootstrapv1.HostReachableCondition); got.Reason != reason ||
			!strings.Contains(got.Message, cause.Message) {
			t.Errorf("%s: %s %q", kind, got.Reason, got.Message)
		}
		if contactOf(&out) == nil {
			t.Errorf("%s: the infrastructure is not told", kind)
		}
	}
}

// TestLookWithoutAPI: a look that fails only at the cluster's API says nothing of the host.
func TestLookWithoutAPI(t *testing.T) {
	p := testPlan(t)
	look := func(check plan.Check) (*bootstrapv1.KubexmConfig, bool) {
		c := &bootstrapv1.KubexmConfig{}
		setFalse(c, bootstrapv1.HostConvergedCondition, bootstrapv1.DriftedReason, "what it was before")
		setTrue(c, bootstrapv1.NodeJoinedCondition, bootstrapv1.NodeJoinedReason, "")
		same, news, err := showDriftCheck(c, &hostrun.State[outcome]{What: looking, Result: outcome{
			system: &host.System{}, reached: true, plan: p, report: engine.Report{
				Controller: engine.Counts{Total: 1, Changed: 1},
				Hosts:      []engine.HostReport{{Host: "w1", Counts: engine.Counts{Total: 1, Skipped: 1}}},
				Checks:     []plan.Check{check},
			},
		}}, spec.DriftRepair)
		if err != nil || news != "" {
			t.Fatal(news, err)
		}
		if !conditions.IsTrue(c, bootstrapv1.HostConvergedCondition) || !hosthealth.Answers(c) {
			t.Errorf("%v is the host's: %s", check, conditions.GetMessage(c, bootstrapv1.HostConvergedCondition))
		}
		return c, same
	}
	c, same := look(plan.Check{Node: "gate", Unknown: "connect to the cluster's API: connection refused"})
	if !same || !conditions.IsTrue(c, bootstrapv1.NodeJoinedCondition) {
		t.Errorf("an API that does not answer: same %v, %s", same, conditions.GetMessage(c, bootstrapv1.NodeJoinedCondition))
	}
	c, same = look(plan.Check{Node: "gate", Diff: step.Diff{{Subject: "Node w1", From: "NotReady", To: "Ready"}}})
	if same || conditions.GetReason(c, bootstrapv1.NodeJoinedCondition) != bootstrapv1.NodeNotReadyReason {
		t.Errorf("a Node that is not ready: same %v", same)
	}
}

// TestWorstCertificates: the paths are what the host says.
func TestWorstCertificates(t *testing.T) {
	all := certificatesOf([]certificate.File{
		{Path: "/" + strings.Repeat("\x1bé", 2000), Message: strings.Repeat("\xff", 5000)}, {Path: "\x00", Message: "x"},
	}, nil)
	if len(all) != 1 || len(all[0].Path) > 512 || len(all[0].Message) > 1024 || strings.ContainsRune(all[0].Path, '\x1b') {
		t.Errorf("%d certificates: %.200q", len(all), all)
	}
}
