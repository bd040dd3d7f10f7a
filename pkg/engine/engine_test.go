// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

func mustPlan(t testing.TB, text string) *plan.Plan {
	t.Helper()
	p, err := parsePlan(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func memories(names ...string) map[string]*memory {
	hosts := make(map[string]*memory)
	for _, n := range names {
		hosts[n] = newMemory(n)
	}
	return hosts
}

// ended is a reader that closes a channel when a node has changed.
func ended(node string) (event.Reader, <-chan struct{}) {
	c := make(chan struct{})
	return event.ReaderFunc(func(e event.Event) {
		if e.Node == node && e.Type == event.Changed {
			close(c)
		}
	}), c
}

func TestSlowHostHoldsNobody(t *testing.T) {
	hosts := memories("slow", "quick")
	hosts["slow"].hold = make(chan struct{})
	reader, quick := ended("quick/os/files/c")
	run := engine.New(options(hosts, &cluster{}, reader)).Start(t.Context(), mustPlan(t, `
		slow os/files: /a /b /c
		quick os/files: /a /b /c`))
	<-quick // while the slow one is in its first act
	close(hosts["slow"].hold)
	r, err := run.Wait()
	if err != nil || r.Total().Changed != 6 {
		t.Errorf("got %+v, %v", r.Total(), err)
	}
}

// What a run that was killed brings to its end, while the next one waits for the host, is not done once more.
func TestOrphanIsNotRepeated(t *testing.T) {
	before, m := newMemory("n1"), newMemory("n1")
	p := mustPlan(t, "n1 os/files: /a /b")
	if _, err := engine.New(options(map[string]*memory{"n1": before}, &cluster{}, nil)).Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	m.orphan = func() { m.files["/a"] = before.files["/a"] }
	if _, err := engine.New(options(map[string]*memory{"n1": m}, &cluster{}, nil)).Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(m.calls, "file /a") || !slices.Contains(m.calls, "file /b") {
		t.Errorf("the calls are %v", m.calls)
	}
}

func TestHostsAtOnce(t *testing.T) {
	const limit, all = 3, 12
	hosts, text := memories(), &strings.Builder{}
	for i := range all {
		name := fmt.Sprintf("n%d", i)
		hosts[name] = newMemory(name)
		fmt.Fprintf(text, "%s os/files: /a /b\n", name)
	}
	// A host is worked on from when it is dialled to when its connection is closed.
	o := options(hosts, &cluster{}, nil)
	now := make(chan int, 1)
	now <- 0
	most := 0
	dial := o.Dial
	o.Dial = func(ctx context.Context, name string) (host.Host, error) {
		n := <-now + 1
		most = max(most, n)
		now <- n
		runtime.Gosched()
		h, err := dial(ctx, name)
		return closing{h, func() { now <- <-now - 1 }}, err
	}
	o.HostsAtOnce = limit
	if _, err := engine.New(o).Run(t.Context(), mustPlan(t, text.String())); err != nil {
		t.Fatal(err)
	}
	if most > limit {
		t.Errorf("%d hosts were worked on at once, want at most %d", most, limit)
	}
}

type closing struct {
	host.Host
	closed func()
}

func (c closing) Close() error {
	c.closed()
	return c.Host.Close()
}

func TestCancel(t *testing.T) {
	hosts := memories("n1", "n2")
	hosts["n1"].hold, hosts["n1"].reached = make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	o := options(hosts, &cluster{unhealthy: -1}, nil)
	o.Clock = clocktesting.NewFakeClock(time.Unix(0, 0)) // nobody moves it: the gate would ask for ever
	run := engine.New(o).Start(ctx, mustPlan(t, `
		n1 os/files: /a /b
		n2 os/files: /a<t
		gate g/g: api>t`))
	<-hosts["n1"].reached
	why := errors.New("the manager is shutting down")
	cancel(why)
	_, err := run.Wait()
	if !errors.Is(err, why) {
		t.Errorf("error %v does not wrap the cause", err)
	}
	var ee *engine.Error
	if !errors.As(err, &ee) || !slices.Contains(ee.Interrupted, "n1/os/files/a") {
		t.Errorf("error %v does not name the step that was running", err)
	}
	if !slices.Contains(hosts["n1"].calls, "end") {
		t.Errorf("the session was not ended: %v", hosts["n1"].calls)
	}
	if hosts["n1"].holder != "" {
		t.Errorf("the lock is still held by %s", hosts["n1"].holder)
	}
	if len(ee.Failures) != 0 {
		t.Errorf("an interrupted run has no failures, got %v", ee.Failures)
	}
}

func TestTimeout(t *testing.T) {
	hosts := memories("n1")
	hosts["n1"].hold = make(chan struct{})
	b := plan.New("Test", "test")
	b.Host("n1", plan.Module{Name: "os", Tasks: []plan.Task{{Name: "files", Steps: []step.Step{
		step.New(step.Meta{Name: "a", Timeout: step.Duration(10 * time.Millisecond)}, step.File{Path: "/a", Mode: 0o644}),
	}}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	_, err = engine.New(options(hosts, &cluster{}, nil)).Run(t.Context(), p)
	var late *engine.TimedOut
	if !errors.As(err, &late) || late.After != 10*time.Millisecond {
		t.Errorf("got %v, want a TimedOut after 10ms", err)
	}
}

func TestPanicKeepsItsStack(t *testing.T) {
	c := &cluster{applyErr: []error{errPanic}}
	_, err := engine.New(options(nil, c, nil)).Run(t.Context(), mustPlan(t, "gate addons/dns: apply:dns"))
	var p *engine.Panic
	if !errors.As(err, &p) {
		t.Fatalf("got %v, want a Panic", err)
	}
	if !strings.Contains(string(p.Stack), "(*cluster).Apply") {
		t.Errorf("the stack does not show where:\n%s", p.Stack)
	}
	if strings.Contains(err.Error(), "goroutine") {
		t.Errorf("the message shows the stack:\n%v", err)
	}
}

// TestGateIsGivenUp: the one host that waits for a gate fails while the gate is asking; the run ends at once.
func TestGateIsGivenUp(t *testing.T) {
	hosts := memories("n1")
	n1 := hosts["n1"]
	n1.faults = []fault{{op: "file /a", times: 1, err: &host.Error{Kind: host.KindCommand, Message: "broken"}}}
	n1.hold = make(chan struct{})
	asked := make(chan struct{})
	o := options(hosts, &cluster{unhealthy: -1, asked: asked}, nil)
	o.Clock = clocktesting.NewFakeClock(time.Unix(0, 0)) // nobody moves it: the gate would ask for ever
	run := engine.New(o).Start(t.Context(), mustPlan(t, `
		n1 os/files: /a /b<t
		gate g/api: api>api
		gate g/token: token<api>t`))
	<-asked
	close(n1.hold)
	r, err := run.Wait()
	if r.Controller.Skipped != 2 || r.Controller.Failed != 0 {
		t.Errorf("gates %+v, want both skipped", r.Controller)
	}
	var ee *engine.Error
	if !errors.As(err, &ee) || len(ee.Failures) != 1 || ee.Failures[0].Host != "n1" {
		t.Errorf("got %v, want the failure of n1 alone", err)
	}
}

// TestAnotherAPI: a gate that waits for an API server which is gone goes on with the one that is named in its place.
func TestAnotherAPI(t *testing.T) {
	gone, there := &cluster{unhealthy: -1}, &cluster{}
	connections := 0
	o := options(nil, gone, nil)
	o.Cluster = func(context.Context) (step.Cluster, error) {
		switch connections++; connections {
		case 1:
			return gone, nil
		case 2:
			return nil, errors.New("the Secret cannot be read at present")
		}
		return there, nil
	}
	if _, err := engine.New(o).Run(t.Context(), mustPlan(t, "gate g/api: api>api")); err != nil {
		t.Errorf("after %d connections: %v", connections, err)
	}
	if connections != 3 {
		t.Errorf("it connected %d times, want 3", connections)
	}
}

// TestToken: what a gate makes reaches the host that takes it and is in no event.
func TestToken(t *testing.T) {
	hosts := memories("n1")
	events := &told{}
	r, err := engine.New(options(hosts, &cluster{}, events)).Run(t.Context(), mustPlan(t, `
		n1 os/files: /a=token:<t
		gate g/token: token>t`))
	if err != nil {
		t.Fatal(err)
	}
	if got := hosts["n1"].files["/a"]; got != "token:"+tokenValue {
		t.Errorf("/a is %q", got)
	}
	for _, text := range []string{events.String(), fmt.Sprintf("%+v", r)} {
		if strings.Contains(text, tokenValue) {
			t.Errorf("the token is in %s", text)
		}
	}
	// Now the host is so already, which can be told only when the token is known: it is not touched.
	r, err = engine.New(options(hosts, &cluster{}, events)).Run(t.Context(), mustPlan(t, `
		n1 os/files: /a=token:<t
		gate g/token: token>t`))
	if h := r.Hosts[0]; err != nil || h.Skipped != 1 || h.Exchanges != 1 {
		t.Errorf("got %+v, %v", h.Counts, err)
	}
}

// TestSecretsAreInNoEvent checks every text of every event, errors included.
func TestSecretsAreInNoEvent(t *testing.T) {
	const password = "hunter2hunter2"
	hosts := memories("n1")
	leak := &host.Error{
		Kind: host.KindCommand, Host: "n1", Message: "said " + password, Output: "echo " + password,
		Remedy: "change " + password, Err: errors.New("cause " + password),
	}
	hosts["n1"].faults = []fault{{op: "file /a", times: 1, err: fmt.Errorf("wrapped: %w", leak)}}
	var seen []string
	o := options(hosts, &cluster{}, event.ReaderFunc(func(e event.Event) {
		seen = append(seen, fmt.Sprintf("%+v %v", e, e.Err))
		var he *host.Error
		if errors.As(e.Err, &he) {
			seen = append(seen, fmt.Sprintf("%+v", *he), he.Error())
		}
	}))
	_, err := engine.New(o).Run(t.Context(), mustPlan(t, "n1 os/files: /a$*2 /b"))
	if err != nil {
		t.Fatal(err)
	}
	hosts["n1"].faults = []fault{{op: "file /c", times: 1, err: fmt.Errorf("wrapped: %w", leak)}}
	_, err = engine.New(o).Run(t.Context(), mustPlan(t, "n1 os/files: /a$ /c"))
	var he *host.Error
	if !errors.As(err, &he) || he.Kind != host.KindCommand {
		t.Fatalf("got %v, want the host's error to be found in it", err)
	}
	seen = append(seen, err.Error(), fmt.Sprintf("%+v", *he), he.Error())
	for _, s := range seen {
		if strings.Contains(s, password) {
			t.Errorf("the password is in %s", s)
		}
	}
	if !slices.ContainsFunc(seen, func(s string) bool { return strings.Contains(s, "said (redacted)") }) {
		t.Error("the message is not there at all")
	}
}

func TestEvents(t *testing.T) {
	run := engine.New(options(memories("n1"), &cluster{}, nil)).Start(t.Context(), mustPlan(t, "n1 os/files: /a /b"))
	for range run.Events() {
		break // does not stop the run
	}
	var types []event.Type
	for ev := range run.Events() {
		types = append(types, ev.Type)
	}
	want := []event.Type{
		event.RunStarted, event.HostObserved, event.Started, event.Started, event.Changed, event.Changed, event.RunEnded,
	}
	if !slices.Equal(types, want) {
		t.Errorf("got %v, want %v", types, want)
	}
}

func TestLook(t *testing.T) {
	hosts := memories("n1", "n2", "n3")
	hosts["n1"].files["/a"] = "x"
	hosts["n3"].faults = []fault{{op: "dial", times: 1, err: &host.Error{Kind: host.KindUnreachable, Host: "n3", Message: "no route"}}}
	query := func(string) host.Query { return host.Query{Paths: []host.PathQuery{{Path: "/a"}}} }
	facts, err := engine.New(options(hosts, &cluster{}, nil)).Look(t.Context(), []string{"n1", "n2", "n3"}, query)
	if len(facts) != 2 || !facts["n1"].Paths["/a"].Exists || facts["n2"].Paths["/a"].Exists {
		t.Errorf("got %+v", facts)
	}
	var ee *engine.Error
	if !errors.As(err, &ee) || len(ee.Failures) != 1 || ee.Failures[0].Host != "n3" {
		t.Errorf("got %v, want the failure of n3 alone", err)
	}
}

// TestAlso: what is asked beside the steps is answered as it is after the last change, and costs no exchange.
func TestAlso(t *testing.T) {
	const three, waits = "n1 os/files: /a /b /c", "n1 os/files: /a /b<t /c\ngate g/g: api>t"
	for name, test := range map[string]struct {
		plan string
		// has are the files that are there, and spoils the change that comes last of those that change what is asked for.
		has    []string
		spoils string
	}{
		"as planned":              {three, []string{"/a", "/b", "/c"}, ""},
		"all differ":              {three, nil, "/c"},
		"the first differs":       {three, []string{"/b", "/c"}, "/a"},
		"the second differs":      {three, []string{"/a", "/c"}, "/b"},
		"the last differs":        {three, []string{"/a", "/b"}, "/c"},
		"the first, then a gate":  {waits, []string{"/c"}, "/a"},
		"the second, after it":    {waits, []string{"/a", "/c"}, "/b"},
		"a gate between and more": {waits, nil, "/c"},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(also host.Query, how func(*engine.Engine, *plan.Plan) (engine.Report, error)) engine.HostReport {
				m := newMemory("n1")
				m.files["/asked"] = "before"
				for _, file := range test.has {
					m.files[file] = file
				}
				m.also[test.spoils] = "/asked"
				o := options(map[string]*memory{"n1": m}, &cluster{}, nil)
				o.Also = also
				r, err := how(engine.New(o), mustPlan(t, test.plan))
				if err != nil {
					t.Fatal(err)
				}
				seen, asked := r.Hosts[0].Facts.Paths["/asked"]
				if asked == also.Empty() || asked && seen.Digest != digestOf(m.files["/asked"]) {
					t.Errorf("the file is %q, and was asked for: %v, and not seen as it is", m.files["/asked"], asked)
				}
				return r.Hosts[0]
			}
			also := host.Query{Paths: []host.PathQuery{{Path: "/asked", Digest: true}}}
			for _, how := range []func(*engine.Engine, *plan.Plan) (engine.Report, error){
				func(e *engine.Engine, p *plan.Plan) (engine.Report, error) { return e.Run(t.Context(), p) },
				func(e *engine.Engine, p *plan.Plan) (engine.Report, error) { return e.Check(t.Context(), p) },
			} {
				without, with := run(host.Query{}, how), run(also, how)
				if with.Exchanges != without.Exchanges {
					t.Errorf("%d exchanges, and %d without it", with.Exchanges, without.Exchanges)
				}
			}
		})
	}
}

// BenchmarkConverged is a run that finds nothing to do on 100 hosts with 60 steps each.
func BenchmarkConverged(b *testing.B) {
	const all, files = 100, 60
	hosts, text := memories(), &strings.Builder{}
	for i := range all {
		m := newMemory(fmt.Sprintf("n%03d", i))
		hosts[m.name] = m
		fmt.Fprintf(text, "%s os/files:", m.name)
		for k := range files {
			path := fmt.Sprintf("/etc/f%d", k)
			m.files[path] = path
			fmt.Fprintf(text, " %s", path)
		}
		text.WriteString("\n")
	}
	p := mustPlan(b, text.String())
	o := options(hosts, &cluster{}, nil)
	o.Clock = nil
	e := engine.New(o)
	b.ReportAllocs()
	for b.Loop() {
		r, err := e.Run(b.Context(), p)
		if err != nil || !r.Converged() {
			b.Fatal(r.Total(), err)
		}
	}
}

// TestProgress: progress within a step is reported, and not more often than a person can follow.
func TestProgress(t *testing.T) {
	hosts := memories("n1")
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	hosts["n1"].stream = func(sent func(int64)) {
		for i := range int64(100) {
			clk.Step(50 * time.Millisecond)
			sent(i + 1)
		}
	}
	events := &told{}
	o := options(hosts, &cluster{}, events)
	o.Clock, o.Artifacts = clk, noArtifacts{}
	b := plan.New("Test", "test")
	b.Host("n1", plan.Module{Name: "images", Tasks: []plan.Task{{Name: "import", Steps: []step.Step{
		step.New(step.Meta{Name: "import"}, step.Import{Images: []step.Image{{Ref: "pause", Digest: "sha256:1", Size: 100}}}).
			Until(step.Done{Journaled: true}),
	}}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.New(o).Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	var sent []int64
	for _, e := range events.events {
		if e.Type == event.Progress {
			sent = append(sent, e.Done)
		}
	}
	if len(sent) != 26 || sent[0] != 1 || sent[1] != 5 || sent[25] != 100 {
		t.Errorf("told of %v of 100 in 5 s", sent)
	}
}

type noArtifacts struct{}

func (noArtifacts) Open(context.Context, step.Artifact) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("")), nil
}
