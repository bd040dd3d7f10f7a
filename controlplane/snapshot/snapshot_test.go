// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

var born = metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))

func object() *controlplanev1.KubexmControlPlane {
	return &controlplanev1.KubexmControlPlane{
		ObjectMeta: metav1.ObjectMeta{Name: "prod", UID: "1"}, Spec: controlplanev1.KubexmControlPlaneSpec{Version: "v1.36.3"},
	}
}

// machine is a control plane Machine of object.
func machine(name string, change ...func(*clusterv1.Machine)) clusterv1.Machine {
	m := clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: born, Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(object(), controlplanev1.GroupVersion.WithKind("KubexmControlPlane"))},
		},
		Spec: clusterv1.MachineSpec{Version: "v1.36.3"},
	}
	for _, c := range change {
		c(&m)
	}
	return m
}

func worker(m *clusterv1.Machine)   { m.Labels, m.OwnerReferences = nil, nil }
func stranger(m *clusterv1.Machine) { m.OwnerReferences[0].UID = "2" }

// joined is a Machine whose host is a part of the control plane.
func joined(m *clusterv1.Machine) { m.Status.NodeRef.Name = m.Name }

func deleting(m *clusterv1.Machine) { m.DeletionTimestamp = &born }

// well is a cluster in which nothing is wrong with the Machines of these names.
func well(names ...string) *snapshot.Workload {
	w := &snapshot.Workload{Initialized: true, Components: map[string][]snapshot.Component{}}
	for _, name := range names {
		w.Components[name] = []snapshot.Component{{Condition: snapshot.EtcdPodHealthy}}
	}
	return w
}

// ill is the same, but for one of them.
func ill(name string, others ...string) *snapshot.Workload {
	w := well(others...)
	w.Components[name] = []snapshot.Component{{Condition: snapshot.EtcdPodHealthy, Problem: "no disk"}}
	return w
}

