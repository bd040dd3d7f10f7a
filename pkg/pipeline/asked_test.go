// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// hookedAndLimited has hooks and limits of several kinds.
func hookedAndLimited(t *spec.Target) {
	t.Cluster.Etcd.Type = spec.EtcdKubeadm
	t.Cluster.Hooks = []spec.Hook{
		{Name: "data-disk", Task: "containerd", When: spec.HookBefore, Commands: []string{"mkfs /dev/sdb\nmount /dev/sdb /data", "df /data"}},
		{Name: "proxy", Task: "containerd", When: spec.HookBefore, Commands: []string{"true"}},
		{Name: "register", Task: "kubeadm", When: spec.HookAfter, Commands: []string{"cmdb add"}},
		{Name: "watch", Task: "etcd", When: spec.HookAfter, Commands: []string{"true"}}, // etcd is kubeadm's
	}
	t.Cluster.Limits = []spec.Limit{
		{Task: "images", Concurrency: 10, TimeoutSeconds: 3600},
		{Step: "kubeadm/join", Attempts: 1},
		{Task: "kubeadm", TimeoutSeconds: 900},
		{Step: "hook/data-disk", Concurrency: 1, Attempts: 2},
		{Task: "ready", TimeoutSeconds: 1800},
	}
	if t.Host.Role == spec.RoleWorker {
		t.Node.Hooks = []spec.Hook{{Name: "gpu", Task: "containerd", When: spec.HookAfter, Commands: []string{"nvidia-ctk"}}}
		t.Node.Limits = []spec.Limit{{Task: "images", Concurrency: 2}}
	}
}

func TestAsked(t *testing.T) {
	nodes := []pipeline.Node{
		node("cp1", "192.168.0.11", spec.RoleControlPlane, machine, hookedAndLimited),
		node("w1", "192.168.0.21", spec.RoleWorker, machine, hookedAndLimited),
	}
	for _, n := range nodes {
		if errs := n.Target.Validate(field.NewPath("target")); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
	}
	p, err := pipeline.CreateCluster("prod", nodes, bundle(t))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := p.Text(&text); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/asked.golden", text.String())
	roundTrip(t, p)
}

// kinds plans every kind of cluster, changed by the function.
func kinds(t *testing.T, change func(*spec.Target), f func(name string, p *plan.Plan)) {
	t.Helper()
	b := bundle(t)
	for _, way := range ways {
		for _, etcd := range etcds {
			for _, endpoint := range endpoints {
				nodes := members(t, way, etcd.set, endpoint.set)
				for i := range nodes {
					change(&nodes[i].Target)
				}
				p, err := pipeline.CreateCluster("prod", nodes, b)
				if err != nil {
					t.Fatal(err)
				}
				f(fmt.Sprintf("%s-%s-%s", config.Word(way), etcd.name, endpoint.name), p)
			}
		}
		// Those with another runtime differ in nothing else.
		nodes := members(t, way, etcds[0].set, endpoints[0].set)
		for i := range nodes {
			crio(&nodes[i].Target)
			change(&nodes[i].Target)
		}
		p, err := pipeline.CreateCluster("prod", nodes, b)
		if err != nil {
			t.Fatal(err)
		}
		f(fmt.Sprintf("%s with CRI-O", config.Word(way)), p)
	}
}

