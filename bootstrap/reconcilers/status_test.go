// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

func testPlan(t *testing.T) *plan.Plan {
	t.Helper()
	b := plan.New("JoinWorker", "prod")
	b.Host("w1", plan.Module{
		Name: "os", Tasks: []plan.Task{{Name: "files", Steps: []step.Step{step.File{Path: "/etc/a", Content: step.Literal("a")}}}},
	})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestShowRun checks the reasons of HostReachable, PreflightPassed, HostConverged, NodeJoined and Ready.
func TestShowRun(t *testing.T) {
	seen := &host.System{Hostname: "w1"}
	counts := func(changed, failed, blocked int) engine.Report {
		return engine.Report{Hosts: []engine.HostReport{{Host: "w1", Counts: engine.Counts{
			Total: changed + failed + blocked, Changed: changed, Failed: failed, Blocked: blocked,
		}}}}
	}
	failure := func(f engine.Failure) error {
		return &engine.Error{Intent: "JoinWorker", Failures: []engine.Failure{f}}
	}
	refused := &host.Error{Kind: host.KindHostKey, Host: "w1", Message: "the host shows another key", Remedy: "compare them"}

	for name, tc := range map[string]struct {
		out  outcome
		want [5]string
		text string // part of the message of HostReady
	}{
		"success": {
			outcome{system: seen, reached: true, plan: testPlan(t), report: counts(3, 0, 0)},
			[5]string{"Reachable", "Passed", "Converged", "Joined", "Ready"}, "",
		},
		"a step failed": {
			outcome{system: seen, reached: true, plan: testPlan(t), report: counts(1, 1, 1), err: failure(engine.Failure{
				Host: "w1", Address: "10.1.0.2", Task: "kubelet", Step: "kubelet/start", Position: 2, Total: 3,
				Err: errors.New("exited 1"), Remedy: "turn swap off",
			})},
			[5]string{"Reachable", "Passed", "StepFailed", "WaitingForNode", "StepFailed"},
			"host w1 (10.1.0.2), task kubelet, step kubelet/start (2 of 3):\n  exited 1\n  Remedy: turn swap off",
		},
		"the Node did not become ready": {
			outcome{
				system: seen, reached: true, plan: testPlan(t), report: counts(3, 0, 0), err: failure(engine.Failure{Err: errors.New("Node w1: NotReady")}),
			},
			[5]string{"Reachable", "Passed", "Converged", "NodeNotReady", "NodeNotReady"}, "Node w1: NotReady",
		},
		"another host key": {
			outcome{err: failure(engine.Failure{Host: "w1", Err: refused, Remedy: refused.Remedy})},
			[5]string{"HostKeyMismatch", "NotStarted", "StepFailed", "WaitingForNode", "HostKeyMismatch"}, "Remedy: compare them",
		},
		"no credentials": {
			outcome{
				err: failure(engine.Failure{Host: "w1", Err: &host.Error{Kind: host.KindAuth, Host: "w1", Err: &noCredentials{message: "the Secret ssh does not exist"}}}),
			},
			[5]string{"CredentialsNotAvailable", "NotStarted", "StepFailed", "WaitingForNode", "CredentialsNotAvailable"}, "the Secret ssh does not exist",
		},
		"preflight failed": {
			outcome{system: seen, reached: true, checked: true, err: errPreflight, problems: []preflight.Problem{
				{Host: "w1", Check: "hardware", Severity: preflight.Error, Cause: "has 1 CPU", Remedy: "give it 2"},
				{Host: "w1", Check: "time", Severity: preflight.Warning, Cause: "no NTP", Remedy: "run chrony"},
			}},
			[5]string{"Reachable", "Failed", "Failed", "NotStarted", "Failed"},
			"Error: w1: hardware: has 1 CPU. Remedy: give it 2\nWarning: w1: time: no NTP. Remedy: run chrony",
		},
		"no plan": {
			outcome{system: seen, reached: true, planFailed: true, err: errors.New("cluster.x: bad")},
			[5]string{"Reachable", "NotStarted", "PlanFailed", "NotStarted", "NotStarted"}, "",
		},
		"stopped": {
			outcome{system: seen, reached: true, plan: testPlan(t), err: &engine.Error{Intent: "JoinWorker", Cause: context.Canceled}},
			[5]string{"Reachable", "Passed", "Converging", "NotStarted", "Converging"}, "interrupted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &bootstrapv1.KubexmConfig{}
			setTrue(c, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DataSecretAvailableReason, "")
			job := &hostrun.State[outcome]{What: converging, Started: time.Now(), Ended: time.Now(), Result: tc.out}
			if err := showRun(c, job, &hostCache{failures: 1}); err != nil {
				t.Fatal(err)
			}
			summarise(c)
			var got [5]string
			for i, kind := range []string{
				bootstrapv1.HostReachableCondition, bootstrapv1.PreflightPassedCondition, bootstrapv1.HostConvergedCondition,
				bootstrapv1.NodeJoinedCondition, bootstrapv1.HostReadyCondition,
			} {
				got[i] = conditions.GetReason(c, kind)
			}
			if got != tc.want {
				t.Errorf("reasons %v, want %v", got, tc.want)
			}
			if !conditions.IsTrue(c, bootstrapv1.ReadyCondition) {
				t.Errorf("Ready is %+v, though the bootstrap data exists", conditions.Get(c, bootstrapv1.ReadyCondition))
			}
			if message := conditions.GetMessage(c, bootstrapv1.HostReadyCondition); !strings.Contains(message, tc.text) {
				t.Errorf("message %q, want %q in it", message, tc.text)
			}
		})
	}
}

