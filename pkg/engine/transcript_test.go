// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTranscripts runs plans in a small language and compares what is reported:
//
//	plan                   a line per task: "<host or gate> <module>/<task>: <step> <step> …"
//	  /a                   the file /a with the content "/a"; /a=x with the content x
//	  /a<t  /a>t           takes output t in its content; declares output t
//	  /a~t                 the command "touch /a", fed with output t, until /a exists
//	  /a? /a?t             the command "touch /a", fed with output t, until a check says that /a exists
//	  /a*3                 up to three attempts
//	  /a@2                 on at most two hosts at once
//	  /a!s                 has no way back, and is s
//	  /a$                  with the secret s/k in its content; /a$x with sx/k, which is not there
//	  swap                 what the host in memory panics at
//	  begin:/p=x<t         the savepoint before /p=x, on a host that has /node; end<t>u  its commit
//	  change:/p=x          the savepoint before /p=x that needs a turn, and by which /ok the host serves; changed  its commit
//	  api>t token>t apply:x<t drain:n>t    gates
//	host <name> [files=/a;/b=x] [spoils=/a:/b] [holder=]    a new host
//	fault <host> op=<op> [skip=] [times=] kind= [text=]     see memory; "check /a" has the check of /a be stopped at its deadline,
//	                       or with the kind Undecided say that it cannot tell
//	cluster [unhealthy=n] [fail=n] [restarts] [panic] [absent] [turn=host] [passes=n] [lost=n] [silent=n]
//	run|check [policy=] [at-once=]     events per host in their order, then the report or the error
//	undo <hosts>
//	show <host>|cluster    what is on the host, and the calls since the last show
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := &world{hosts: map[string]*memory{}, cluster: &cluster{}}
		datadriven.RunTest(t, path, w.command)
	})
}

type world struct {
	hosts   map[string]*memory
	cluster *cluster
	plan    *plan.Plan
}

func (w *world) command(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "plan":
		p, err := parsePlan(d.Input)
		if err != nil {
			return err.Error() + "\n"
		}
		w.plan = p
		return ""
	case "host":
		w.host(t, d)
		return ""
	case "fault":
		w.fault(t, d)
		return ""
	case "cluster":
		w.cluster = &cluster{}
		scan(t, d, "unhealthy", &w.cluster.unhealthy)
		fails := 0
		scan(t, d, "fail", &fails)
		for range fails {
			w.cluster.applyErr = append(w.cluster.applyErr, errors.New("the server could not find the requested resource"))
		}
		w.cluster.absent = d.HasArg("absent")
		scan(t, d, "turn", &w.cluster.turn)
		scan(t, d, "passes", &w.cluster.passes)
		scan(t, d, "lost", &w.cluster.lost)
		scan(t, d, "silent", &w.cluster.silent)
		if d.HasArg("restarts") {
			w.cluster.applyErr = append(w.cluster.applyErr, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
		}
		if d.HasArg("panic") {
			w.cluster.applyErr = append(w.cluster.applyErr, errPanic)
		}
		return ""
	case "run":
		e, told := w.engine(t, d)
		r, err := e.Run(context.Background(), w.plan)
		return told.String() + reportText(r) + errorText(err)
	case "check":
		e, told := w.engine(t, d)
		r, err := e.Check(context.Background(), w.plan)
		var b strings.Builder
		if renderErr := w.plan.Render(&b, r.Checks); renderErr != nil {
			t.Fatal(renderErr)
		}
		return told.String() + reportText(r) + b.String() + errorText(err)
	case "undo":
		e, told := w.engine(t, d)
		var names []string
		for _, a := range d.CmdArgs {
			names = append(names, a.Key)
		}
		r, err := e.Undo(context.Background(), engine.Undo{Intent: "ResetNode", Cluster: "test", Hosts: names})
		return told.String() + reportText(r) + errorText(err)
	case "show":
		if d.HasArg("cluster") {
			calls := strings.Join(w.cluster.calls, ", ")
			w.cluster.calls = nil
			return "calls: " + calls + "\n"
		}
		m := w.hosts[d.CmdArgs[0].Key]
		text := m.String() + "calls: " + strings.Join(m.calls, ", ") + "\n"
		m.calls = nil
		return text
	}
	t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	return ""
}

// scan reads the argument if it is there.
func scan(t *testing.T, d *datadriven.TestData, key string, into any) {
	if d.HasArg(key) {
		d.ScanArgs(t, key, into)
	}
}

