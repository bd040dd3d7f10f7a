// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// etcdMember is one as etcd lists it: of the host with the address 10.0.0.<n>.
func etcdMember(name string, n int) bootstrapv1.EtcdMemberStatus {
	return bootstrapv1.EtcdMemberStatus{ID: fmt.Sprintf("%x", 160+n), Name: name, PeerURL: fmt.Sprintf("https://10.0.0.%d:2380", n), Type: bootstrapv1.EtcdVoter}
}

// stacked is a control plane of three, a to c with the addresses 10.0.0.1 to 3, whose etcd was asked on each host a minute after the
// other.
func stacked() *snapshot.ControlPlane {
	c := &snapshot.ControlPlane{Object: object(), Cluster: &clusterv1.Cluster{}, Now: born.Add(time.Hour), Workload: well("a", "b", "c")}
	c.Object.Spec.Replicas = ptr.To[int32](3)
	c.Object.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	for i, name := range []string{"a", "b", "c"} {
		m := machine(name, joined)
		m.Spec.Bootstrap.ConfigRef.Name = name
		c.Machines = append(c.Machines, m)
		config := bootstrapv1.KubexmConfig{}
		config.Name = name
		converged(&config, m.Spec.Version)
		config.Status.Host = bootstrapv1.HostStatus{Name: "host-" + name, Address: fmt.Sprintf("10.0.0.%d", i+1)}
		config.Status.Etcd = bootstrapv1.EtcdStatus{
			ObservedTime: metav1.NewMicroTime(c.Now.Add(time.Duration(i) * time.Minute)), MemberID: fmt.Sprintf("%x", 161+i),
			Members: []bootstrapv1.EtcdMemberStatus{etcdMember("host-a", 1), etcdMember("host-b", 2), etcdMember("host-c", 3)},
		}
		c.Configs = append(c.Configs, config)
	}
	return c
}

// last is what was said last, on c's host.
func last(c *snapshot.ControlPlane) *bootstrapv1.EtcdStatus { return &c.Configs[2].Status.Etcd }