// TestReady is whether the bootstrap data exists, whatever becomes of the host: infrastructure begins by it, and a Node that works is
// no worse for an SSH connection that fails.
func TestReady(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*bootstrapv1.KubexmConfig)
		ready  metav1.ConditionStatus
		says   string
	}{
		"nothing was done yet": {func(*bootstrapv1.KubexmConfig) {}, metav1.ConditionUnknown, ""},
		"the data exists": {func(c *bootstrapv1.KubexmConfig) {
			setTrue(c, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DataSecretAvailableReason, "")
		}, metav1.ConditionTrue, ""},
		"the data could not be written": {func(c *bootstrapv1.KubexmConfig) {
			setFalse(c, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DataSecretNotAvailableReason, "refused")
		}, metav1.ConditionFalse, "refused"},
		"what is declared cannot be": {func(c *bootstrapv1.KubexmConfig) {
			setTrue(c, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DataSecretAvailableReason, "")
			setFalse(c, bootstrapv1.HostConvergedCondition, bootstrapv1.InvalidReason, "target.node.kubelet: bad")
		}, metav1.ConditionFalse, "target.node.kubelet: bad"},
		"another declaration of a Node cannot be": {func(c *bootstrapv1.KubexmConfig) {
			c.Status.PlanDigest = "sha256:1"
			setTrue(c, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DataSecretAvailableReason, "")
			setFalse(c, bootstrapv1.HostConvergedCondition, bootstrapv1.InvalidReason, "target.node.kubelet: bad")
		}, metav1.ConditionTrue, ""},
		"the host is being reset": {func(c *bootstrapv1.KubexmConfig) {
			setTrue(c, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DataSecretAvailableReason, "")
			setFalse(c, bootstrapv1.HostResetCondition, bootstrapv1.ResettingReason, "")
		}, metav1.ConditionTrue, ""},
		"a host without a Machine is not reached": {func(c *bootstrapv1.KubexmConfig) {
			c.Spec.HostRef.Name = "etcd1"
			setFalse(c, bootstrapv1.HostReachableCondition, bootstrapv1.UnreachableReason, "no route")
		}, metav1.ConditionFalse, "no route"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &bootstrapv1.KubexmConfig{}
			tc.change(c)
			summarise(c)
			got := conditions.Get(c, bootstrapv1.ReadyCondition)
			if got.Status != tc.ready || !strings.Contains(got.Message, tc.says) {
				t.Errorf("Ready is %s %q, want %s %q", got.Status, got.Message, tc.ready, tc.says)
			}
			if conditions.IsTrue(c, bootstrapv1.HostReadyCondition) {
				t.Error("the host is said to be ready, of which nothing is known")
			}
		})
	}
}