// TestHooksOfEveryTask has, in every kind of cluster, hooks on both sides of each task: on its host they are around all of the
// task, and anyone who takes from elsewhere what the task makes waits for what is after it.
func TestHooksOfEveryTask(t *testing.T) {
	var hooks []spec.Hook
	for _, task := range spec.Tasks() {
		if task.Place == spec.OnHosts {
			hooks = append(hooks,
				spec.Hook{Name: "b-" + task.Name, Task: task.Name, When: spec.HookBefore, Commands: []string{"true"}},
				spec.Hook{Name: "a1-" + task.Name, Task: task.Name, When: spec.HookAfter, Commands: []string{"true"}},
				spec.Hook{Name: "a2-" + task.Name, Task: task.Name, When: spec.HookAfter, Commands: []string{"true"}})
		}
	}
	hooked, waited := map[string]bool{}, 0
	look := func(kind string, p *plan.Plan) {
		roundTrip(t, p)
		g := p.Graph()
		byTask := map[string][]int{} // host/task → nodes in their order
		for _, i := range g.Order() {
			if n := g.Node(i).Value; n.Host != plan.Controller {
				byTask[n.Host+"/"+n.Task] = append(byTask[n.Host+"/"+n.Task], i)
			}
		}
		for at, nodes := range byTask {
			host, task, _ := strings.Cut(at, "/")
			hooked[task] = true
			var names []string
			for _, i := range nodes {
				names = append(names, g.Node(i).Value.Name)
			}
			first, last := names[0], names[len(names)-2:]
			if first != "hook/b-"+task || !slices.Equal(last, []string{"hook/a1-" + task, "hook/a2-" + task}) ||
				len(slices.Compact(names)) != len(nodes) {
				t.Errorf("%s: on %s the task %s is %v", kind, host, task, names)
			}
			end := nodes[len(nodes)-1]
			for _, i := range nodes {
				for _, taker := range g.Downstream(i) {
					if g.Node(taker).Value.Host == host {
						continue
					}
					if waited++; !slices.Contains(g.Upstream(taker), end) {
						t.Errorf("%s: %s takes what %s makes and does not wait for %s", kind, g.Node(taker).ID, g.Node(i).ID, g.Node(end).ID)
					}
				}
			}
		}
	}
	hook := func(target *spec.Target) { target.Cluster.Hooks = hooks }
	kinds(t, hook, look)
	for _, way := range ways {
		p, err := pipeline.WithdrawAPIServer(node("cp1", "192.168.0.11", spec.RoleControlPlane, machine, by(way), hook).Target)
		if err != nil {
			t.Fatal(err)
		}
		look("a host that leaves", p)
	}
	for _, h := range hooks {
		if !hooked[h.Task] {
			t.Errorf("no kind of cluster has the task %s", h.Task)
		}
	}
	if waited < 100 {
		t.Errorf("only %d nodes take something from another host: this test does not see them", waited)
	}
}

// TestTasksAreKnown: what hooks and limits may name is what plans have. It is where their list comes from.
func TestTasksAreKnown(t *testing.T) {
	type place struct {
		task  string
		where spec.Place
	}
	found := map[place]map[string]bool{}
	follows := map[string]bool{}
	look := func(p *plan.Plan) {
		for i := range p.Graph().Len() {
			n := p.Graph().Node(i).Value
			at, name := place{n.Task, spec.OnHosts}, n.Name
			switch {
			case p.Intent == "RenewCertificates":
				at.where = spec.OnRequest
			case n.Host == plan.Controller:
				at.where = spec.OnController
				for _, task := range []string{"drain", "manifest", "ready", "verify"} {
					if host, ofHost := strings.CutPrefix(at.task, task+"-"); ofHost {
						at.task, name = task, strings.TrimSuffix(name, "-"+host)
					}
				}
			}
			if about := n.Meta(); about.Follows != "" {
				follows[fmt.Sprintf("%s: %s", name, about.Follows)] = true
			}
			if found[at] == nil {
				found[at] = map[string]bool{}
			}
			found[at][name] = true
		}
	}
	b := bundle(t)
	kinds(t, func(*spec.Target) {}, func(_ string, p *plan.Plan) { look(p) })
	for _, s := range scenarios(b) {
		p, err := s.make()
		if err != nil {
			t.Fatal(err)
		}
		look(p)
	}
	resolved := machine
	resolved.Nameservers = []string{"127.0.0.53"}
	resolving, err := pipeline.JoinWorker(node("w1", "192.168.0.21", spec.RoleWorker, resolved, func(t *spec.Target) {
		t.Cluster.Kubernetes.Type = spec.KubernetesKubexm
	}), b)
	if err != nil {
		t.Fatal(err)
	}
	look(resolving)
	for _, way := range ways {
		for _, etcd := range etcds {
			p, err := pipeline.RenewCertificates("prod", targetsOf(members(t, way, etcd.set, endpoints[0].set)), nil, nil, asked)
			if err != nil {
				t.Fatal(err)
			}
			look(p)
		}
		p, err := pipeline.WithdrawAPIServer(node("cp1", "192.168.0.11", spec.RoleControlPlane, machine, by(way)).Target)
		if err != nil {
			t.Fatal(err)
		}
		look(p)
	}
	// By these, hosts follow each other while all else waits for an approval.
	golden.File(t, "testdata/follows.golden", strings.Join(slices.Sorted(maps.Keys(follows)), "\n")+"\n")
	var tasks strings.Builder
	for _, at := range slices.SortedFunc(maps.Keys(found), func(a, b place) int { return strings.Compare(a.task, b.task) }) {
		fmt.Fprintf(&tasks, "\t\t{%q, %s, []string{", at.task, [...]string{"OnHosts", "OnController", "OnRequest"}[at.where])
		line := len(at.task)
		for i, s := range slices.Sorted(maps.Keys(found[at])) {
			switch line += len(s) + 4; {
			case i > 0 && line > 100:
				tasks.WriteString(",\n\t\t\t")
				line = 0
			case i > 0:
				tasks.WriteString(", ")
			}
			fmt.Fprintf(&tasks, "%q", s)
		}
		tasks.WriteString("}},\n")
	}
	golden.File(t, "../spec/zz_generated.tasks.go", fmt.Sprintf(tasksFile, tasks.String()))
}

