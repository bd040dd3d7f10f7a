// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// apart is a control plane with etcd on hosts of these names, and with a load balancer lb1. All of them serve.
func apart(names ...string) *snapshot.ControlPlane {
	c := stacked()
	c.Configs = nil
	c.Object.Spec.Cluster.Etcd.Hosts.Names = names
	c.Object.Spec.Cluster.LoadBalancer.Keepalived.Hosts.Names = []string{"lb1"}
	var members []bootstrapv1.EtcdMemberStatus
	for i, name := range names {
		members = append(members, etcdMember(name, 10+i))
	}
	for i, name := range append(slices.Clone(names), "lb1") {
		config := inventory(name, spec.RoleLoadBalancer)
		if i < len(names) {
			config.Spec.HostRef.Role = spec.RoleEtcd
			config.Status.Host = bootstrapv1.HostStatus{Name: name, Address: fmt.Sprintf("10.0.0.%d", 10+i)}
			config.Status.Etcd = bootstrapv1.EtcdStatus{ObservedTime: metav1.NewMicroTime(c.Now), Members: members}
		}
		converged(&config, "v1.36.3")
		c.Configs = append(c.Configs, config)
	}
	return c
}

// TestLeaving: hosts that are not wanted any more leave for others that serve, and etcd's one after the other. What is wanted may be a
// mistake.
func TestLeaving(t *testing.T) {
	const etcd, balancer = spec.RoleEtcd, spec.RoleLoadBalancer
	refs := func(role spec.Role, names ...string) (all []bootstrapv1.HostReference) {
		for _, name := range names {
			all = append(all, bootstrapv1.HostReference{Name: name, Role: role})
		}
		return all
	}
	of := func(c *snapshot.ControlPlane, name string) *bootstrapv1.KubexmConfig {
		return &c.Configs[slices.IndexFunc(c.Configs, func(one bootstrapv1.KubexmConfig) bool { return one.Spec.HostRef.Name == name })]
	}
	is := func(kind, reason string, names ...string) func(*snapshot.ControlPlane) {
		return func(c *snapshot.ControlPlane) {
			for _, name := range names {
				conditions.Set(of(c, name), metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason})
			}
		}
	}
	joining := func(names ...string) func(*snapshot.ControlPlane) {
		return func(c *snapshot.ControlPlane) {
			for i := range c.Configs {
				config := &c.Configs[i]
				gone := func(m bootstrapv1.EtcdMemberStatus) bool { return slices.Contains(names, m.Name) }
				config.Status.Etcd.Members = slices.DeleteFunc(slices.Clone(config.Status.Etcd.Members), gone)
				if slices.Contains(names, config.Spec.HostRef.Name) {
					config.Status = bootstrapv1.KubexmConfigStatus{}
				}
			}
		}
	}
	lost := func(names ...string) func(*snapshot.ControlPlane) {
		return is(bootstrapv1.HostReachableCondition, bootstrapv1.UnreachableReason, names...)
	}
	lb1 := refs(balancer, "lb1")
	for name, tc := range map[string]struct {
		hosts  []string
		change func(*snapshot.ControlPlane)
		wanted []bootstrapv1.HostReference
		want   []string
		says   string // of the first that stays
	}{
		"all are wanted": {hosts: []string{"e1", "e2", "e3"}, wanted: append(refs(etcd, "e1", "e2", "e3"), lb1...)},
		"hosts that do not exist": {
			hosts: []string{"e1", "e2", "e3"}, wanted: append(refs(etcd, "x1", "x2", "x3"), lb1...),
			says: "the host e1 is not wanted any more, and stays: of the 3 hosts that spec.cluster.etcd.hosts chooses, 0 serve, and 2 must",
		},
		"none": {hosts: []string{"e1", "e2", "e3"}, wanted: lb1, says: "of the 0 hosts that spec.cluster.etcd.hosts chooses, 0 serve, and 1 must"},
		"others that have not joined yet": {
			hosts: []string{"e1", "e2", "e3", "f1", "f2", "f3"}, change: joining("f2", "f3"),
			wanted: append(refs(etcd, "f1", "f2", "f3"), lb1...), says: "1 serve, and 2 must",
		},
		"others that serve": {
			hosts: []string{"e1", "e2", "e3", "f1", "f2", "f3"}, wanted: append(refs(etcd, "f1", "f2", "f3"), lb1...),
			want: []string{"e1"}, says: "the host e2 is not wanted any more, and stays: the host e1 leaves first",
		},
		"the next, when the first is gone": {
			hosts: []string{"e2", "e3", "f1", "f2", "f3"}, wanted: append(refs(etcd, "f1", "f2", "f3"), lb1...),
			want: []string{"e2"}, says: "the host e2 leaves first",
		},
		"while the first leaves": {
			hosts: []string{"e1", "e2", "e3"}, change: func(c *snapshot.ControlPlane) { of(c, "e3").DeletionTimestamp = &born },
			wanted: append(refs(etcd, "e1"), lb1...), says: "the host e3 leaves first",
		},
		"one that has died is the first": {
			hosts: []string{"e1", "e2", "e3"}, change: lost("e3"), wanted: append(refs(etcd, "e1"), lb1...),
			want: []string{"e3"}, says: "the host e3 leaves first",
		},
		"one that has died, for one that has not joined yet": {
			hosts: []string{"e1", "e2", "e3", "f1"}, change: func(c *snapshot.ControlPlane) { lost("e3")(c); joining("f1")(c) },
			wanted: append(refs(etcd, "e1", "e2", "f1"), lb1...), want: []string{"e3"},
		},
		"none without which etcd has no quorum": {
			hosts: []string{"e1", "e2", "e3", "f1", "f2", "f3"}, change: lost("e3", "f1", "f2", "f3"),
			wanted: append(refs(etcd, "e1", "e2", "e3"), lb1...), says: "without it, 2 of 5 members of etcd would be known to be healthy",
		},
		"one that etcd does not list is not one that serves": {
			hosts: []string{"e1", "f1"}, change: func(c *snapshot.ControlPlane) {
				for _, name := range []string{"e1", "f1"} {
					of(c, name).Status.Etcd.Members = of(c, name).Status.Etcd.Members[:1]
				}
			},
			wanted: append(refs(etcd, "f1"), lb1...), says: "0 serve, and 1 must",
		},
		"one that never served": {
			hosts: []string{"e1", "e2", "e3", "x1"}, change: joining("x1"),
			wanted: append(refs(etcd, "e1", "e2", "e3"), lb1...), want: []string{"x1"},
		},
		"not while etcd has a member that no host has": {
			hosts: []string{"e1", "e2", "e3"}, change: func(c *snapshot.ControlPlane) {
				said := &of(c, "e1").Status.Etcd
				said.ObservedTime = metav1.NewMicroTime(born.AddDate(1, 0, 0))
				said.Members = append(slices.Clone(said.Members), etcdMember("old", 99))
			},
			wanted: append(refs(etcd, "e1", "e2"), lb1...), says: "etcd lists the member old",
		},
		"a load balancer that does not exist": {
			hosts: []string{"e1"}, wanted: append(refs(etcd, "e1"), refs(balancer, "lb9")...),
			says: "the host lb1 is not wanted any more, and stays: of the 1 hosts that spec.cluster.loadBalancer chooses, 0 serve, and 1 must",
		},
		"another load balancer that serves": {
			hosts: []string{"e1", "lb9"}, change: func(c *snapshot.ControlPlane) { of(c, "lb9").Spec.HostRef.Role = balancer },
			wanted: append(refs(etcd, "e1"), refs(balancer, "lb9")...), want: []string{"lb1"},
		},
		"no load balancers are declared": {
			hosts: []string{"e1"}, change: func(c *snapshot.ControlPlane) {
				c.Object.Spec.Cluster.LoadBalancer.Keepalived.Hosts = spec.Hosts{}
			},
			wanted: refs(etcd, "e1"), want: []string{"lb1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := apart(tc.hosts...)
			if tc.change != nil {
				tc.change(c)
			}
			leave, stay := c.Leaving(tc.wanted)
			var got []string
			for _, config := range leave {
				got = append(got, config.Spec.HostRef.Name)
			}
			says := ""
			if len(stay) > 0 {
				says = stay[0].Message
			}
			if !slices.Equal(got, tc.want) || !strings.Contains(says, tc.says) || (says == "") != (tc.says == "") {
				t.Errorf("%v leave, not %v; of the first that stays: %q, want %q", got, tc.want, says, tc.says)
			}
		})
	}
}