// TestHostsAreNotReachedInMemory: what is remembered of a host says nothing of whether it answers, and a run that was stopped while it
// was dialled does not either. Who believed it would be sent to a host that is gone.
func TestHostsAreNotReachedInMemory(t *testing.T) {
	c := &bootstrapv1.KubexmConfig{}
	refused := &host.Error{Kind: host.KindUnreachable, Host: "w1", Message: "cannot connect"}
	out := outcome{system: &host.System{}, plan: testPlan(t), err: &engine.Error{Failures: []engine.Failure{{Host: "w1", Err: refused}}}}
	setReachability(c, &out)
	if hosthealth.Answers(c) {
		t.Fatal("a host that cannot be connected to answers")
	}
	out.err = &engine.Error{Intent: "JoinWorker", Cause: context.Canceled}
	setReachability(c, &out)
	if hosthealth.Answers(c) || contactOf(&out) != nil {
		t.Error("a host whose run was stopped before it was reached answers")
	}
	out.reached = true
	setReachability(c, &out)
	if !hosthealth.Answers(c) || contactOf(&out) == nil {
		t.Error("a host that was reached does not answer")
	}
}

func TestShowLook(t *testing.T) {
	p := testPlan(t)
	drifted := outcome{system: &host.System{}, plan: p, report: engine.Report{
		Hosts: []engine.HostReport{{Host: "w1", Counts: engine.Counts{Total: 1, Changed: 1}}},
		Checks: []plan.Check{{
			Node: "w1/os/files/file", Diff: step.Diff{{Subject: "file /etc/a", From: "1234", To: "5678"}},
			Lines: map[string]string{"file /etc/a": "@@ -1 +1 @@\n-a\n+b"},
		}},
	}}
	c := &bootstrapv1.KubexmConfig{}
	want := "1 of 1 steps differ:\nw1/os/files/file: file /etc/a: found 1234, expected 5678"
	for _, fresh := range []string{want, ""} { // what was said before is no news
		same, news, err := showDriftCheck(c, &hostrun.State[outcome]{What: looking, Result: drifted}, spec.DriftRepair)
		if err != nil || same || news != fresh {
			t.Fatalf("same %v, news %q, error %v", same, news, err)
		}
		c.Generation++
	}
	if got := conditions.Get(c, bootstrapv1.HostConvergedCondition); got.Reason != bootstrapv1.DriftedReason || got.Message != want {
		t.Errorf("%s %q, want Drifted %q", got.Reason, got.Message, want)
	}
	shown := []bootstrapv1.DriftStatus{{Step: "os/files/file", Resource: "file /etc/a", Found: "1234", Expected: "5678", Diff: "@@ -1 +1 @@\n-a\n+b"}}
	if diff := cmp.Diff(shown, c.Status.Drift); diff != "" {
		t.Errorf("drift (-want +got):\n%s", diff)
	}
	// Where it is only reported, it says how to have it repaired.
	same, news, err := showDriftCheck(c, &hostrun.State[outcome]{What: looking, Result: drifted}, spec.DriftReport)
	if err != nil || same || news == "" {
		t.Fatalf("same %v, news %q, error %v", same, news, err)
	}
	if got := conditions.GetMessage(c, bootstrapv1.HostConvergedCondition); !strings.HasPrefix(got, want+"\nThis is reported, and not repaired") ||
		!strings.Contains(got, bootstrapv1.ConvergeAnnotation) {
		t.Errorf("it says %q", got)
	}
	setFalse(c, bootstrapv1.HostConvergedCondition, bootstrapv1.DriftedReason, want)
	// The repair does not hide what it repairs.
	showProgress(c, &hostrun.State[outcome]{What: converging, Started: time.Now(), Progress: hostrun.Progress{Total: 1}})
	if got := conditions.Get(c, bootstrapv1.HostConvergedCondition); got.Message != want {
		t.Errorf("during the repair: %q", got.Message)
	}
	if len(c.Status.Drift) != 1 {
		t.Errorf("during the repair: %v", c.Status.Drift)
	}
	repaired := outcome{
		system: &host.System{}, plan: p, report: engine.Report{Hosts: []engine.HostReport{
			{Host: "w1", Counts: engine.Counts{Total: 1, Changed: 1}},
		}},
	}
	if err := showRun(c, &hostrun.State[outcome]{What: converging, Result: repaired}, &hostCache{}); err != nil || c.Status.Drift != nil {
		t.Errorf("after the repair: %v (%v)", c.Status.Drift, err)
	}
}

