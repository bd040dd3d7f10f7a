// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// all is a restart of everything that a cluster has.
func all(t *testing.T, targets []spec.Target) component.Restart {
	t.Helper()
	r := component.Restart{Asked: asked}
	for _, c := range spec.Components {
		if _, err := pipeline.Restarts(targets, component.Restart{Components: []spec.ComponentName{c}, Asked: asked}); err == nil {
			r.Components = append(r.Components, c)
		}
	}
	return r
}

// TestRestartComponents keeps, for each way to run Kubernetes with each etcd, what is restarted on which host, and how.
func TestRestartComponents(t *testing.T) {
	var text strings.Builder
	for _, way := range ways {
		for _, etcd := range etcds {
			for _, e := range endpoints {
				balanced := e.set.by.Type == spec.LoadBalancerKeepalived
				if e.name != endpoints[0].name && !(balanced && etcd.name == etcds[0].name && way == ways[0]) {
					continue
				}
				// The others of a role are restarted in the same way, each after the one before.
				targets := slices.DeleteFunc(targetsOf(members(t, way, etcd.set, e.set)), func(t spec.Target) bool {
					return strings.HasSuffix(t.Host.Name, "3") || strings.HasSuffix(t.Host.Name, "2") && t.Host.Role != spec.RoleEtcd
				})
				r := all(t, targets)
				fmt.Fprintf(&text, "===== %s with etcd %s and %s: %s\n", config.Word(way), etcd.name, e.name, spec.JoinComponents(r.Components))
				p, err := pipeline.RestartComponents("prod", targets, r)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Text(&text); err != nil {
					t.Fatal(err)
				}
				roundTrip(t, p)
			}
		}
	}
	golden.File(t, "testdata/restart-components.golden", text.String())
}

// TestRestartOfLoadBalancers: hosts of their own have a proxy and what holds the address; what Nodes have is static pods.
func TestRestartOfLoadBalancers(t *testing.T) {
	r := component.Restart{Components: []spec.ComponentName{spec.ComponentLoadBalancer}, Asked: asked}
	for _, e := range endpoints {
		targets := targetsOf(members(t, spec.KubernetesKubeadm, etcds[0].set, e.set))
		hosts, err := pipeline.Restarts(targets, r)
		if want := e.set.by.Type == spec.LoadBalancerKeepalived; want != (err == nil) || want && len(hosts) != 2 {
			t.Errorf("%s: %v, %v", e.name, hosts, err)
		}
		if err != nil && !strings.Contains(err.Error(), "has no LoadBalancer that can be restarted on its hosts; it has ContainerRuntime,Kubelet,Etcd,") {
			t.Errorf("%s: %v", e.name, err)
		}
	}
}

