// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// restart has components restarted that were asked for at a time: as a run does that was not cut.
func (p *controlPlane) restart(asked time.Time, stop string, components ...spec.ComponentName) (differed []string, log, failure string) {
	p.t.Helper()
	r := component.Restart{Components: components, Asked: asked}
	for _, c := range components {
		name := strings.Replace(component.RestartRequest(c), "/var/lib/kubexm/", "kubexm/", 1)
		if text := asked.String(); p.read(name) != text {
			p.write(name, text)
		}
	}
	cluster, node := of(90)
	return p.converge(kubeadm.Restart(cluster, node, r, nil), stop)
}

// TestRestart: what was asked for is restarted in order, once for each request, with the manifests that there are, and is no drift.
func TestRestart(t *testing.T) {
	p := newControlPlane(t)
	p.write("ssl/admin-n1.pem", "")
	if _, _, failure := p.follow(); failure != "" {
		t.Fatal(failure)
	}
	p.write("ssl/admin-n1.pem", "")
	first := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		what       string
		asked      time.Time
		components []spec.ComponentName
		differ     string
		does       string
	}{
		{"the scheduler", first, []spec.ComponentName{spec.ComponentScheduler}, "kubeadm/begin-change kubeadm/scheduler kubeadm/end-change", "kubelet restarts kube-scheduler"},
		{"the same request", first, []spec.ComponentName{spec.ComponentScheduler}, "", ""},
		{
			"etcd, and what uses it", first.Add(time.Minute), []spec.ComponentName{spec.ComponentEtcd, spec.ComponentAPIServer, spec.ComponentControllerManager},
			"kubeadm/begin-change kubeadm/etcd kubeadm/apiserver kubeadm/controller-manager kubeadm/end-change",
			"lock, kubelet restarts etcd, unlock, kubelet restarts kube-apiserver, kubelet restarts kube-controller-manager",
		},
		{"another request", first.Add(time.Hour), []spec.ComponentName{spec.ComponentAPIServer}, "kubeadm/begin-change kubeadm/apiserver kubeadm/end-change", "kubelet restarts kube-apiserver"},
		{"nothing of these", first.Add(time.Hour), []spec.ComponentName{spec.ComponentKubelet}, "", ""},
	} {
		before := map[string]string{}
		for name, content := range p.files() {
			before[name] = unmarked(content)
		}
		differed, does, failure := p.restart(tc.asked, "", tc.components...)
		if strings.Join(differed, " ") != tc.differ || does != tc.does || failure != "" {
			t.Errorf("%s: %q differ, it does %q, and fails with %q", tc.what, differed, does, failure)
		}
		for name, content := range p.files() {
			if unmarked(content) != before[name] {
				t.Errorf("%s: %s is\n%s", tc.what, name, content)
			}
		}
		if differed, does, failure := p.follow(); differed != nil || does != "" || failure != "" {
			t.Errorf("%s: a plan finds that %q differ, does %q, and fails with %q", tc.what, differed, does, failure)
		}
	}
}

// TestRestartIsCut: the run that follows does what is left, and nothing twice.
func TestRestartIsCut(t *testing.T) {
	asked := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	both := []spec.ComponentName{spec.ComponentAPIServer, spec.ComponentScheduler}
	for _, stop := range []string{"kubeadm/begin-change", "kubeadm/apiserver", "kubeadm/apiserver-ready",
		"kubeadm/scheduler", "kubeadm/scheduler-ready", "kubeadm/end-change"} {
		p := newControlPlane(t)
		if _, _, failure := p.follow(); failure != "" {
			t.Fatal(failure)
		}
		_, before, failure := p.restart(asked, stop, both...)
		if failure != "" {
			t.Fatal(failure)
		}
		_, after, failure := p.restart(asked, "", both...)
		did := slices.DeleteFunc([]string{before, after}, func(s string) bool { return s == "" })
		if got := strings.Join(did, ", "); got != "kubelet restarts kube-apiserver, kubelet restarts kube-scheduler" || failure != "" {
			t.Errorf("cut after %s it does %q, and fails with %q", stop, got, failure)
		}
		if _, err := os.Stat(p.path("kubexm-change")); err == nil {
			t.Errorf("cut after %s, it leaves the change open", stop)
		}
	}
}

