// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/node"
)

func TestAdmit(t *testing.T) {
	saturday := time.Date(2026, 11, 21, 21, 0, 0, 0, time.UTC)
	approval := &spec.Disruption{Approval: spec.ApprovalRequired}
	window := &spec.Disruption{MaintenanceWindows: []spec.MaintenanceWindow{{Start: "0 22 * * SAT", DurationMinutes: 60}}}
	restart := []act{{Node: "n1/a/b/kubelet/service", Digest: "d", Step: "kubelet/service", Disrupts: "restarts kubelet"}}
	digest := (&weight{acts: restart}).digest()
	seen := func(ago time.Duration, change ...func(*weight)) hostCache {
		w := &weight{input: "a", at: saturday.Add(-ago), acts: restart}
		for _, c := range change {
			c(w)
		}
		return hostCache{weight: w}
	}
	follows := func(w *weight) { w.follows = true }
	followed := func(m hostCache, times int32, at time.Time) hostCache {
		m.follows, m.followed = times, at
		return m
	}
	queued := &hold{reason: bootstrapv1.WaitingForPoolReason}
	taking := func(queued *hold) restriction {
		return restriction{policy: &spec.Disruption{}, installed: true, turns: true, queued: queued}
	}
	for name, tc := range map[string]struct {
		cache       hostCache
		restriction restriction
		at          time.Duration
		want        need
		waits       bool
	}{
		"who has no policy and repairs does not wait": {restriction: restriction{policy: &spec.Disruption{}, installed: true}, want: need{act: converges}},
		"nor does a first installation that goes on":  {restriction: restriction{policy: approval, known: true}, want: need{act: converges}},
		"of a host in use it is found out what it is": {restriction: restriction{policy: approval, installed: true}, want: need{act: weighs}},
		"and of one of which nothing is known":        {restriction: restriction{policy: approval}, want: need{act: weighs}},
		"that is new, it turns out":                   {cache: seen(0), restriction: restriction{policy: approval}, want: need{act: converges}},
		"that is a Node, it turns out": {cache: seen(0, func(w *weight) { w.inUse = true }),
			restriction: restriction{policy: approval}, want: need{act: rest, after: 10 * time.Minute}, waits: true},
		"what disrupts nothing does not wait": {cache: seen(0, func(w *weight) { w.acts = nil }),
			restriction: restriction{policy: approval, installed: true}, want: need{act: converges}},
		"what was observed for another input is not": {cache: seen(0, func(w *weight) { w.input = "b" }),
			restriction: restriction{policy: approval, installed: true}, want: need{act: weighs}},
		"it waits for approval": {cache: seen(time.Minute),
			restriction: restriction{policy: approval, installed: true}, want: need{act: rest, after: 9 * time.Minute}, waits: true},
		"another approval is none": {cache: seen(time.Minute),
			restriction: restriction{policy: approval, approved: "0123456789abcdef", installed: true},
			want:        need{act: rest, after: 9 * time.Minute}, waits: true},
		"what is shown is kept up to date": {cache: seen(10 * time.Minute),
			restriction: restriction{policy: approval, installed: true}, want: need{act: weighs}, waits: true},
		"what was agreed to is run": {cache: seen(time.Second),
			restriction: restriction{policy: approval, approved: digest, installed: true}, want: need{act: converges}},
		"if it is that still": {cache: seen(time.Minute),
			restriction: restriction{policy: approval, approved: digest, installed: true}, want: need{act: weighs}},
		"it waits for the window, to the second": {cache: seen(-54 * time.Minute),
			restriction: restriction{policy: window, installed: true}, at: 55 * time.Minute,
			want: need{act: rest, after: 5 * time.Minute}, waits: true},
		"in the window it is observed once more": {cache: seen(0), restriction: restriction{policy: window, installed: true}, at: time.Hour, want: need{act: weighs}},
		"and run": {cache: seen(-time.Hour),
			restriction: restriction{policy: window, installed: true}, at: time.Hour, want: need{act: converges}},
		"not after its end": {cache: seen(-2 * time.Hour), restriction: restriction{policy: window, installed: true},
			at: 2 * time.Hour, want: need{act: rest, after: 10 * time.Minute}, waits: true},
		"while it waits, the host keeps up with the others": {
			cache: seen(0, follows), restriction: restriction{policy: approval, installed: true}, want: need{act: catchUp}, waits: true,
		},
		"not again and again at once, where that does not help": {
			cache: followed(seen(0, follows), 2, saturday.Add(-time.Second)), restriction: restriction{policy: approval, installed: true},
			want: need{act: rest, after: 9 * time.Second}, waits: true,
		},
		"but again": {
			cache: followed(seen(0, follows), 2, saturday.Add(-time.Minute)), restriction: restriction{policy: approval, installed: true},
			want: need{act: catchUp}, waits: true,
		},
		"what does not wait is run as a whole": {
			cache: seen(0, follows), restriction: restriction{policy: approval, approved: digest, installed: true},
			want: need{act: converges},
		},
		"but what has begun is finished": {cache: hostCache{begun: "a"},
			restriction: restriction{policy: window, installed: true}, at: 2 * time.Hour, want: need{act: converges}},
		"also when the process that began it has died": {cache: seen(0, func(w *weight) { w.open = true }),
			restriction: restriction{policy: window, installed: true}, want: need{act: converges}},
		"without a policy, too, it is found out what would be disrupted": {restriction: taking(nil), want: need{act: weighs}},
		"what disrupts nothing takes no turn": {
			cache: seen(0, func(w *weight) { w.acts = nil }), restriction: taking(queued), want: need{act: converges},
		},
		"what disrupts takes one":              {cache: seen(0), restriction: taking(nil), want: need{act: converges, turn: true}},
		"before it looks again, if need be":    {cache: seen(time.Minute), restriction: taking(nil), want: need{act: weighs, turn: true}},
		"and waits for it":                     {cache: seen(0), restriction: taking(queued), want: need{act: rest, after: askAgain}, waits: true},
		"keeping up with the others meanwhile": {cache: seen(0, follows), restriction: taking(queued), want: need{act: catchUp}, waits: true},
		"a host whose programs are being replaced does not wait": {
			cache: seen(0, func(w *weight) { w.open = true }), restriction: taking(queued), want: need{act: converges, turn: true},
		},
		"nor one that has begun":       {cache: hostCache{begun: "a"}, restriction: taking(queued), want: need{act: converges}},
		"nor one that is not used yet": {cache: seen(0), restriction: restriction{policy: &spec.Disruption{}, turns: true, queued: queued}, want: need{act: converges}},
		"an approval comes before a turn": {
			cache: seen(0), restriction: restriction{policy: approval, installed: true, turns: true, queued: queued},
			want: need{act: rest, after: 10 * time.Minute}, waits: true,
		},
		"something else has not begun": {cache: hostCache{begun: "b"}, restriction: restriction{policy: window, installed: true}, want: need{act: weighs}},
	} {
		t.Run(name, func(t *testing.T) {
			got, wait := tc.cache.admit(tc.restriction, "a", saturday.Add(tc.at), 10*time.Minute)
			if got != tc.want || (wait != nil) != tc.waits {
				t.Errorf("got %+v, %v; want %+v, waits: %t", got, wait, tc.want, tc.waits)
			}
		})
	}
}