// TestWhyItFailedIsKept: while a run goes on after one that has failed, its host says why; one that follows a success says nothing yet.
func TestWhyItFailedIsKept(t *testing.T) {
	for failures, want := range map[int32]string{0: "", 1: "why"} {
		c := &bootstrapv1.KubexmConfig{}
		last := c.Status.OperationFor(bootstrapv1.ConvergeOperation)
		last.Failures, last.Message = ptr.To(failures), "why"
		showProgress(c, &hostrun.State[outcome]{What: converging, Started: time.Now()})
		if got := c.Status.Operation(bootstrapv1.ConvergeOperation).Message; got != want {
			t.Errorf("after %d failures: %q, want %q", failures, got, want)
		}
	}
}

// TestFailuresOutliveARun: how often runs have failed and were rolled back is known to the next process, also where another run goes on, or
// was cut; and for what they have.
func TestFailuresOutliveARun(t *testing.T) {
	for input, want := range map[string]hostCache{"a": {input: "a", failures: 2, restored: 2}, "b": {}} {
		for _, runs := range []string{"a", "b"} {
			c, m := &bootstrapv1.KubexmConfig{}, &hostCache{input: "a", failures: 2, restored: 2}
			failed := outcome{input: "a", err: errors.New("exited 1")}
			if err := showRun(c, &hostrun.State[outcome]{What: converging, Ended: time.Now(), Result: failed}, m); err != nil {
				t.Fatal(err)
			}
			showProgress(c, &hostrun.State[outcome]{What: converging, Started: time.Now()})
			if got := fromStatus(&c.Status, input, spec.DriftRepair); got != want {
				t.Errorf("while %s is run, of %s is known %+v, want %+v", runs, input, got, want)
			}
			cut := outcome{input: runs, err: &engine.Error{Cause: hostrun.ErrStopped}}
			if err := showRun(c, &hostrun.State[outcome]{What: converging, Result: cut}, m); err != nil {
				t.Fatal(err)
			}
			if got := fromStatus(&c.Status, input, spec.DriftRepair); got != want {
				t.Errorf("when the run of %s was cut, of %s is known %+v, want %+v", runs, input, got, want)
			}
		}
	}
}