// TestRestartTakesTurns: one control plane host of the cluster at a time, whoever asks, as for changes.
func TestRestartTakesTurns(t *testing.T) {
	cluster, node := of(90)
	etcdOfUnits := step.New(step.Meta{Name: "etcd/restart"})
	steps := kubeadm.Restart(cluster, node,
		component.Restart{Components: []spec.ComponentName{spec.ComponentScheduler}}, []step.Step{etcdOfUnits})
	var names []string
	for _, s := range steps {
		names = append(names, s.Meta().Name)
	}
	if got, want := strings.Join(names, " "), "kubeadm/begin-change etcd/restart kubeadm/serves kubeadm/scheduler kubeadm/scheduler-ready kubeadm/end-change"; got != want {
		t.Errorf("they are %s, want %s", got, want)
	}
	if opens, _ := step.SavepointOf(steps[0]); opens == nil || opens.Turn != component.ControlPlaneTurn {
		t.Errorf("it opens %+v", opens)
	}
}

// TestEtcdRestartKeepsQuorum: etcd's pod is not restarted while the others would have no quorum without it, whether somebody asks for it or
// its manifest is to change; what leaves it running goes on, and one that is away is brought back by nobody's leave.
func TestEtcdRestartKeepsQuorum(t *testing.T) {
	p := newControlPlane(t)
	p.write("ssl/admin-n1.pem", "")
	p.write("members", "1, started, n0, https://10.0.0.9:2380, https://10.0.0.9:2379, false\n"+
		"2, started, n1, https://10.0.0.1:2380, https://10.0.0.1:2379, false\n"+
		"3, started, n2, https://10.0.0.8:2380, https://10.0.0.8:2379, false\n"+
		"4, started, n3, https://10.0.0.7:2380, https://10.0.0.7:2379, true\n") // without a vote
	p.write("silent", "https://10.0.0.8:2379\n")
	// etcd's manifest is what it was.
	if _, does, failure := p.follow(); failure != "" || strings.Contains(does, "restarts etcd") {
		t.Fatalf("it does %q, and fails with %q", does, failure)
	}
	asked := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	const refusal = "etcd on n1 was not restarted: it would cost the cluster its quorum, because these members do not answer: n2 (https://10.0.0.8:2380)"
	before := p.read("manifests/etcd.yaml")
	refused := func(what, does, failure string) {
		t.Helper()
		if !strings.Contains(failure, refusal) || does != "lock, unlock" || p.read("manifests/etcd.yaml") != before {
			t.Errorf("%s: it does %q, and fails with %q", what, does, failure)
		}
	}
	_, does, failure := p.restart(asked, "", spec.ComponentEtcd)
	refused("asked for", does, failure)
	p.renders("etcd.yaml", strings.Replace(before, "    - --name=n1\n", "    - --name=n1\n    - --snapshot-count=1\n", 1))
	cluster, node := of(90)
	cluster.Spec.Etcd.SnapshotCount = 1
	_, does, failure = p.converge(kubeadm.StaticPods(cluster, node), "")
	refused("another manifest", does, failure)

	if err := os.Remove(p.path("silent")); err != nil {
		t.Fatal(err)
	}
	if _, does, failure := p.restart(asked, "", spec.ComponentEtcd); does != "lock, kubelet restarts etcd, unlock" || failure != "" {
		t.Errorf("all answer: it does %q, and fails with %q", does, failure)
	}
	p.write("silent", "https://10.0.0.8:2379\n")
	p.write("away", "")
	if _, does, failure = p.converge(kubeadm.StaticPods(cluster, node), ""); !strings.HasPrefix(does, "kubelet restarts etcd") || failure != "" {
		t.Errorf("it is away: it does %q, and fails with %q", does, failure)
	}
}

// TestRestartWaitsForRestore, on a control plane host whose etcd runs elsewhere too: what uses etcd has ended there.
func TestRestartWaitsForRestore(t *testing.T) {
	in := component.Inputs{Target: *target(spec.RoleControlPlane)}
	in.Target.Cluster.Etcd.Hosts = spec.Hosts{Names: []string{"etcd1"}}
	if in.RunsEtcd() {
		t.Fatal("it has a member")
	}
	p := newControlPlane(t)
	request := component.Restart{Components: []spec.ComponentName{spec.ComponentAPIServer}, Asked: time.Now()}.Request(in).(step.Sequence)
	free := request.Parts[0].(step.Command)
	if said, ok := p.run(t.Context(), free.Done.Check); !ok {
		t.Errorf("no restore is under way, and it says %q", said)
	}
	for _, mark := range []string{"kubexm/etcd-restore/halted", "kubexm/etcd-restore/under-way"} {
		p.write(mark, "")
		for _, argv := range [][]string{free.Done.Check, free.Argv} {
			if said, ok := p.run(t.Context(), argv); ok || !strings.Contains(said, "etcd is being restored ("+p.path(mark)+")") {
				t.Errorf("with %s: %t, it says %q", mark, ok, said)
			}
		}
		if err := os.Remove(p.path(mark)); err != nil {
			t.Fatal(err)
		}
	}
}
