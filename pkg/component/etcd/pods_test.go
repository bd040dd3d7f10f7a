// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package etcd_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/containerd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: /etc/kubernetes/manifests
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
authentication: {webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
`
	kubeletUnit = `[Unit]
After=containerd.service
[Service]
ExecStart=/usr/local/bin/kubelet --config=/etc/kubelet.yaml
Restart=always
[Install]
WantedBy=multi-user.target
`
)

func (m *machines) image(name string) step.Image {
	m.t.Helper()
	refs, err := m.bundle.Images(runtime.GOARCH).Refs(name)
	if err != nil {
		m.t.Fatal(err)
	}
	a, err := m.bundle.ImageArchive(runtime.GOARCH, refs[0])
	if err != nil {
		m.t.Fatal(err)
	}
	return step.Image{Ref: refs[0], Digest: a.Images[0].Digest, Size: a.Size}
}

// kubelet is one that runs static pods and knows no cluster.
func (m *machines) kubelet() []step.Step {
	programs := append(m.programs("containerd"), m.programs("runc")...)
	pause := m.image("pause")
	return []step.Step{
		containerd.Claim("/var/lib/containerd", step.Residue{}), containerd.InstallPrograms(programs),
		containerd.Config(containerd.Settings{DataDir: "/var/lib/containerd", PauseImage: pause.Ref, RestrictOOMScore: true}),
		containerd.Service(programs), containerd.Images(runtime.GOARCH, []step.Image{pause, m.image("etcd")}), containerd.Pods(),
		step.New(step.Meta{Name: "kubelet/alone"}, append(step.Programs("/usr/local/bin", m.programs("kubernetes", "kubelet")),
			step.File{Path: "/etc/kubelet.yaml", Mode: 0o644, Content: step.Literal(kubeletConfig)},
			step.File{Path: "/etc/systemd/system/kubelet.service", Mode: 0o644, Content: step.Literal(kubeletUnit)},
			step.Service{Name: "kubelet.service"})...),
	}
}

func TestPodsOnHosts(t *testing.T) {
	t.Parallel()
	m := newMachines(t, 2, etcd.Pod)
	m.must(2)
	m.wantVoters(2)
	const pid = `ss -Htlnp 'sport = :2379' | grep -o 'pid=[0-9]*' | sort -u`
	first, second := m.sh(0, pid), m.sh(1, pid)
	m.spec.SnapshotCount = 6000
	m.must(2)
	m.wantVoters(2)
	if m.sh(0, pid) == first || m.sh(1, pid) == second {
		t.Error("the pod was changed, and etcd runs as before")
	}
	m.testRestart(pid)
	m.must(1)
	m.wantVoters(1)
	m.testLostData()
	if _, err := m.engine().Undo(t.Context(), engine.Undo{Hosts: []string{m.pool.Hosts[1].Name}}); err != nil {
		t.Fatal(err)
	}
	if left := m.sh(1, "ls -d /var/lib/etcd /etc/kubexm /etc/kubernetes 2>/dev/null; pidof etcd || true"); left != "" {
		t.Errorf("what is left: %s", left)
	}
}

// testRestart restarts the member of the second host, once for each request: its manifest stays as it is, and so does the other member.
func (m *machines) testRestart(pid string) {
	m.t.Helper()
	h := m.pool.Hosts[1]
	var members []spec.Member
	for _, one := range m.pool.Hosts {
		members = append(members, spec.Member{Name: one.Name, Role: spec.RoleControlPlane, Address: one.Address})
	}
	s := etcd.Settings{
		Name: h.Name, Address: h.Address, Cluster: "prod", Spec: m.spec, Members: members,
		Certificates: spec.Certificates{ValidityDays: 365}, Form: m.form,
	}
	restart := func(asked time.Time) int {
		m.t.Helper()
		r := component.Restart{Components: []spec.ComponentName{spec.ComponentEtcd}, Asked: asked}
		in := component.Inputs{Target: spec.Target{Host: spec.Host{Name: h.Name, Role: spec.RoleEtcd}}}
		b := plan.New("Restart", "test")
		b.Host(h.Name, plan.Module{Name: "restart", Tasks: []plan.Task{{Name: "restart", Steps: []step.Step{r.Request(in), etcd.Restart(s, r)}}}})
		p, err := b.Plan()
		if err != nil {
			m.t.Fatal(err)
		}
		report, err := m.engine().Run(m.t.Context(), p)
		if err != nil {
			m.t.Fatal(err)
		}
		return report.Total().Changed
	}
	const manifest = "sha256sum </etc/kubernetes/manifests/etcd.yaml"
	first, was, written := m.sh(0, pid), m.sh(1, pid), m.sh(1, manifest)
	asked := time.Now()
	for i, want := range []int{2, 0} {
		if changed := restart(asked); changed != want {
			m.t.Errorf("time %d, %d steps changed, want %d", i, changed, want)
		}
	}
	now := m.sh(1, pid)
	if now == was || now == "" || m.sh(0, pid) != first || m.sh(1, manifest) != written {
		m.t.Errorf("etcd is %s and was %s, the other one %s and was %s", now, was, m.sh(0, pid), first)
	}
	m.wantVoters(2)
	if restart(asked.Add(time.Second)); m.sh(1, pid) == now {
		m.t.Error("it was asked for again, and etcd runs as before")
	}
	m.must(2)
}

// testLostData moves the data of the first host away, whose manifest says that it begins a cluster: neither the kubelet nor a run
// begins another, whether the container is started again or the pod.
func (m *machines) testLostData() {
	m.t.Helper()
	m.ctl(0, "put color blue")
	if began := m.sh(0, "grep -A 1 ETCD_INITIAL_CLUSTER_STATE /etc/kubernetes/manifests/etcd.yaml"); !strings.Contains(began, "value:") {
		m.t.Fatal(began)
	}
	const refused = `timeout 120 sh -c 'until journalctl -u kubelet --since @'$since' | grep -q /etc/kubexm/etcd/begun; do sleep 0.5; done' &&
		! ls /var/lib/etcd/member/wal/*.wal`
	m.sh(0, `since=$(date +%s); mv /var/lib/etcd /var/lib/elsewhere; pkill -KILL -x etcd; `+refused)
	m.sh(0, `since=$(date +%s); mv /etc/kubernetes/manifests/etcd.yaml /root/; systemctl restart kubelet;
		mv /root/etcd.yaml /etc/kubernetes/manifests/; `+refused)
	if err := m.run(1); !strings.Contains(fmt.Sprintf("%+v", err), "has begun before") {
		m.t.Fatalf("with its data gone it fails with %v", err)
	}
	m.sh(0, "! ls /var/lib/etcd/member/wal/*.wal; rm -rf /var/lib/etcd; mv /var/lib/elsewhere /var/lib/etcd")
	m.must(1)
	m.wantVoters(1)
	if got := m.ctl(0, "get color --print-value-only"); got != "blue" {
		m.t.Errorf("it has %q", got)
	}
}