// TestWeigh finds what a run would disrupt: of what differs, not what is only observed, nor what keeps a host in step with the others.
func TestWeigh(t *testing.T) {
	b := plan.New("JoinWorker", "prod")
	file := func(name, disrupts string, follows step.Follows) step.Step {
		return step.New(step.Meta{Name: name, Disrupts: disrupts, Follows: follows}, step.File{Path: "/etc/" + name, Content: step.Literal("a")})
	}
	b.Host("w1", plan.Module{Name: "m", Tasks: []plan.Task{{Name: "t", Steps: []step.Step{
		step.New(step.Meta{Name: "upgrade/begin", Disrupts: "drains the Node"}, step.Savepoint{InUse: "/node", Dir: "/under"}),
		step.New(step.Meta{Name: "upgrade/end"}, step.Commit{Dir: "/under"}),
		file("same/service", "restarts same", ""), file("kubelet/service", "restarts kubelet", ""), file("node/labels", "", ""),
		file("haproxy/pod", "restarts haproxy", step.FollowsAlways), file("runtime/images", "", step.FollowsOthers),
	}}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	out := &outcome{input: "i", plan: p}
	for _, name := range []string{"upgrade/begin", "kubelet/service", "node/labels", "runtime/images"} {
		out.report.Checks = append(out.report.Checks, plan.Check{Node: "w1/m/t/" + name})
	}
	if w := weigh(out, time.Time{}); w.follows {
		t.Error("it is to keep up with others, though nothing of that differs")
	}
	out.report.Checks = nil
	for _, name := range []string{"upgrade/begin", "kubelet/service", "node/labels", "haproxy/pod"} {
		out.report.Checks = append(out.report.Checks, plan.Check{Node: "w1/m/t/" + name})
	}
	for _, under := range []bool{false, true} {
		out.report.Hosts = []engine.HostReport{
			{Host: "w1", Facts: &host.Facts{Paths: map[string]host.Path{"/node": {Exists: true}, "/under": {Exists: under}}}},
		}
		w := weigh(out, time.Time{})
		if !w.follows {
			t.Error("it is not to keep up with others, though its load balancer differs")
		}
		if !w.inUse || w.open != under {
			t.Errorf("in use %t, open %t", w.inUse, w.open)
		}
		if len(w.acts) != 2 || w.acts[0].Disrupts != "drains the Node" || w.acts[1].Step != "kubelet/service" {
			t.Errorf("it would disrupt by %+v", w.acts)
		}
	}
	w := weigh(out, time.Time{})
	before := w.digest()
	w.acts[1].Digest = "other"
	if w.digest() == before {
		t.Error("the same step with other content has the same digest")
	}
}

// heldNode is a cluster whose Node is held by a drain, or is not.
type heldNode struct {
	step.Cluster
	held bool
}

func (c heldNode) NodeInMaintenance(context.Context, string) (bool, error) { return c.held, nil }

// TestWeighDrained: a host has begun whose Node was drained by a run that is gone, although no savepoint was opened there yet. It does not
// wait, drained, for the next window, nor for other hosts.
func TestWeighDrained(t *testing.T) {
	drained, upgraded := graph.Output[string]{Name: "drained/w1"}, graph.Output[string]{Name: "upgraded/w1"}
	b := plan.New("JoinWorker", "prod")
	b.Gate(plan.Module{Name: "n", Tasks: []plan.Task{
		{Name: "drain", Steps: []step.Step{node.Drain("w1", drained)}},
		{Name: "ready", Steps: []step.Step{node.Uncordon("w1", nil, upgraded)}},
	}})
	b.Host("w1", plan.Module{Name: "m", Tasks: []plan.Task{{Name: "t", Steps: []step.Step{
		step.New(step.Meta{Name: "upgrade/begin", Disrupts: "drains the Node", Takes: []string{drained.Name}}, step.Savepoint{
			InUse: "/node", Dir: "/under", Replaces: []step.Content{{Path: "/kubelet", Digest: "sha256:new"}},
		}),
		step.New(step.Meta{Name: "upgrade/end", Makes: []string{upgraded.Name}}, step.Commit{Dir: "/under"}),
	}}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	m := fake.New("w1")
	m.Put("/node", "", 0o600)
	m.Put("/kubelet", "old", 0o755)
	closed := restriction{
		policy:    &spec.Disruption{Approval: spec.ApprovalRequired},
		installed: true, turns: true, queued: &hold{reason: bootstrapv1.WaitingForPoolReason},
	}
	now := time.Date(2026, 11, 21, 21, 0, 0, 0, time.UTC)
	for _, held := range []bool{false, true} {
		e := engine.New(engine.Options{
			Dial:    func(context.Context, string) (host.Host, error) { return m.Connect(), nil },
			Cluster: func(context.Context) (step.Cluster, error) { return heldNode{held: held}, nil },
			Holder:  "test", Reader: nobody,
		})
		out := &outcome{input: "i", plan: p}
		if out.report, err = e.Check(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		w := weigh(out, now)
		if !w.inUse || len(w.acts) != 1 || w.open != held {
			t.Errorf("held %t: in use %t, open %t, it would disrupt by %+v", held, w.inUse, w.open, w.acts)
		}
		d, waits := hostCache{weight: w}.admit(closed, "i", now, time.Hour)
		if begins := d.act == converges; begins != held || (waits != nil) == held {
			t.Errorf("held %t: it is to %s, and waits for %+v", held, d.act, waits)
		}
	}
}

// TestHasBegun: a run has begun that has changed the host, or may have. What was waited for, or rolled back, changes nothing.
func TestHasBegun(t *testing.T) {
	drained := graph.Output[string]{Name: "drained/w1"}
	b := plan.New("JoinWorker", "prod")
	b.Gate(plan.Module{Name: "n", Tasks: []plan.Task{{Name: "g", Steps: []step.Step{
		step.New(step.Meta{Name: "drain"}, step.Drain{Node: "w1", Output: drained.Name}), step.New(step.Meta{Name: "api"}, step.Await{For: "api"}),
	}}}})
	b.Host("w1", plan.Module{Name: "m", Tasks: []plan.Task{{Name: "t", Steps: []step.Step{
		step.New(step.Meta{Name: "images"}, step.File{Path: "/a"}),
		step.New(step.Meta{Name: "begin", Disrupts: "drains the Node", Takes: []string{drained.Name}}, step.Savepoint{InUse: "/node", Dir: "/under"}),
		step.New(step.Meta{Name: "kubelet", Disrupts: "restarts kubelet"}, step.File{Path: "/b"}),
		step.New(step.Meta{Name: "end"}, step.Commit{Dir: "/under"}),
	}}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	const begin, onHost, images = "w1/m/t/begin", "w1/m/t/kubelet", "w1/m/t/images"
	const drain, api = "controller/n/g/drain", "controller/n/g/api"
	for _, id := range []string{begin, onHost, images, drain, api} {
		if _, known := p.Graph().Index(id); !known {
			t.Fatalf("there is no %s", id)
		}
	}
	cut := func(nodes ...string) error { return &engine.Error{Cause: errPaused, Interrupted: nodes} }
	failed := func(hostName, node string, kind host.Kind) error {
		return &engine.Error{Failures: []engine.Failure{{Host: hostName, Node: node, Err: &host.Error{Kind: kind, Host: "w1"}}}}
	}
	for name, tc := range map[string]struct {
		changed, passed int // on the host, on the controller
		err             error
		want            bool
	}{
		"it has changed something":                   {changed: 1, want: true},
		"nothing differed":                           {},
		"it was cut before the host was observed":    {err: cut("host w1")},
		"it was cut while it sent what disrupts not": {err: cut(images)},
		"it was cut while it restarted something":    {err: cut(onHost), want: true},
		"it was cut while it waited":                 {err: cut(api)},
		"it was cut while it drained":                {err: cut(drain), want: true},
		"it was cut when it had drained":             {passed: 1, err: cut(), want: true},
		"the host does not answer":                   {err: failed("w1", "", host.KindUnreachable)},
		"the drain failed, and was rolled back":      {err: failed("", drain, "")},
		"it drained, and the host was locked":        {passed: 1, err: failed("w1", begin, host.KindLocked)},
		"it is not known whether it is so":           {err: failed("w1", onHost, host.KindUndecided)},
		"a restart failed":                           {err: failed("w1", onHost, host.KindCommand), want: true},
		"something else failed":                      {err: failed("w1", images, host.KindCommand)},
		"it has changed something, and failed":       {changed: 1, err: failed("w1", images, host.KindCommand), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			report := &engine.Report{
				Hosts:      []engine.HostReport{{Host: "w1", Counts: engine.Counts{Changed: tc.changed}}},
				Controller: engine.Counts{Changed: tc.passed},
			}
			if got := hasBegun(p, report, tc.err); got != tc.want {
				t.Errorf("begun: %v", got)
			}
		})
	}
}

// TestRestriction: a host's own policy counts before the cluster's, and what repairs waits for nothing.
func TestRestriction(t *testing.T) {
	s := &scope{config: &bootstrapv1.KubexmConfig{}, clusterConfig: &bootstrapv1.KubexmClusterConfig{}, machine: &clusterv1.Machine{}}
	s.clusterConfig.Spec.Cluster.Disruption.Approval = spec.ApprovalRequired
	if !s.restriction().policy.Restricts() {
		t.Error("the cluster's policy is not kept to")
	}
	s.config.Spec.Disruption.Approval = spec.ApprovalNone
	if s.restriction().policy.Restricts() {
		t.Error("the host's own policy is not kept to")
	}
	s.config.Spec.Disruption.Approval = spec.ApprovalRequired
	for _, repairs := range []string{clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineExternallyRemediatedCondition} {
		s.machine = &clusterv1.Machine{}
		for _, kind := range []string{clusterv1.MachineHealthCheckSucceededCondition, repairs} {
			if !s.restriction().policy.Restricts() {
				t.Errorf("a Machine that nobody repairs does not wait, before %s", kind)
			}
			conditions.Set(s.machine, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "Unhealthy"})
		}
		if s.restriction().policy.Restricts() {
			t.Errorf("what repairs an unhealthy Machine waits, although %s is False", repairs)
		}
	}
}