const tasksFile = `// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Code generated by go test ./pkg/pipeline -update. DO NOT EDIT.

package spec

// Tasks are all tasks that plans may have, with what is a host's name in a task's or step's name left out (ready-<host>). The steps
// of hooks are not among them.
func Tasks() []Task {
	return []Task{
%s	}
}
`

// TestHooksRun on a host: in their places, once, again when they are changed, and from where they failed.
func TestHooksRun(t *testing.T) {
	m := fake.New("lb1")
	m.Put("/etc/hosts", "127.0.0.1 localhost\n", 0o644)
	m.SetSysctl("kernel.hostname", "localhost")
	m.Available = map[string]string{"curl": "7.88.1-10", "haproxy": "2.6.12-1", "keepalived": "1:2.2.7-1"}
	for _, unit := range []string{"haproxy.service", "keepalived.service"} { // younger than all that they watch: nothing reloads here
		m.SetUnit(unit, host.UnitState{Load: "loaded", Active: "active", File: "enabled", Since: time.Now().Add(time.Hour)})
	}
	var ran []string
	fails := ""
	m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
		line := string(c.Stdin.Reveal()) // so that it is not to be seen in the list of processes
		if c.Argv[0] == "/bin/sh" && strings.HasPrefix(line, "hook ") {
			ran = append(ran, strings.TrimPrefix(line, "hook "))
			if fails != "" && strings.HasSuffix(line, fails) {
				return host.Result{ExitCode: 3, Stderr: []byte("no such disk: hunter2hunter2")}
			}
		}
		return host.Result{}
	}
	hooks := []spec.Hook{
		{Name: "disk", Task: "system", When: spec.HookBefore, Commands: []string{"hook mkfs", "hook mount"}},
		{Name: "told", Task: "haproxy", When: spec.HookAfter, Commands: []string{"hook tell"}},
		{Name: "none", Task: "containerd", When: spec.HookAfter, Commands: []string{"hook never"}},
	}
	limits := []spec.Limit(nil)
	e := engine.New(engine.Options{
		Holder: "test", Dial: func(context.Context, string) (host.Host, error) { return m.Connect(), nil },
	})
	run := func() ([]string, error) {
		t.Helper()
		n := node("lb1", "192.168.0.6", spec.RoleLoadBalancer, machine, func(target *spec.Target) {
			target.Cluster.ControlPlaneEndpoint, target.Cluster.LoadBalancer = endpoints[1].set.at, endpoints[1].set.by
			target.Cluster.Hooks, target.Cluster.Limits = hooks, limits
			target.Members = []spec.Member{{Name: "cp1", Role: spec.RoleControlPlane, Address: "192.168.0.11"}}
		})
		p, err := pipeline.LoadBalancer(n, bundle(t))
		if err != nil {
			t.Fatal(err)
		}
		ran = nil
		_, err = e.Run(t.Context(), p)
		return ran, err
	}
	expect := func(why string, want ...string) {
		t.Helper()
		if got, err := run(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v were run (%v), want %v", why, got, err, want)
		}
	}

	fails = "mount"
	_, err := run()
	var failed *engine.Error
	if !errors.As(err, &failed) || len(failed.Failures) != 1 {
		t.Fatalf("a hook that fails: %v", err)
	}
	if f := failed.Failures[0]; f.Host != "lb1" || f.Task != "system" || f.Step != "hook/disk" || !strings.Contains(f.Output, "no such disk") {
		t.Errorf("the failure is %+v", f)
	}
	fails = ""
	expect("after a failure, from its first line", "mkfs", "mount", "tell")
	expect("once")
	limits = []spec.Limit{{Step: "hook/disk", TimeoutSeconds: 7}, {Task: "system", Attempts: 2}}
	expect("with other limits")
	hooks[1].Commands = []string{"hook tell all"}
	expect("what was changed", "tell all")
	hooks[0].Task = "user"
	expect("what was moved", "mkfs", "mount")
	hooks = append(hooks, spec.Hook{Name: "new", Task: "keepalived", When: spec.HookBefore, Commands: []string{"hook new"}})
	expect("what is new, on a host that is done", "new")
}