func TestRestartRefuses(t *testing.T) {
	kubeadm := targetsOf(members(t, spec.KubernetesKubeadm, etcds[0].set, endpoints[0].set))
	external := targetsOf(members(t, spec.KubernetesKubexm, etcds[3].set, endpoints[0].set))
	worker := []spec.Target{kubeadm[len(kubeadm)-1]}
	for name, tc := range map[string]struct {
		targets    []spec.Target
		components []spec.ComponentName
		want       string
	}{
		"nothing":                     {kubeadm, nil, "no component is named: there are ContainerRuntime,"},
		"a DaemonSet":                 {kubeadm, []spec.ComponentName{spec.ComponentKubelet, spec.ComponentProxy}, "has no Proxy that can be restarted on its hosts; it has ContainerRuntime,Kubelet,Etcd,APIServer,ControllerManager,Scheduler; what is a DaemonSet is restarted by kubectl -n kube-system rollout restart daemonset kube-proxy"},
		"another's etcd":              {external, []spec.ComponentName{spec.ComponentEtcd}, "has no Etcd that can be restarted on its hosts"},
		"what only others of it have": {worker, []spec.ComponentName{spec.ComponentEtcd, spec.ComponentAPIServer}, "there is no Etcd,APIServer to restart: w1 has ContainerRuntime,Kubelet"},
	} {
		if p, err := pipeline.RestartComponents("prod", tc.targets,
			component.Restart{Components: tc.components, Asked: asked}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	// What a host has of what is asked for is restarted, and no more.
	p, err := pipeline.RestartComponents("prod", worker, component.Restart{
		Components: []spec.ComponentName{spec.ComponentEtcd, spec.ComponentKubelet}, Asked: asked,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := namesOf(p); !strings.Contains(got, "restart/kubelet") || strings.Contains(got, "etcd") {
		t.Errorf("a worker has %s", got)
	}
}

func namesOf(p *plan.Plan) string {
	var names []string
	for i := range p.Graph().Len() {
		names = append(names, p.Graph().Node(i).Value.Name)
	}
	return strings.Join(names, " ")
}

// leased is a cluster that keeps the turn of the control plane.
type leased struct {
	step.Cluster
	mu     sync.Mutex
	holder string
	taken  []string
}

func (l *leased) TakeTurn(_ context.Context, group string, want, _ step.Turn) (step.Turn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == "" {
		l.holder = want.Holder
		l.taken = append(l.taken, group+" of "+want.Holder)
	}
	return step.Turn{Holder: l.holder, Term: want.Term}, nil
}

func (l *leased) HasTurn(_ context.Context, _, holder string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holder == holder, nil
}

func (l *leased) EndTurn(_ context.Context, _, holder string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == holder {
		l.holder = ""
	}
	return nil
}

// TestRestartsTakeTurns: three hosts that are asked at once, as objects may, restart one after the other, each once.
func TestRestartsTakeTurns(t *testing.T) {
	for _, way := range ways {
		t.Run(config.Word(way), func(t *testing.T) {
			var mu sync.Mutex
			var open, restarted []string // hosts whose savepoint is open, and that have restarted etcd
			cluster, slots := &leased{}, engine.NewSlots()
			machines := map[string]*fake.Machine{}
			act := func(name string, m *fake.Machine, c host.Command) host.Result {
				mu.Lock()
				defer mu.Unlock()
				switch dir := "/etc/kubernetes/kubexm-change"; {
				case c.Title == "open the savepoint":
					if open = append(open, name); len(open) > 1 {
						t.Errorf("%v restart at once", open)
					}
					m.Put(dir, "", 0o700)
				case c.Title == "commit":
					open = slices.DeleteFunc(open, func(other string) bool { return other == name })
					m.Remove(dir)
				case c.Title == "restart etcd":
					restarted = append(restarted, name)
				case strings.Contains(c.Argv[len(c.Argv)-2], "is_another_since || {") && !slices.Contains(restarted, name):
					return host.Result{ExitCode: 1} // the check of etcd's restart
				}
				return host.Result{}
			}
			r := component.Restart{Components: []spec.ComponentName{spec.ComponentEtcd}, Asked: asked}
			targets := slices.DeleteFunc(targetsOf(members(t, way, etcds[1].set, endpoints[0].set)), func(t spec.Target) bool {
				return t.Host.Role != spec.RoleControlPlane
			})
			for _, target := range targets {
				name := target.Host.Name
				m := fake.New(name)
				m.Put("/etc/kubernetes/kubelet.conf", "", 0o600)
				m.OnCommand = func(m *fake.Machine, c host.Command) host.Result { return act(name, m, c) }
				machines[name] = m
			}
			for range 2 { // the second time, nothing is done
				var hosts sync.WaitGroup
				for _, target := range targets {
					p, err := pipeline.RestartComponents("prod", []spec.Target{target}, r)
					if err != nil {
						t.Fatal(err)
					}
					e := engine.New(engine.Options{
						Holder: "test", Slots: slots,
						Dial:    func(_ context.Context, name string) (host.Host, error) { return machines[name].Connect(), nil },
						Cluster: func(context.Context) (step.Cluster, error) { return cluster, nil },
					})
					hosts.Go(func() {
						if _, err := e.Run(t.Context(), p); err != nil {
							t.Errorf("%+v", err)
						}
					})
				}
				hosts.Wait()
				slices.Sort(restarted)
				slices.Sort(cluster.taken)
				if got := strings.Join(restarted, " "); got != "cp1 cp2 cp3" || len(open) > 0 || cluster.holder != "" {
					t.Errorf("etcd is restarted on %s; still open are %v, and %q has the turn", got, open, cluster.holder)
				}
				if got := strings.Join(cluster.taken, ", "); got != "control-plane of cp1, control-plane of cp2, control-plane of cp3" {
					t.Errorf("turns are %s", got)
				}
			}
		})
	}
}