func TestEtcdMember(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*snapshot.ControlPlane)
		want   metav1.ConditionStatus // of b
		says   string
	}{
		"all is well":             {func(*snapshot.ControlPlane) {}, metav1.ConditionTrue, ""},
		"it has no Node":          {func(c *snapshot.ControlPlane) { c.Machines[1].Status.NodeRef.Name = "" }, metav1.ConditionUnknown, "no Node yet"},
		"it leaves":               {func(c *snapshot.ControlPlane) { deleting(&c.Machines[1]) }, metav1.ConditionUnknown, "being deleted"},
		"its config is not there": {func(c *snapshot.ControlPlane) { c.Configs = slices.Delete(c.Configs, 1, 2) }, metav1.ConditionUnknown, "not been asked"},
		"it was not asked": {func(c *snapshot.ControlPlane) {
			c.Configs[1].Status.Etcd = bootstrapv1.EtcdStatus{}
		}, metav1.ConditionUnknown, "not been asked"},
		"it does not answer": {func(c *snapshot.ControlPlane) {
			c.Configs[1].Status.Etcd = bootstrapv1.EtcdStatus{ObservedTime: last(c).ObservedTime, Message: "nothing listens"}
		}, metav1.ConditionFalse, "nothing listens"},
		"its host is away": {func(c *snapshot.ControlPlane) {
			conditions.Set(&c.Configs[1], metav1.Condition{
				Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionFalse, Reason: "x", Message: "no route",
			})
		}, metav1.ConditionUnknown, "no route"},
		"it is not listed": {func(c *snapshot.ControlPlane) {
			last(c).Members = slices.Delete(last(c).Members, 1, 2)
		}, metav1.ConditionFalse, "no member on its host (10.0.0.2)"},
		"it was not listed before": {func(c *snapshot.ControlPlane) {
			c.Configs[0].Status.Etcd.Members = c.Configs[0].Status.Etcd.Members[:1]
		}, metav1.ConditionTrue, ""},
		"it is a learner": {func(c *snapshot.ControlPlane) { last(c).Members[1].Type = bootstrapv1.EtcdLearner }, metav1.ConditionFalse,
			"host-b (ID a2, https://10.0.0.2:2380) is a learner"},
		"it is full": {func(c *snapshot.ControlPlane) {
			last(c).Alarms = []bootstrapv1.EtcdAlarmStatus{{MemberID: "a2", Type: "NOSPACE"}}
		}, metav1.ConditionFalse, "alarm NOSPACE (its database has reached its quota"},
		"its data is corrupt": {func(c *snapshot.ControlPlane) {
			last(c).Alarms = []bootstrapv1.EtcdAlarmStatus{{MemberID: "a2", Type: "CORRUPT"}}
		}, metav1.ConditionFalse, "alarm CORRUPT"},
		"another is full": {func(c *snapshot.ControlPlane) {
			last(c).Alarms = []bootstrapv1.EtcdAlarmStatus{{MemberID: "a1", Type: "NOSPACE"}}
		}, metav1.ConditionTrue, ""},
		"its address is not known": {func(c *snapshot.ControlPlane) { c.Configs[1].Status.Host.Address = "" }, metav1.ConditionUnknown, "not known which"},
		"others run etcd": {func(c *snapshot.ControlPlane) {
			c.Object.Spec.Cluster.Etcd.Type = spec.EtcdExternal
		}, metav1.ConditionUnknown, "no member"},
	} {
		t.Run(name, func(t *testing.T) {
			c := stacked()
			tc.change(c)
			if got, says := c.EtcdMember(&c.Machines[1]); got != tc.want || !strings.Contains(says, tc.says) || tc.says == "" && says != "" {
				t.Errorf("got %s %q, want %s %q", got, says, tc.want, tc.says)
			}
		})
	}
}