// TestDriftIsBounded: what a host has changed, and how it calls things, fits into an object.
func TestDriftIsBounded(t *testing.T) {
	check := plan.Check{Node: "w1/os/files/file", Lines: map[string]string{}}
	for i := range 100 {
		subject := fmt.Sprintf("file /%d/%s", i, strings.Repeat("é", 1000))
		check.Diff = append(check.Diff, step.Delta{Subject: subject, From: strings.Repeat("a\n", 1000), To: "\x1b[2Jb"})
		check.Lines[subject] = strings.Repeat("+ä\n", 10000)
	}
	all := driftOf(testPlan(t), []plan.Check{check, {Node: "controller/m/t/s", Diff: step.Diff{{Subject: "x"}}}})
	if len(all) != 16 {
		t.Fatalf("%d differences are shown", len(all))
	}
	for _, d := range all {
		if len(d.Resource) > 512 || len(d.Found) > 512 || len(d.Diff) > 4096 || d.Expected != "[2Jb" {
			t.Errorf("%d %d %d %q", len(d.Resource), len(d.Found), len(d.Diff), d.Expected)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	c := &bootstrapv1.KubexmConfig{}
	setFalse(c, bootstrapv1.HostConvergedCondition, bootstrapv1.StepFailedReason, strings.Repeat("ä", 40_000))
	if n := len(conditions.GetMessage(c, bootstrapv1.HostConvergedCondition)); n > 32768 {
		t.Errorf("%d bytes, more than the API takes", n)
	}
	if conditions.Get(c, bootstrapv1.HostConvergedCondition).Status != metav1.ConditionFalse {
		t.Error("the condition is not set")
	}
}

// TestKubernetesVersion checks that the version is reported which the host has, not the one that it is on its way to.
func TestKubernetesVersion(t *testing.T) {
	c := &bootstrapv1.KubexmConfig{}
	run := func(version string, r engine.Report, err error) {
		t.Helper()
		out := outcome{version: version, system: &host.System{}, plan: testPlan(t), report: r, err: err}
		if err := showRun(c, &hostrun.State[outcome]{What: converging, Result: out}, &hostCache{failures: 1}); err != nil {
			t.Fatal(err)
		}
	}
	run("v1.35.4", engine.Report{Hosts: []engine.HostReport{{Host: "w1", Counts: engine.Counts{Total: 1, Changed: 1}}}}, nil)
	if got := c.Status.KubernetesVersion; got != "v1.35.4" {
		t.Fatalf("the version is %q", got)
	}
	failed := &engine.Error{Intent: "JoinWorker", Failures: []engine.Failure{{Host: "w1", Err: errors.New("exited 1"), Left: "Host w1 was rolled back."}}}
	run("v1.36.3", engine.Report{Hosts: []engine.HostReport{{Host: "w1", Counts: engine.Counts{Total: 1, Failed: 1}, Restored: 7}}}, failed)
	if got := c.Status.KubernetesVersion; got != "v1.35.4" {
		t.Errorf("after an upgrade that was undone the version is %q", got)
	}
	message := conditions.GetMessage(c, bootstrapv1.HostConvergedCondition)
	if !strings.HasSuffix(message, "Host w1 was rolled back.\nNext attempt in 5s.") {
		t.Errorf("the message is %q", message)
	}
	out := outcome{version: "v1.36.3", input: "i", system: &host.System{}, plan: testPlan(t), err: failed, report: engine.Report{
		Hosts: []engine.HostReport{{Host: "w1", Counts: engine.Counts{Total: 1, Failed: 1}, Restored: 7}},
	}}
	c.Namespace, c.Name = "fleet", "w1"
	if err := showRun(c, &hostrun.State[outcome]{What: converging, Result: out}, &hostCache{failures: 3, restored: 3}); err != nil {
		t.Fatal(err)
	}
	if got := conditions.GetReason(c, bootstrapv1.HostConvergedCondition); got != bootstrapv1.RetriesExhaustedReason {
		t.Errorf("after the third time the reason is %s", got)
	}
	for _, want := range []string{"exited 1", "rolled back 3 times", "kubectl annotate kubexmconfig -n fleet w1 bootstrap.cluster.x-k8s.io/converge="} {
		if message := conditions.GetMessage(c, bootstrapv1.HostConvergedCondition); !strings.Contains(message, want) {
			t.Errorf("the message does not say %q: %s", want, message)
		}
	}
	if last := c.Status.Operation(bootstrapv1.ConvergeOperation); *last.Restored != 3 || last.InputDigest != "i" {
		t.Errorf("the next manager is told %+v", last)
	}
	look := outcome{version: "v1.36.3", system: &host.System{}, plan: testPlan(t)}
	if _, _, err := showDriftCheck(c, &hostrun.State[outcome]{What: looking, Result: look}, spec.DriftRepair); err != nil ||
		c.Status.KubernetesVersion != "v1.36.3" {
		t.Errorf("a look that finds the host so: %v, and the version is %q", err, c.Status.KubernetesVersion)
	}
}