func (w *world) host(t *testing.T, d *datadriven.TestData) {
	m := newMemory(d.CmdArgs[0].Key)
	w.hosts[m.name] = m
	var files, spoils string
	scan(t, d, "files", &files)
	scan(t, d, "spoils", &spoils)
	scan(t, d, "holder", &m.holder)
	for _, f := range strings.Fields(strings.ReplaceAll(files, ";", " ")) {
		path, text, ok := strings.Cut(f, "=")
		if !ok {
			text = path
		}
		m.files[path] = text
	}
	if from, to, ok := strings.Cut(spoils, ":"); ok {
		m.also[from] = to
	}
	for key, checks := range map[string]map[string]int{"comes": m.comes, "ends": m.ends} {
		var text string
		scan(t, d, key, &text)
		if path, after, ok := strings.Cut(text, ":"); ok {
			n, err := strconv.Atoi(after)
			if err != nil {
				t.Fatal(err)
			}
			checks[path] = n
		}
	}
}

func (w *world) fault(t *testing.T, d *datadriven.TestData) {
	m := w.hosts[d.CmdArgs[0].Key]
	f := fault{times: 1}
	var kind, text string
	d.ScanArgs(t, "op", &f.op)
	scan(t, d, "times", &f.times)
	scan(t, d, "skip", &f.skip)
	scan(t, d, "kind", &kind)
	scan(t, d, "text", &text)
	f.op = strings.ReplaceAll(f.op, "_", " ")
	f.err = &host.Error{
		Kind: host.Kind(kind), Host: m.name, Message: "asked to fail", Output: strings.ReplaceAll(text, "_", " "),
		Remedy: "ask for something else",
	}
	m.faults = append(m.faults, f)
}

func (w *world) engine(t *testing.T, d *datadriven.TestData) (*engine.Engine, *told) {
	events := &told{}
	o := options(w.hosts, w.cluster, events)
	var policy string
	scan(t, d, "policy", &policy)
	scan(t, d, "at-once", &o.HostsAtOnce)
	o.Policy = engine.Policy(policy)
	return engine.New(o), events
}

// options are deterministic: a clock that is where it is asked to wait for, and no jitter.
func options(hosts map[string]*memory, c *cluster, r event.Reader) engine.Options {
	return engine.Options{
		Dial: func(ctx context.Context, name string) (host.Host, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return hosts[name].dial()
		},
		Secrets: func(ref step.SecretRef) ([]byte, error) {
			if ref.Name != "s" {
				return nil, errors.New("no such secret")
			}
			return []byte("hunter2hunter2"), nil
		},
		Cluster: func(context.Context) (step.Cluster, error) {
			if c.absent {
				return nil, errors.New("no such host")
			}
			return c, nil
		},
		Holder:  "test",
		Address: func(name string) string { return "address-of-" + name },
		Reader:  r,
		Redial:  step.Retry{Attempts: 3, Delay: step.Duration(2 * time.Second)},
		Clock:   instant{clocktesting.NewFakeClock(time.Unix(0, 0))},
		Jitter:  func(d time.Duration) time.Duration { return d },
		NewID:   func() string { return "run-1" },
	}
}

// instant is a clock on which anyone who waits has waited.
type instant struct{ *clocktesting.FakeClock }

func (c instant) NewTimer(d time.Duration) clock.Timer {
	t := c.FakeClock.NewTimer(d)
	c.Step(d)
	return t
}

// told collects events.
type told struct {
	mu     sync.Mutex
	events []event.Event
}

func (t *told) Read(e event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, e)
}