func TestDecide(t *testing.T) {
	initialized := func(c *controlplanev1.KubexmControlPlane) {
		c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	}
	replicas := func(n int32) func(*controlplanev1.KubexmControlPlane) {
		return func(c *controlplanev1.KubexmControlPlane) { initialized(c); c.Spec.Replicas = ptr.To(n) }
	}
	marked := func(m *clusterv1.Machine) { m.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""} }
	in := func(domain string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Spec.FailureDomain = domain }
	}
	a, b, c := machine("a", joined), machine("b", joined), machine("c", joined)
	for name, tc := range map[string]struct {
		machines []clusterv1.Machine
		workload *snapshot.Workload
		change   func(*controlplanev1.KubexmControlPlane)
		// want is "first", "later", "-name", "wait: why" or "".
		want string
	}{
		"the first":                            {want: "first"},
		"one exists":                           {machines: []clusterv1.Machine{machine("a")}},
		"workers do not count":                 {machines: []clusterv1.Machine{machine("w", worker)}, want: "first"},
		"Machines of others do not count":      {machines: []clusterv1.Machine{machine("s", stranger)}, want: "first"},
		"not in the place of a cluster's data": {change: initialized},
		"not before the first has begun": {
			machines: []clusterv1.Machine{machine("a")}, change: func(c *controlplanev1.KubexmControlPlane) {
				c.Spec.Replicas = ptr.To[int32](3)
			},
			want: "wait: the first host has not begun",
		},
		"the second": {machines: []clusterv1.Machine{a}, workload: well("a"), change: replicas(3), want: "later"},
		"not beside one that joins": {
			machines: []clusterv1.Machine{a, machine("b")}, workload: well("a"), change: replicas(3), want: "wait: the Machine b has no Node",
		},
		"not beside one that goes": {
			machines: []clusterv1.Machine{a, machine("b", joined, deleting)}, workload: well("a", "b"), change: replicas(3),
			want: "wait: the Machine b is being deleted",
		},
		"not beside one that is ill": {
			machines: []clusterv1.Machine{a, b}, workload: ill("b", "a"), change: replicas(3), want: "wait: the Machine b is not healthy: no disk",
		},
		"not blindly":         {machines: []clusterv1.Machine{a}, change: replicas(3), want: "wait: the cluster has not been observed"},
		"the oldest goes":     {machines: []clusterv1.Machine{a, b, c}, workload: well("a", "b", "c"), change: replicas(1), want: "-a"},
		"the one that is ill": {machines: []clusterv1.Machine{a, b, c}, workload: ill("b", "a", "c"), change: replicas(1), want: "-b"},
		"not another beside it": {
			machines: []clusterv1.Machine{a, machine("b", joined, marked), c}, workload: ill("c", "a", "b"), change: replicas(1),
			want: "wait: the Machine c is not healthy",
		},
		"the one that is marked": {
			machines: []clusterv1.Machine{a, b, machine("c", joined, marked)}, workload: well("a", "b", "c"), change: replicas(1), want: "-c",
		},
		"of the fullest domain": {
			machines: []clusterv1.Machine{machine("a", joined, in("x")), machine("b", joined, in("y")), machine("c", joined, in("y"))},
			workload: well("a", "b", "c"), change: replicas(1), want: "-b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot.ControlPlane{
				Object: object(), Machines: slices.Clone(tc.machines), Workload: tc.workload, Now: born.Add(time.Hour),
			}
			for i := range s.Machines { // whose etcd has just said that it is well
				config := bootstrapv1.KubexmConfig{}
				config.Name, s.Machines[i].Spec.Bootstrap.ConfigRef.Name = s.Machines[i].Name, s.Machines[i].Name
				converged(&config, s.Machines[i].Spec.Version)
				config.Status.Etcd.ObservedTime = metav1.NewMicroTime(s.Now)
				s.Configs = append(s.Configs, config)
			}
			if tc.change != nil {
				tc.change(s.Object)
			}
			got := ""
			switch d := s.Decide(); {
			case d.Create && d.BootstrapMode == spec.BootstrapInit:
				got = "first"
			case d.Create:
				got = "later"
			case d.Delete != nil:
				got = "-" + d.Delete.Name
			case d.Blocked != nil:
				got = "wait: " + d.Blocked.Message
			}
			if got != tc.want && (tc.want == "" || !strings.HasPrefix(tc.want, "wait: ") || !strings.HasPrefix(got, tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestLost: where an API server has served, another control plane is not begun, though a restore has brought back neither the status nor
// the Machines.
func TestLost(t *testing.T) {
	c := &snapshot.ControlPlane{Object: object(), Now: born.Add(time.Hour)}
	if d := c.Decide(); c.Lost() || d.BootstrapMode != spec.BootstrapInit {
		t.Errorf("a new one: lost: %t, %+v", c.Lost(), d)
	}
	c.Served = true
	if d := c.Decide(); !c.Lost() || d.Create {
		t.Errorf("one that has served: lost: %t, %+v", c.Lost(), d)
	}
	c.Object.Spec.Version = "v1.37.0"
	if c.Machines = []clusterv1.Machine{machine("a")}; c.Decide().Follow != nil {
		t.Error("the host that has the data follows, as if it had not begun yet")
	}
}

// inventory is a KubexmConfig of a host that the control plane has chosen.
func inventory(name string, role spec.Role) bootstrapv1.KubexmConfig {
	return bootstrapv1.KubexmConfig{
		ObjectMeta: metav1.ObjectMeta{
			Name:            "prod-" + name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(object(), controlplanev1.GroupVersion.WithKind("KubexmControlPlane"))},
		},
		Spec: bootstrapv1.KubexmConfigSpec{HostRef: bootstrapv1.HostReference{Name: name, Role: role}},
	}
}

// phases are the members with their phases, as one line.
func phases(members []bootstrapv1.ClusterMember) string {
	var parts []string
	for _, m := range members {
		text := m.Name + " " + string(m.Phase)
		if m.Address == "" {
			text += " (nowhere)"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// TestLeave follows hosts out of the cluster: the Node is drained, the API server ends, the etcd member goes, then the host.
func TestLeave(t *testing.T) {
	drained := func(m *clusterv1.Machine) {
		deleting(m)
		conditions.Set(m, metav1.Condition{
			Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue,
			Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
		})
	}
	config := func(name string) bootstrapv1.KubexmConfig {
		c := bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Host = bootstrapv1.HostStatus{Name: "host-" + name, Address: "10.0.0." + name}
		return c
	}
	served := func(c bootstrapv1.KubexmConfig) bootstrapv1.KubexmConfig {
		c.Status.KubernetesVersion = "v1.36.3"
		return c
	}
	says := func(status metav1.ConditionStatus) bootstrapv1.KubexmConfig {
		c := served(config("b"))
		conditions.Set(&c, metav1.Condition{Type: bootstrapv1.APIServerStoppedCondition, Status: status, Reason: "Tried"})
		return c
	}
	etcdHost := func(name string, change ...func(*bootstrapv1.KubexmConfig)) bootstrapv1.KubexmConfig {
		c := served(inventory(name, spec.RoleEtcd))
		c.Status.Host = bootstrapv1.HostStatus{Name: name, Address: "10.0.1." + name}
		for _, by := range change {
			by(&c)
		}
		return c
	}
	goes := func(c *bootstrapv1.KubexmConfig) { c.DeletionTimestamp = &born }
	apart := func(c *controlplanev1.KubexmControlPlane) { c.Spec.Cluster.Etcd.Hosts.Names = []string{"e1", "e2"} }
	was := func(name string, phase bootstrapv1.MemberPhase) bootstrapv1.ClusterMember {
		return bootstrapv1.ClusterMember{
			Name: "host-" + name, Role: spec.RoleControlPlane, Address: "10.0.0." + name, Phase: phase, ConfigName: name,
		}
	}
	a, b := machine("a", joined), machine("b", joined)
	for name, tc := range map[string]struct {
		machines []clusterv1.Machine
		configs  []bootstrapv1.KubexmConfig
		known    []bootstrapv1.ClusterMember
		// observed is whether the first of the configs was brought to what is known.
		observed bool
		change   func(*controlplanev1.KubexmControlPlane)
		want     string
		may      bool
	}{
		"it is on its way in": {
			machines: []clusterv1.Machine{a, machine("b")}, configs: []bootstrapv1.KubexmConfig{served(config("a")), config("b")},
			want: "host-a Serving, host-b Joining",
		},
		"it serves": {
			machines: []clusterv1.Machine{a, b}, configs: []bootstrapv1.KubexmConfig{served(config("a")), served(config("b"))},
			want: "host-a Serving, host-b Serving",
		},
		"it is drained first": {
			machines: []clusterv1.Machine{a, machine("b", joined, deleting)},
			configs:  []bootstrapv1.KubexmConfig{served(config("a")), served(config("b"))},
			want:     "host-a Serving, host-b Draining",
		},
		"then its API server ends": {
			machines: []clusterv1.Machine{a, machine("b", joined, drained)},
			configs:  []bootstrapv1.KubexmConfig{served(config("a")), served(config("b"))},
			known:    []bootstrapv1.ClusterMember{was("a", "Serving"), was("b", "Draining")},
			want:     "host-a Serving, host-b Draining",
		},
		"unless it never had one": {
			machines: []clusterv1.Machine{a, machine("b", drained)}, configs: []bootstrapv1.KubexmConfig{served(config("a")), config("b")},
			known: []bootstrapv1.ClusterMember{was("a", "Serving"), was("b", "Joining")},
			want:  "host-a Serving, host-b Removed",
		},
		"then its member goes": {
			machines: []clusterv1.Machine{a, machine("b", joined, drained)},
			configs:  []bootstrapv1.KubexmConfig{served(config("a")), says(metav1.ConditionTrue)},
			known:    []bootstrapv1.ClusterMember{was("a", "Serving"), was("b", "Draining")},
			want:     "host-a Serving, host-b Removed",
		},
		"also where that was given up": {
			machines: []clusterv1.Machine{a, machine("b", joined, drained)},
			configs:  []bootstrapv1.KubexmConfig{served(config("a")), says(metav1.ConditionFalse)},
			known:    []bootstrapv1.ClusterMember{was("a", "Serving"), was("b", "Draining")},
			want:     "host-a Serving, host-b Removed",
		},
		"it stays until that is seen": {
			machines: []clusterv1.Machine{a, machine("b", joined, drained)},
			configs:  []bootstrapv1.KubexmConfig{served(config("a")), config("b")},
			known:    []bootstrapv1.ClusterMember{was("a", "Serving"), was("b", "Removed")},
			want:     "host-a Serving, host-b Removed",
		},
		"then the host": {
			machines: []clusterv1.Machine{a, machine("b", joined, drained)},
			configs:  []bootstrapv1.KubexmConfig{served(config("a")), config("b")},
			known:    []bootstrapv1.ClusterMember{was("a", "Serving"), was("b", "Removed")}, observed: true,
			want: "host-a Serving, host-b Removed", may: true,
		},
		"what was seen of another list does not count": {
			machines: []clusterv1.Machine{a, machine("b", joined, drained)},
			configs:  []bootstrapv1.KubexmConfig{served(config("a")), says(metav1.ConditionTrue)},
			known:    []bootstrapv1.ClusterMember{was("a", "Serving"), was("b", "Draining")}, observed: true,
			want: "host-a Serving, host-b Removed",
		},
		"without any status": {
			machines: []clusterv1.Machine{machine("a"), machine("b")},
			configs:  []bootstrapv1.KubexmConfig{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}},
			known:    []bootstrapv1.ClusterMember{was("a", "Serving"), was("b", "Joining")},
			want:     "host-a Serving, host-b Joining",
		},
		"without any status, while it leaves": {
			machines: []clusterv1.Machine{machine("a"), machine("b", deleting)},
			configs:  []bootstrapv1.KubexmConfig{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}},
			known:    []bootstrapv1.ClusterMember{was("a", "Serving"), was("b", "Removed")},
			want:     "host-a Serving, host-b Removed",
		},
		"before a cache shows its KubexmConfig": {
			machines: []clusterv1.Machine{a, b}, configs: []bootstrapv1.KubexmConfig{served(config("a"))},
			known: []bootstrapv1.ClusterMember{was("a", "Serving"), was("b", "Serving")},
			want:  "host-a Serving, host-b Serving",
		},
		"it does not leave any more": {
			machines: []clusterv1.Machine{a, b}, configs: []bootstrapv1.KubexmConfig{served(config("a")), served(config("b"))},
			known: []bootstrapv1.ClusterMember{was("a", "Serving"), was("b", "Removed")},
			want:  "host-a Serving, host-b Joining",
		},
		"nobody stays to miss it": {
			machines: []clusterv1.Machine{machine("b", joined, drained)}, configs: []bootstrapv1.KubexmConfig{served(config("b"))},
			want: "host-b Draining", may: true,
		},
		"it never had a host": {
			machines: []clusterv1.Machine{a, machine("b", drained)},
			configs:  []bootstrapv1.KubexmConfig{served(config("a")), {ObjectMeta: metav1.ObjectMeta{Name: "b"}}},
			want:     "host-a Serving", may: true,
		},
		"its host is another Machine's already": {
			machines: []clusterv1.Machine{machine("b", joined), machine("a", drained)}, configs: []bootstrapv1.KubexmConfig{
				served(config("b")), func() bootstrapv1.KubexmConfig { c := config("a"); c.Status.Host.Name = "host-b"; return c }(),
			},
			want: "host-b Serving",
		},
		"all of the cluster is gone": {
			machines: []clusterv1.Machine{a, machine("b", joined, drained)},
			configs:  []bootstrapv1.KubexmConfig{served(config("a")), served(config("b"))},
			change:   func(c *controlplanev1.KubexmControlPlane) { c.DeletionTimestamp = &born },
			want:     "host-a Serving, host-b Draining", may: true,
		},
		"etcd is elsewhere": {
			machines: []clusterv1.Machine{a, machine("b", joined, drained)},
			configs:  []bootstrapv1.KubexmConfig{served(config("a")), says(metav1.ConditionTrue)},
			change:   func(c *controlplanev1.KubexmControlPlane) { c.Spec.Cluster.Etcd.Type = spec.EtcdExternal },
			want:     "host-a Serving, host-b Draining", may: true,
		},
		"one of etcd's own hosts": {
			configs: []bootstrapv1.KubexmConfig{etcdHost("e1"), etcdHost("e2", goes)}, change: apart,
			want: "e1 Serving, e2 Removed",
		},
		"a load balancer": {
			configs: []bootstrapv1.KubexmConfig{inventory("lb1", spec.RoleLoadBalancer), func() bootstrapv1.KubexmConfig {
				c := inventory("lb2", spec.RoleLoadBalancer)
				goes(&c)
				return c
			}()},
			want: "lb1 Joining (nowhere), lb2 Draining (nowhere)", may: true,
		},
		"somebody's who is no part of the cluster": {
			machines: []clusterv1.Machine{b}, configs: []bootstrapv1.KubexmConfig{
				func() bootstrapv1.KubexmConfig { c := etcdHost("e9"); c.OwnerReferences = nil; return c }(),
				func() bootstrapv1.KubexmConfig { c := etcdHost("e8"); c.OwnerReferences[0].UID = "2"; return c }(),
				served(config("b")),
			},
			want: "host-b Serving", may: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &snapshot.ControlPlane{Object: object(), Machines: tc.machines, Configs: tc.configs, Known: tc.known}
			for i := range c.Machines {
				c.Machines[i].Spec.Bootstrap.ConfigRef.Name = c.Machines[i].Name
			}
			if tc.change != nil {
				tc.change(c.Object)
			}
			if tc.observed {
				c.Configs[0].Status.MembersDigest = bootstrapv1.MembersDigest(c.Known)
			}
			if got := phases(c.Members()); got != tc.want {
				t.Errorf("members %s, want %s", got, tc.want)
			}
			leaves := &c.Configs[len(c.Configs)-1]
			if got := c.MayLeave(leaves); got != tc.may {
				t.Errorf("%s may go: %v", leaves.Name, got)
			}
		})
	}
}

// TestUnlocated: without the list from before, nobody is notified of a part of the members.
func TestUnlocated(t *testing.T) {
	touched := func(m *clusterv1.Machine) { m.Annotations = map[string]string{bootstrapv1.HostResetHook: ""} }
	located := bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	located.Status.Host = bootstrapv1.HostStatus{Name: "host-a", Address: "10.0.0.1"}
	unlocated := bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	for name, tc := range map[string]struct {
		machines []clusterv1.Machine
		configs  []bootstrapv1.KubexmConfig
		known    []bootstrapv1.ClusterMember
		want     string
	}{
		"a new cluster": {machines: []clusterv1.Machine{machine("a"), machine("b")},
			configs: []bootstrapv1.KubexmConfig{located, unlocated, inventory("e1", spec.RoleEtcd)}},
		"one that has been there": {machines: []clusterv1.Machine{machine("a", touched), machine("b", touched)},
			configs: []bootstrapv1.KubexmConfig{located, unlocated}, want: "b"},
		"one that gets another": {machines: []clusterv1.Machine{machine("a", touched), machine("b")}, configs: []bootstrapv1.KubexmConfig{located, unlocated}},
		"with a host of etcd": {machines: []clusterv1.Machine{machine("a", touched)},
			configs: []bootstrapv1.KubexmConfig{located, inventory("e1", spec.RoleEtcd)}, want: "prod-e1"},
		"with the list from before": {
			machines: []clusterv1.Machine{machine("a", touched), machine("b", touched)},
			configs:  []bootstrapv1.KubexmConfig{located, unlocated},
			known:    []bootstrapv1.ClusterMember{{Name: "host-b", Address: "10.0.0.2", ConfigName: "b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &snapshot.ControlPlane{Object: object(), Machines: tc.machines, Configs: tc.configs, Known: tc.known}
			for i := range c.Machines {
				c.Machines[i].Spec.Bootstrap.ConfigRef.Name = c.Machines[i].Name
			}
			if got := c.Unlocated(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestAPIServerVersion: what is not known of a host is not taken for newer than what was known.
func TestAPIServerVersion(t *testing.T) {
	has := func(v string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: v} }
	}
	serves := func(name string, phase bootstrapv1.MemberPhase) bootstrapv1.ClusterMember {
		return bootstrapv1.ClusterMember{Name: name, ConfigName: name, Phase: phase}
	}
	all := []bootstrapv1.ClusterMember{
		serves("a", bootstrapv1.MemberServing), serves("b", bootstrapv1.MemberServing), serves("c", bootstrapv1.MemberJoining),
	}
	for name, tc := range map[string]struct {
		machines  []clusterv1.Machine
		brought   map[string]string // what KubexmConfigs say that their hosts were brought to
		was, want string
	}{
		"nobody serves":          {machines: []clusterv1.Machine{machine("c")}},
		"nobody serves any more": {was: "v1.35.4", want: "v1.35.4"},
		"the oldest": {machines: []clusterv1.Machine{machine("a", has("v1.36.3")),
			machine("b", has("v1.35.4")), machine("c", has("v1.34.1"))}, want: "v1.35.4"},
		"all are newer": {machines: []clusterv1.Machine{machine("a", has("v1.36.3")), machine("b", has("v1.36.3"))},
			was: "v1.35.4", want: "v1.36.3"},
		"a kubelet is newer than what its host was brought to": {
			machines: []clusterv1.Machine{machine("a", has("v1.36.3")), machine("b", has("v1.36.3"))},
			brought:  map[string]string{"a": "v1.36.3", "b": "v1.35.4"}, was: "v1.35.4", want: "v1.35.4",
		},
		"hosts were brought to it": {
			machines: []clusterv1.Machine{machine("a", has("v1.36.3")), machine("b", has("v1.36.3"))},
			brought:  map[string]string{"a": "v1.36.3", "b": "v1.36.3"}, was: "v1.35.4", want: "v1.36.3",
		},
		"what a host was brought to is lost": {
			machines: []clusterv1.Machine{machine("a", has("v1.36.3")), machine("b", has("v1.36.3"))},
			brought:  map[string]string{"a": "v1.36.3", "b": ""}, was: "v1.35.4", want: "v1.35.4",
		},
		"it was never known": {
			machines: []clusterv1.Machine{machine("a", has("v1.36.3"))}, brought: map[string]string{"a": ""}, want: "v1.36.3",
		},
		"somebody else makes the host": {
			machines: []clusterv1.Machine{machine("a", has("v1.36.3")), machine("b", has("v1.36.3"))},
			brought:  map[string]string{"a": "v1.36.3"}, was: "v1.35.4", want: "v1.36.3",
		},
		"after their statuses are lost": {machines: []clusterv1.Machine{machine("a"), machine("b")}, was: "v1.35.4", want: "v1.35.4"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &snapshot.ControlPlane{Object: object(), Machines: tc.machines}
			for i := range c.Machines {
				c.Machines[i].Spec.Bootstrap.ConfigRef.Name = c.Machines[i].Name
			}
			for name, version := range tc.brought {
				config := bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
				config.Status.KubernetesVersion = version
				c.Configs = append(c.Configs, config)
			}
			if got := c.APIServerVersion(all, tc.was); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNextFailureDomain(t *testing.T) {
	in := func(domain string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Spec.FailureDomain = domain }
	}
	offer := func(name string, controlPlane bool) clusterv1.FailureDomain {
		return clusterv1.FailureDomain{Name: name, ControlPlane: ptr.To(controlPlane)}
	}
	for name, tc := range map[string]struct {
		offered  []clusterv1.FailureDomain
		machines []clusterv1.Machine
		want     string
	}{
		"none is offered":           {},
		"the first by name":         {offered: []clusterv1.FailureDomain{offer("b", true), offer("a", true)}, want: "a"},
		"not one for workers alone": {offered: []clusterv1.FailureDomain{offer("b", true), offer("a", false)}, want: "b"},
		"the one with the fewest": {offered: []clusterv1.FailureDomain{offer("a", true), offer("b", true)},
			machines: []clusterv1.Machine{machine("x", in("a"))}, want: "b"},
		"by the host of one that was made before any was offered": {offered: []clusterv1.FailureDomain{offer("a", true), offer("b", true)},
			machines: []clusterv1.Machine{machine("x", func(m *clusterv1.Machine) { m.Status.FailureDomain = "a" })}, want: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &snapshot.ControlPlane{
				Object: object(), Machines: tc.machines,
				Cluster: &clusterv1.Cluster{Status: clusterv1.ClusterStatus{FailureDomains: tc.offered}},
			}
			if got := c.NextFailureDomain(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestVersions(t *testing.T) {
	of := func(v string) func(*clusterv1.Machine) { return func(m *clusterv1.Machine) { m.Spec.Version = v } }
	kubelet := func(v string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: v} }
	}
	got := snapshot.Versions([]clusterv1.Machine{
		machine("a", of("v1.10.0")), machine("b", of("v1.9.0")), machine("c", of("v1.10.0")), machine("d", of("v1.10.0"), kubelet("v1.9.0")),
	})
	want := []clusterv1.StatusVersion{{Version: "v1.9.0", Replicas: 2}, {Version: "v1.10.0", Replicas: 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the oldest first (-want +got):\n%s", diff)
	}
}

func TestServer(t *testing.T) {
	config := func(name, address string) bootstrapv1.KubexmConfig {
		c := bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Host = bootstrapv1.HostStatus{Name: name, Address: address}
		return c
	}
	hasJoined := func(c bootstrapv1.KubexmConfig) bootstrapv1.KubexmConfig {
		c.Status.KubernetesVersion = "v1.36.3"
		return c
	}
	lost := func(c bootstrapv1.KubexmConfig) bootstrapv1.KubexmConfig {
		conditions.Set(&c, metav1.Condition{
			Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.UnreachableReason,
		})
		return c
	}
	local := func(c *controlplanev1.KubexmControlPlane) {
		c.Spec.Cluster.LoadBalancer.Type = spec.LoadBalancerNodeLocal
	}
	for name, tc := range map[string]struct {
		configs []bootstrapv1.KubexmConfig
		change  func(*controlplanev1.KubexmControlPlane)
		want    string
	}{
		"an address that moves":    {configs: []bootstrapv1.KubexmConfig{config("a", "10.0.0.2")}, want: "https://10.0.0.1:6443"},
		"before any host is known": {change: local, want: "https://10.0.0.1:6443"},
		"the first host's":         {configs: []bootstrapv1.KubexmConfig{config("a", "10.0.0.1")}, change: local, want: "https://10.0.0.1:6443"},
		"the first host has left":  {configs: []bootstrapv1.KubexmConfig{config("a", "10.0.0.2")}, change: local, want: "https://10.0.0.2:6443"},
		"the first host does not answer": {
			configs: []bootstrapv1.KubexmConfig{lost(hasJoined(config("a", "10.0.0.1"))), hasJoined(config("b", "10.0.0.2"))},
			change:  local, want: "https://10.0.0.2:6443",
		},
		"no host answers": {
			configs: []bootstrapv1.KubexmConfig{lost(hasJoined(config("a", "10.0.0.1"))), lost(hasJoined(config("b", "10.0.0.2")))},
			change:  local, want: "https://10.0.0.1:6443",
		},
		"the first host comes back": {
			configs: []bootstrapv1.KubexmConfig{config("b", "10.0.0.1"), hasJoined(config("a", "10.0.0.2"))}, change: local, want: "https://10.0.0.2:6443",
		},
		"the first host has come back": {
			configs: []bootstrapv1.KubexmConfig{hasJoined(config("b", "10.0.0.1")), hasJoined(config("a", "10.0.0.2"))},
			change:  local, want: "https://10.0.0.1:6443",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &snapshot.ControlPlane{
				Object: object(), Configs: tc.configs,
				Machines: []clusterv1.Machine{machine("a", joined), machine("b", joined)}, Cluster: &clusterv1.Cluster{},
			}
			for i := range c.Machines {
				c.Machines[i].Spec.Bootstrap.ConfigRef.Name = c.Machines[i].Name
			}
			c.Cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
			if tc.change != nil {
				tc.change(c.Object)
			}
			if got := c.Server(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