// TestUnknownMember: a member that no host has is named, with what is to be done, and nothing comes or goes meanwhile.
func TestUnknownMember(t *testing.T) {
	lists := func(c *snapshot.ControlPlane) { last(c).Members = append(last(c).Members, etcdMember("old", 9)) }
	for name, tc := range map[string]struct {
		change func(*snapshot.ControlPlane)
		want   string // a part of the problem, "" if there is none
		blocks bool
	}{
		"all are known": {func(*snapshot.ControlPlane) {}, "", false},
		"one is not": {lists,
			`etcd lists the member old (ID a9, https://10.0.0.9:2380), which no host of the cluster has. It counts for quorum, and until it is gone ` +
				`no Machine is made, replaced or deleted. If its host is gone for good, say so: add "a9" to spec.cluster.etcd.goneMembers`, true},
		"it was there before": {func(c *snapshot.ControlPlane) {
			c.Configs[1].Status.Etcd.Members = append(c.Configs[1].Status.Etcd.Members, etcdMember("old", 9))
		}, "", false},
		"it is declared to be gone": {func(c *snapshot.ControlPlane) {
			lists(c)
			c.Object.Spec.Cluster.Etcd.GoneMembers = []string{"old"}
		}, "old (ID a9, https://10.0.0.9:2380) is declared to be gone, and is not removed yet", true},
		"by its ID": {func(c *snapshot.ControlPlane) {
			lists(c)
			c.Object.Spec.Cluster.Etcd.GoneMembers = []string{"a9"}
		}, "declared to be gone", true},
		"it has never started": {func(c *snapshot.ControlPlane) {
			last(c).Members = append(last(c).Members, bootstrapv1.EtcdMemberStatus{ID: "a9", Type: bootstrapv1.EtcdLearner})
		}, "without a name (ID a9, without a URL)", true},
		"the list has it still": {func(c *snapshot.ControlPlane) {
			lists(c)
			c.Known = []bootstrapv1.ClusterMember{
				{Name: "old", Role: spec.RoleControlPlane, Address: "10.0.0.9", Phase: bootstrapv1.MemberRemoved, ConfigName: "x"},
			}
		}, "", false},
		"a load balancer has its address": {func(c *snapshot.ControlPlane) {
			lists(c)
			c.Known = []bootstrapv1.ClusterMember{
				{Name: "lb", Role: spec.RoleLoadBalancer, Address: "10.0.0.9", Phase: bootstrapv1.MemberServing, ConfigName: "x"},
			}
		}, "member old", true},
		"its Machine was deleted by force": {func(c *snapshot.ControlPlane) {
			c.Machines, c.Configs[0].Status.Etcd.ObservedTime = slices.Delete(c.Machines, 1, 2), metav1.NewMicroTime(c.Now.Add(time.Hour))
		}, "etcd lists the member host-b (ID a2, https://10.0.0.2:2380), which no host of the cluster has", true},
		"its Machine is being deleted": {func(c *snapshot.ControlPlane) { deleting(&c.Machines[1]) }, "", false},
		"an alarm of one that was removed": {func(c *snapshot.ControlPlane) {
			last(c).Alarms = []bootstrapv1.EtcdAlarmStatus{{MemberID: "a9", Type: "NOSPACE"}}
		}, "the member with the ID a9, which etcd does not list any more, has raised the alarm NOSPACE", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := stacked()
			tc.change(c)
			got := strings.Join(c.EtcdProblems(), "\n")
			if !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if blocks := c.UnknownMember() != nil; blocks != tc.blocks {
				t.Errorf("it blocks: %v, want %v", blocks, tc.blocks)
			}
			if !tc.blocks {
				return
			}
			for _, replicas := range []int32{1, 5} {
				c.Object.Spec.Replicas = ptr.To(replicas)
				if d := c.Decide(); d.Create || d.Delete != nil || !strings.Contains(d.Blocked.String(), "which no host of the cluster has") {
					t.Errorf("with %d replicas: %+v", replicas, d)
				}
			}
			c.Object.Spec.Replicas, c.Object.Spec.Remediation.ConvergeTimeoutSeconds = ptr.To[int32](3), ptr.To[int32](0)
			c.Object.Spec.Remediation.RebootTimeoutSeconds = ptr.To[int32](0)
			for _, kind := range []string{clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition} {
				conditions.Set(&c.Machines[0], metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "x"})
			}
			if r := c.Remediate(); r.Machine == nil || !strings.Contains(r.Blocked.String(), "which no host of the cluster has") {
				t.Errorf("an unhealthy Machine: %+v", r)
			}
		})
	}
}

// TestEtcdOnItsOwnHosts: the same is known of hosts that have etcd and nothing else.
func TestEtcdOnItsOwnHosts(t *testing.T) {
	c := stacked()
	c.Object.Spec.Cluster.Etcd.Hosts.Names = []string{"e1"}
	e1 := inventory("e1", spec.RoleEtcd)
	e1.Status.Host = bootstrapv1.HostStatus{Name: "e1", Address: "10.0.0.7"}
	e1.Status.Etcd = bootstrapv1.EtcdStatus{
		ObservedTime: metav1.NewMicroTime(c.Now), Members: []bootstrapv1.EtcdMemberStatus{etcdMember("e1", 7)},
	}
	c.Configs = append(c.Configs, e1)
	if got := c.EtcdProblems(); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	c.Configs[3].Status.Etcd.Members = append(c.Configs[3].Status.Etcd.Members, etcdMember("e2", 8))
	c.Configs[3].Status.Etcd.Alarms = []bootstrapv1.EtcdAlarmStatus{{MemberID: "a7", Type: "NOSPACE"}}
	got := c.EtcdProblems()
	if len(got) != 2 || !strings.HasPrefix(got[0], "e1: the member e1 (ID a7") || !strings.Contains(got[1], "the member e2 (ID a8") {
		t.Errorf("got %q", got)
	}
}