// String shows the events of each host in their order: between hosts there is none.
func (t *told) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	events := slices.Clone(t.events)
	place := func(e event.Event) string {
		switch {
		case e.Type == event.RunStarted:
			return ""
		case e.Type == event.RunEnded:
			return "~"
		case e.Host == "":
			return "}" + e.Node
		}
		return e.Host
	}
	slices.SortStableFunc(events, func(a, b event.Event) int { return strings.Compare(place(a), place(b)) })
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%-12s %s", e.Type, e.Node)
		if e.Node == "" {
			b.WriteString(e.Host)
		}
		if e.Attempts > 1 {
			fmt.Fprintf(&b, " %d/%d", e.Attempt, e.Attempts)
		}
		if e.Delay > 0 {
			fmt.Fprintf(&b, " in %s", e.Delay)
		}
		if e.Total > 0 {
			fmt.Fprintf(&b, " [%d of %d]", e.Done, e.Total)
		}
		if e.Message != "" {
			b.WriteString(" : " + e.Message)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func reportText(r engine.Report) string {
	var b strings.Builder
	for _, h := range r.Hosts {
		fmt.Fprintf(&b, "%s: %s, %d exchanges", h.Host, countsText(h.Counts), h.Exchanges)
		if h.Restored > 0 {
			fmt.Fprintf(&b, ", %d restored", h.Restored)
		}
		b.WriteString("\n")
	}
	if r.Controller.Total > 0 {
		fmt.Fprintf(&b, "controller: %s\n", countsText(r.Controller))
	}
	return b.String()
}

func countsText(c engine.Counts) string {
	return fmt.Sprintf("%d nodes, %d changed, %d skipped, %d failed, %d blocked", c.Total, c.Changed, c.Skipped, c.Failed, c.Blocked)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return "error: " + err.Error() + "\n"
}

func parsePlan(text string) (*plan.Plan, error) {
	b := plan.New("Test", "test")
	for line := range strings.Lines(strings.TrimSpace(text)) {
		where, steps, _ := strings.Cut(strings.TrimSpace(line), ":")
		hostName, path, _ := strings.Cut(where, " ")
		module, task, _ := strings.Cut(path, "/")
		t := plan.Task{Name: task, Limits: map[string]plan.Limits{}}
		for _, s := range strings.Fields(steps) {
			s, at, limited := strings.Cut(s, "@")
			parsed := parseStep(s)
			t.Steps = append(t.Steps, parsed)
			if name := parsed.Meta().Name; limited {
				most, err := strconv.Atoi(at)
				if err != nil {
					return nil, err
				}
				t.Limits[name] = plan.Limits{Concurrency: most, Group: "step " + name}
			}
		}
		m := plan.Module{Name: module, Tasks: []plan.Task{t}}
		if hostName == "gate" {
			b.Gate(m)
		} else {
			b.Host(hostName, m)
		}
	}
	return b.Plan()
}

func parseStep(text string) step.Step {
	about := step.Meta{}
	if s, n, ok := strings.Cut(text, "*"); ok {
		attempts, err := strconv.Atoi(n)
		if err != nil {
			panic(err)
		}
		text, about.Retry = s, step.Retry{Attempts: attempts, Delay: step.Duration(time.Second)}
	}
	text, about.Stays, _ = strings.Cut(text, "!")
	name, makes, _ := strings.Cut(text, ">")
	name, fed, isCommand := strings.Cut(name, "~")
	name, input, isChecked := strings.Cut(name, "?")
	name, takes, _ := strings.Cut(name, "<")
	name, secret, isSecret := strings.Cut(name, "$")
	name, content, ok := strings.Cut(name, "=")
	if !ok {
		content = name
	}
	about.Name = strings.Trim(strings.ReplaceAll(name, "/", "."), ".")
	var after []string
	if takes != "" {
		after = []string{takes}
	}
	kind, title, _ := strings.Cut(name, ":")
	switch {
	case name == "swap":
		return step.New(about, step.SwapOff{})
	case kind == "begin":
		sum := sha256.Sum256([]byte(content))
		about.Name, about.Takes = "begin", after
		return step.New(about, step.Savepoint{
			About: "the replacement of its programs", InUse: "/node", Dir: "/under",
			Replaces: []step.Content{{Path: title, Digest: "sha256:" + hex.EncodeToString(sum[:])}},
		})
	case kind == "change":
		sum := sha256.Sum256([]byte(content))
		about.Name = "change"
		return step.New(about, step.Savepoint{
			About: "the change", Dir: "/changing", Turn: "control-plane", Settled: step.Done{Paths: []string{"/ok"}},
			Replaces: []step.Content{{Path: title, Digest: "sha256:" + hex.EncodeToString(sum[:])}},
		})
	case kind == "wait":
		about.Name = "wait"
		if makes != "" {
			about.Makes = []string{makes}
		}
		return step.New(about, step.WaitFor{Title: title + " is there", While: fed, Check: []string{"test", "-e", title}})
	case kind == "changed":
		return step.New(about, step.Commit{Dir: "/changing"})
	case kind == "end":
		about.Makes = []string{makes}
		return step.New(about, step.Commit{Dir: "/under", After: after})
	case kind == "drain":
		return step.New(about, step.Drain{Node: title, Output: makes})
	case kind == "api":
		about.Takes = after
		return step.New(about, step.Await{For: "api", Output: makes})
	case kind == "token":
		return step.New(about, step.Token{Output: graph.Output[string]{Name: makes}, TTL: step.Duration(time.Hour), After: after})
	case kind == "apply":
		return step.New(about, step.Apply{Title: title, Manifest: step.Literal(title), After: after})
	}
	if makes != "" {
		about.Makes = []string{makes}
	}
	if isCommand {
		return step.New(about, step.Command{
			Title: "touch " + name, Argv: []string{"touch", name}, Done: step.Done{Paths: []string{name}},
			Stdin: step.FromOutput(graph.Output[string]{Name: fed}),
		})
	}
	if isChecked {
		c := step.Command{Title: "touch " + name, Argv: []string{"touch", name}, Done: step.Done{Check: []string{"test", "-e", name}}}
		if input != "" {
			c.Stdin = step.FromOutput(graph.Output[string]{Name: input})
		}
		return step.New(about, c)
	}
	file := step.File{Path: name, Mode: 0o644, Content: step.Literal(content)}
	if takes != "" {
		file.Content = step.Join(file.Content, step.FromOutput(graph.Output[string]{Name: takes}))
	}
	if isSecret {
		file.Content = step.Join(file.Content, step.Secret("s"+secret, "k"))
	}
	return step.New(about, file)
}
