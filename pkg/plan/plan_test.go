// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// sample has a step of every kind.
func sample(t testing.TB) *plan.Plan {
	t.Helper()
	token := graph.Output[string]{Name: "join-token"}
	digest := "sha256:9f3a000000000000000000000000000000000000000000000000000000000000"
	system := plan.Module{Name: "os", Tasks: []plan.Task{{Name: "kernel", Steps: []step.Step{
		step.New(step.Meta{Name: "sysctl/set"},
			step.Directory{Path: "/etc/sysctl.d", Mode: 0o755},
			step.File{Path: "/etc/sysctl.d/99-kubexm.conf", Mode: 0o644, Content: step.Literal("net.ipv4.ip_forward = 1\n")},
			step.Sysctl{Name: "net.ipv4.ip_forward", Value: "1"}, step.Module{Name: "br_netfilter"}),
		step.New(step.Meta{Name: "swap/off"}, step.SwapOff{}),
		step.New(step.Meta{Name: "packages/install"}, step.Package{Names: []string{"conntrack", "socat"}}),
		step.New(step.Meta{Name: "hosts/names"}, step.Block{Path: "/etc/hosts", Name: "cluster", Content: "10.0.0.1 api\n"}),
	}}}}
	runtime := plan.Module{Name: "runtime", Tasks: []plan.Task{{Name: "containerd", Steps: []step.Step{
		step.New(step.Meta{Name: "containerd/config", Disrupts: "restarts containerd", Retry: step.Retry{Attempts: 3}},
			step.File{Path: "/usr/local/bin/containerd", Mode: 0o755, From: &step.Artifact{Path: "containerd/v2/amd64/containerd", Digest: digest, Size: 42}},
			step.File{
				Path: "/etc/registry.json", Mode: 0o600, Owner: "containerd",
				Content: step.Join(step.Literal("auth: <"), step.Secret("registry", "password"), step.Literal(">")),
			},
			step.Absent{Path: "/etc/containerd/old"},
			step.Service{Name: "containerd.service", Watches: []string{"/etc/containerd/config.toml"}, Settle: step.Duration(2 * time.Second)}),
		step.New(step.Meta{Name: "images/import", Timeout: step.Duration(10 * time.Minute)},
			step.Import{Images: []step.Image{{Ref: "registry.k8s.io/pause:3.10.2", Digest: digest, Size: 7}}}),
	}}}}
	join := plan.Module{Name: "kubernetes", Tasks: []plan.Task{{Name: "join", Steps: []step.Step{
		step.New(step.Meta{Name: "kubeadm/claim"}, step.Claim{
			Paths: []string{"/etc/kubernetes"}, Cleanup: []step.Cleanup{{Title: "reset", Argv: []string{"kubeadm", "reset"}}},
		}),
		step.New(step.Meta{Name: "kubeadm/join"},
			step.Command{Title: "join", Argv: []string{"kubeadm", "join"}, Env: []string{"A=b"}, Stdin: step.FromOutput(token),
				Undo: []string{"true"}, Done: step.Done{Paths: []string{"/etc/kubernetes/kubelet.conf"}, Units: []string{"kubelet.service"}}}).
			Until(step.Done{Journaled: true}),
		step.New(step.Meta{Name: "ufw/off"}, step.Service{Name: "ufw.service", State: step.Stopped}),
	}}}}
	b := plan.New("CreateCluster", "prod")
	b.Host("node1", system, runtime)
	b.Host("node2", system, join)
	b.Gate(plan.Module{Name: "cluster", Tasks: []plan.Task{
		{Name: "api", Steps: []step.Step{step.New(step.Meta{Name: "api/await"}, step.Await{For: "api", Output: "api"})}},
		{Name: "token",
			Steps: []step.Step{
				step.New(step.Meta{Name: "token/make"}, step.Token{Output: token, TTL: step.Duration(time.Hour), After: []string{"api"}}),
			}},
		{Name: "addons", Steps: []step.Step{
			step.New(step.Meta{Name: "dns/apply"}, step.Apply{Title: "coredns", Manifest: step.Literal("kind: Deployment"), After: []string{"api"}}),
			step.New(step.Meta{Name: "flannel/install"}, step.Release{
				Name: "flannel", Namespace: "kube-flannel", Chart: step.Artifact{Path: "helm/flannel.tgz", Digest: digest, Size: 9}, After: []string{"api"},
			}),
		}},
	}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestText(t *testing.T) {
	var b strings.Builder
	if err := sample(t).Text(&b); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/plan.txt", b.String())
}

func digest(t *testing.T, p *plan.Plan) string {
	t.Helper()
	d, err := p.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRoundTrip(t *testing.T) { golden.File(t, "testdata/plan.json", roundTrip(t, sample(t))) }

// roundTrip writes p, reads it back, wants the same and returns what was written.
func roundTrip(t *testing.T, p *plan.Plan) string {
	t.Helper()
	var first, second bytes.Buffer
	if err := p.Write(&first); err != nil {
		t.Fatal(err)
	}
	read, err := plan.Read(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Write(&second); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.String(), second.String()); diff != "" {
		t.Error(diff)
	}
	for i := range p.Graph().Len() {
		if want, got := p.Graph().Node(i), read.Graph().Node(i); !reflect.DeepEqual(want, got) {
			t.Errorf("node %d: read %+v, wrote %+v", i, got, want)
		}
	}
	return first.String()
}

// TestReadRefuses edits a plan that was written and wants it refused by a message that says why.
func TestReadRefuses(t *testing.T) {
	var b bytes.Buffer
	if err := sample(t).Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, from, to, want string }{
		{"another value", `"value": "1"`, `"value": "0"`, "node node1/os/kernel/sysctl/set: it was edited"},
		{"another command", `"reset"`, `"rm"`, "node node2/kubernetes/join/kubeadm/claim: it was edited"},
		{"another secret", `"name": "registry"`, `"name": "ca"`, "node node1/runtime/containerd/containerd/config: it was edited"},
		{"another order", `"node1/os/kernel/swap/off"` + "\n      ]", `"node1/os/kernel/sysctl/set"` + "\n      ]", "plan: it was edited"},
		{"another cluster", `"cluster": "prod"`, `"cluster": "test"`, "plan: it was edited"},
		{"another host", `"host": "node1"`, `"host": "node2"`, "node node1/os/kernel/sysctl/set: its ID does not say where it is"},
		{"a host that is not there", "    \"node1\",\n", "", "host node1 is not one of the plan's"},
		{"a host twice", "    \"node1\",\n", "    \"node1\",\n    \"node1\",\n", "host node1 is there twice"},
		{"unknown step", `"sysctl": {`, `"sysctls": {`, `unknown step kind "sysctls"`},
		{"unknown field of a step", `"value": "1"`, `"value": "1", "force": true`, `unknown field "force"`},
		{"unknown field", `"intent"`, `"dryRun": true, "intent"`, `unknown field "dryRun"`},
		{"later version", "/v1\"", "/v2\"", `version is "kubexm.mensylisir.io/plan/v2"; this program reads`},
		{"something behind", "\n}\n", "\n}\n{}", "invalid character"},
		{"cut off", "\n}\n", "", "unexpected end"},
		{"not a plan", b.String(), "hello", "invalid character"},
		{"empty", b.String(), "", "unexpected end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(b.String(), tt.from, tt.to, 1)
			if text == b.String() {
				t.Fatalf("%q is not in the plan", tt.from)
			}
			_, err := plan.Read(strings.NewReader(text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := sample(f).Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"version":"kubexm.mensylisir.io/plan/v1"}`))
	f.Add([]byte(`{"version":"kubexm.mensylisir.io/plan/v1","nodes":[{"step":{"sequence":{"parts":[{"sequence":null}]}}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := plan.Read(bytes.NewReader(raw))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := p.Write(&out); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if _, err := plan.Read(&out); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}

func TestBuilderRefuses(t *testing.T) {
	module := func(steps ...step.Step) plan.Module {
		return plan.Module{Name: "m", Tasks: []plan.Task{{Name: "t", Steps: steps}}}
	}
	swap := step.New(step.Meta{Name: "swap"}, step.SwapOff{})
	await := step.New(step.Meta{Name: "await"}, step.Await{For: "api"})
	open := step.New(step.Meta{Name: "open"}, step.Savepoint{Dir: "/under"})
	commit := step.New(step.Meta{Name: "commit"}, step.Commit{Dir: "/under"})
	for _, tt := range []struct {
		name string
		lay  func(*plan.Builder)
		want string
	}{
		{"nameless host", func(b *plan.Builder) { b.Host("", module(swap)) }, "a host has no name"},
		{"host called controller", func(b *plan.Builder) { b.Host("controller", module(swap)) }, `cannot be called "controller"`},
		{"slash", func(b *plan.Builder) { b.Host("a/b", module(swap)) }, `cannot be called "a/b"`},
		{"gate on a host", func(b *plan.Builder) { b.Host("n1", module(await)) }, "n1/m/t/await: part 0: a step of kind await runs on the controller"},
		{"act on the controller", func(b *plan.Builder) { b.Gate(module(swap)) }, "controller/m/t/swap: part 0: a step of kind swapOff runs on a host"},
		{"wait beside an act", func(b *plan.Builder) {
			b.Host("n1", module(step.New(step.Meta{Name: "both"}, step.SwapOff{}, step.WaitFor{Title: "it is there"})))
		}, "n1/m/t/both: part 1: it waits for its host, and must be the only part of its step"},
		{"two gates of one name", func(b *plan.Builder) {
			b.Gate(module(await))
			b.Gate(module(step.New(step.Meta{Name: "await"}, step.Await{For: "api", Output: "x"})))
		}, "controller/m/t/await: it was added before with other content"},
		{"one step twice", func(b *plan.Builder) { b.Host("n1", module(swap, swap)) }, "node n1/m/t/swap is there twice"},
		{"output that nothing makes", func(b *plan.Builder) {
			b.Gate(module(step.New(step.Meta{Name: "a", Takes: []string{"x"}}, step.Await{For: "api"})))
		}, "takes output x, which nothing makes"},
		{"output that two make", func(b *plan.Builder) {
			b.Gate(module(step.New(step.Meta{Name: "a"}, step.Await{For: "api", Output: "x"}),
				step.New(step.Meta{Name: "b"}, step.Await{For: "api", Output: "x"})))
		}, "output x is made twice"},
		{"savepoint without a commit", func(b *plan.Builder) { b.Host("n1", module(open, swap)) }, "n1/m/t/open: no step after it commits its savepoint"},
		{"savepoint that is committed elsewhere", func(b *plan.Builder) {
			b.Host("n1", module(open))
			b.Host("n2", module(commit))
		}, "n2/m/t/commit: no step before it opens the savepoint /under"},
		{"savepoint in itself", func(b *plan.Builder) {
			again := open
			again.About.Name = "again"
			b.Host("n1", module(open, again, commit))
		}, "n1/m/t/again: n1/m/t/open has opened the savepoint /under before"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := plan.New("Test", "test")
			tt.lay(b)
			_, err := b.Plan()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestGateIsAddedOnce(t *testing.T) {
	gate := plan.Module{Name: "cluster", Tasks: []plan.Task{{Name: "api", Steps: []step.Step{
		step.New(step.Meta{Name: "api/await"}, step.Await{For: "api", Output: "api"}),
	}}}}
	b := plan.New("Test", "test")
	b.Gate(gate)
	b.Gate(gate)
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if n := p.Graph().Len(); n != 1 {
		t.Errorf("%d nodes, want 1", n)
	}
}

func TestRender(t *testing.T) {
	p := sample(t)
	for name, checks := range map[string][]plan.Check{
		"nothing.txt": nil,
		"changes.txt": {
			{Node: "node1/runtime/containerd/containerd/config", Diff: step.Diff{
				{Subject: "file /etc/registry.json", From: "sha256:11111111", To: "sha256:22222222"},
				{Subject: "file /usr/local/bin/containerd", From: "absent", To: "sha256:9f3a0000"},
				{Subject: "path /etc/containerd/old", From: "directory", To: "absent"},
				{Subject: "unit containerd.service", From: "older than /etc/containerd/config.toml", To: "restarted"},
			}},
			{Node: "node2/kubernetes/join/kubeadm/join", Unknown: "output join-token: not known yet"},
			{Node: "controller/cluster/token/token/make", Unknown: "decided after controller/cluster/api/api/await"},
			{Node: "controller/cluster/addons/dns/apply", Unknown: "decided after controller/cluster/api/api/await"},
		},
	} {
		var b strings.Builder
		if err := p.Render(&b, checks); err != nil {
			t.Fatal(err)
		}
		golden.File(t, filepath.Join("testdata", name), b.String())
	}
}

// TestUntil: who is elsewhere and takes an output of a task waits for the task's end, too. On the task's own host nodes follow
// each other, those that come before the end among them.
func TestUntil(t *testing.T) {
	task := func(name, until string, steps ...step.Meta) plan.Module {
		m := plan.Module{Name: "m", Tasks: []plan.Task{{Name: name, Until: until}}}
		for _, about := range steps {
			m.Tasks[0].Steps = append(m.Tasks[0].Steps, step.New(about, step.Directory{Path: "/" + about.Name, Mode: 0o755}))
		}
		return m
	}
	await := plan.Module{Name: "m", Tasks: []plan.Task{{Name: "gate", Steps: []step.Step{
		step.New(step.Meta{Name: "await", Takes: []string{"begun", "joined"}}, step.Await{For: "api", Output: "api"}),
	}}}}
	b := plan.New("Test", "test")
	b.Gate(await) // before what it takes is laid
	b.Host("n1",
		task("join", "told",
			step.Meta{Name: "begin", Makes: []string{"begun"}}, step.Meta{Name: "join", Takes: []string{"begun"}, Makes: []string{"joined"}},
			step.Meta{Name: "tell", Makes: []string{"told"}}),
		task("later", "", step.Meta{Name: "use", Takes: []string{"joined"}}))
	b.Host("n2", task("other", "", step.Meta{Name: "other", Takes: []string{"joined"}}, step.Meta{Name: "none"}))
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, i := range p.Graph().Order() {
		n := p.Graph().Node(i)
		text.WriteString(n.ID + " < " + strings.Join(n.Takes, " ") + "\n")
	}
	const want = `n1/m/join/begin < 
n1/m/join/join < begun
n1/m/join/tell < 
controller/m/gate/await < begun joined told
n1/m/later/use < joined
n2/m/other/other < joined told
n2/m/other/none < 
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
	roundTrip(t, p)
}

// TestLimits: they say how a step is made and not what, so the journal knows the step again; the plan is another.
func TestLimits(t *testing.T) {
	limited := func(limits plan.Limits) *plan.Plan {
		b := plan.New("Test", "test")
		b.Host("n1", plan.Module{Name: "m", Tasks: []plan.Task{{Name: "t", Limits: map[string]plan.Limits{"a": limits}, Steps: []step.Step{
			step.New(step.Meta{Name: "a", Timeout: step.Duration(time.Minute), Retry: step.Retry{Attempts: 3, Delay: 7}}, step.SwapOff{}),
			step.New(step.Meta{Name: "b"}, step.Module{Name: "overlay"}),
		}}}})
		p, err := b.Plan()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	limits := plan.Limits{Timeout: step.Duration(time.Hour), Attempts: 9, Concurrency: 2, Group: "task t"}
	free, bound := limited(plan.Limits{}), limited(limits)
	roundTrip(t, bound)
	a, b := free.Graph().Node(0).Value, bound.Graph().Node(0).Value
	if a.Digest != b.Digest {
		t.Error("a limit changes the step's digest: what is done would be done again")
	}
	if digest(t, free) == digest(t, bound) {
		t.Error("a limit does not change the plan's digest")
	}
	if m := a.Meta(); m.Timeout != step.Duration(time.Minute) || m.Retry.Attempts != 3 {
		t.Errorf("without limits it is %+v", m)
	}
	if m := b.Meta(); m.Timeout != limits.Timeout || m.Retry != (step.Retry{Attempts: 9, Delay: 7}) {
		t.Errorf("with limits it is %+v", m)
	}
	var text, json strings.Builder
	if err := errors.Join(bound.Text(&text), bound.Write(&json)); err != nil {
		t.Fatal(err)
	}
	const want = "  m/t a  within 1h0m0s  up to 9 times  on at most 2 hosts at once (task t)\n"
	if !strings.Contains(text.String(), want) {
		t.Errorf("%q is not in\n%s", want, text.String())
	}
	edited := strings.Replace(json.String(), `"attempts": 9`, `"attempts": 8`, 1)
	if _, err := plan.Read(strings.NewReader(edited)); edited == json.String() || err == nil || !strings.Contains(err.Error(), "it was edited") {
		t.Errorf("an edited limit is taken: %v", err)
	}
}

func TestDigest(t *testing.T) {
	a, b := sample(t), sample(t)
	if digest(t, a) != digest(t, b) {
		t.Error("two plans of one content have two digests")
	}
	b.Intent = "JoinWorker"
	if digest(t, a) == digest(t, b) {
		t.Error("two intents have one digest")
	}
}
