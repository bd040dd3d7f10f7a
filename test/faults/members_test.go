// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// membersChance is how likely a boundary is visited in a sample.
const membersChance = 0.12

// members is a cluster of control plane hosts alone, each with a member of etcd, while it grows and shrinks.
type members struct {
	*trial
	// count is of how many hosts it consists at present: the first ones.
	count int
}

// A control plane grows, renews its certificates and shrinks by processes that die at any boundary of any step, or within it,
// and each of which takes up where the hosts stand. At no boundary has etcd lost its quorum. One cluster lives through all of it.
//
// With a budget, boundaries are visited at random; the seed chooses the kind of cluster and which of the tests are made, at least
// one and as many as fit into their share.
func TestMembers(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) { membersOf(t, k) })
	}
}

func membersOf(t *testing.T, k kind) {
	const role = spec.RoleControlPlane
	began := time.Now()
	m := &members{trial: newTrialOf(t, all.of(k.cluster, role, role, role))}
	m.bring(1)
	for i, s := range k.inOrder() {
		if chosen.budget > 0 && i > 0 && time.Since(began) > chosen.share() {
			t.Logf("the budget is spent: %s is left out", s.name)
			continue
		}
		m.next(s.name, s.test)
	}
	m.reset(nil)
}

// kind is a kind of cluster, and what happens to its members, in the order in which each test finds what it needs.
type kind struct {
	name      string
	cluster   spec.Cluster
	scenarios []scenario
}

type scenario struct {
	name string
	test func(*members)
	// long says that it takes ten minutes or more: it is left out where there is a budget.
	long bool
}

// kinds are those whose members differ: units, every step of which is our own, and the static pods of kubeadm. With a budget, it
// is one of them.
func kinds() []kind {
	all := []kind{
		{"Units", spec.Cluster{Kubernetes: spec.Kubernetes{Type: spec.KubernetesKubexm}}, []scenario{
			{"KillJoin", (*members).killJoin, false}, {"KillRenewal", (*members).killRenewal, false},
			{"KillScaleDown", (*members).killScaleDown, false},
			{"SecondJoinsWhileFirstIsCutOff", (*members).secondJoinsWhileFirstIsCutOff, false},
		}},
		{"StaticPods", spec.Cluster{Etcd: spec.Etcd{Type: spec.EtcdKubeadm}}, []scenario{
			{"KillJoin", (*members).killJoin, false},
			{"KillRenewal", (*members).killRenewal, true}, // the kubelet takes its time with each component, every time
			{"KillScaleDown", (*members).killScaleDown, false},
		}},
	}
	if chosen.budget > 0 {
		i := chosen.seed % uint64(len(all))
		all = all[i : i+1]
	}
	return all
}

// inOrder are the scenarios as they are made. With a budget, the seed says with which to begin.
func (k kind) inOrder() []scenario {
	if chosen.budget == 0 {
		return k.scenarios
	}
	short := slices.DeleteFunc(slices.Clone(k.scenarios), func(s scenario) bool { return s.long })
	first := chosen.seed / 2 % uint64(len(short))
	return slices.Concat(short[first:], short[:first])
}

// next is a test on what those before it have left, unless one of them has failed.
func (m *members) next(name string, test func(*members)) {
	m.Helper()
	if m.Failed() {
		return
	}
	m.Run(name, func(t *testing.T) {
		began := time.Now()
		tr := *m.trial
		tr.T = t
		now := &members{&tr, m.count}
		test(now)
		m.count = now.count
		t.Logf("took %s", time.Since(began).Round(time.Second))
	})
}

// killed is an order to be killed at boundaries: at each, or by a budget at some.
func killed(o order) order {
	o.Seed, o.Chance = chosen.seed, 1
	if chosen.budget > 0 {
		o.Chance = membersChance
	}
	return o
}

// undisturbed is an order as it is.
func undisturbed(o order) order { return o }

// carryOut has children bring about a plan. Quorum holds whenever one has died.
func (m *members) carryOut(p *plan.Plan, how func(order) order) {
	m.Helper()
	if err := m.cluster.writePlan(p); err != nil {
		m.Fatal(err)
	}
	m.dieAndGoOn(how(order{Verb: create}), m.demandQuorum)
}

// bring brings the cluster to so many hosts.
func (m *members) bring(count int) {
	m.Helper()
	if m.count < count {
		if _, err := engine.New(m.cluster.options(nil)).Run(m.Context(), m.plan(count)); err != nil {
			m.Fatal(err)
		}
		m.count = count
	}
	for m.count > count {
		m.leave(undisturbed)
	}
}

// nodes are the first hosts, as members of a cluster of that many.
func (m *members) nodes(count int) []pipeline.Node {
	m.Helper()
	nodes, err := m.cluster.nodes(m.Context(), count)
	if err != nil {
		m.Fatal(err)
	}
	return nodes
}

// join plans that the node joins.
func (m *members) join(n pipeline.Node) *plan.Plan {
	m.Helper()
	p, err := pipeline.JoinControlPlane(n, m.cluster.bundle)
	if err != nil {
		m.Fatal(err)
	}
	return p
}

func (m *members) killJoin() {
	m.bring(1)
	m.carryOut(m.join(m.nodes(2)[1]), killed)
	m.count = 2
	m.demandWhole()
}

func (m *members) killScaleDown() {
	m.bring(2)
	m.leave(killed)
	m.demandWhole()
}

// leave takes the last host out of the cluster, in the order in which reconcilers do it: its Node is drained, a host that stays
// removes its member, it is reset, and its Node goes.
func (m *members) leave(how func(order) order) {
	m.Helper()
	m.count--
	goes := m.hosts[m.count]
	api, err := m.cluster.api()
	if err != nil {
		m.Fatal(err)
	}
	if err := api.DrainNode(m.Context(), goes.Name); err != nil {
		m.Fatal(err)
	}
	stays := m.nodes(m.count)[0]
	stays.Target.Leaving = []spec.Member{{Name: goes.Name, Role: spec.RoleControlPlane, Address: goes.Address}}
	p, err := pipeline.CreateControlPlane(stays, m.cluster.bundle)
	if err != nil {
		m.Fatal(err)
	}
	m.carryOut(p, how)
	m.demandVoting()
	m.dieAndGoOn(how(order{Verb: reset, Hosts: []string{goes.Name}}), m.demandQuorum)
	if err := api.DeleteNode(m.Context(), goes.Name); err != nil {
		m.Fatal(err)
	}
	m.demandAsBefore(m.count)
}

// demandWhole fails the test unless the cluster is as its plan says, and etcd consists of its hosts.
func (m *members) demandWhole() {
	m.Helper()
	m.demandConverged(m.plan(m.count))
	m.demandVoting()
	m.demandQuorum()
}

// demandVoting fails the test unless each of the cluster's hosts, and nobody else, is a voting member of etcd.
func (m *members) demandVoting() {
	m.Helper()
	m.demandMembers(m.cluster.names()[:m.count]...)
}

// demandMembers fails the test unless these are the members of etcd; see etcdMembers.
func (m *members) demandMembers(want ...string) {
	m.Helper()
	slices.Sort(want)
	got, err := m.etcdMembers()
	if err != nil {
		m.Fatal(err)
	}
	if !slices.Equal(got, want) {
		m.Errorf("the members of etcd are %v, not %v", got, want)
	}
}

// etcdMembers are etcd's: voting ones by their names, learners by their addresses with a star.
func (m *members) etcdMembers() ([]string, error) {
	out, err := m.etcdctl("member", "list", "-w", "json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Members []struct {
			Name      string   `json:"name"`
			PeerURLs  []string `json:"peerURLs"`
			IsLearner bool     `json:"isLearner"`
		} `json:"members"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	var all []string
	for _, one := range list.Members {
		if one.IsLearner {
			address := strings.TrimPrefix(strings.Join(one.PeerURLs, ","), "https://")
			one.Name = strings.TrimSuffix(address, ":2380") + "*"
		}
		all = append(all, one.Name)
	}
	slices.Sort(all)
	return all, nil
}

// demandQuorum fails the test unless etcd takes writes.
func (m *members) demandQuorum() {
	m.Helper()
	if _, err := m.etcdctl("put", "faults", "are survived"); err != nil {
		m.Fatalf("etcd has no quorum: %v", err)
	}
}

// etcdctl asks etcd on the first host, with the patience that an election takes.
func (m *members) etcdctl(words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(m.Context(), 30*time.Second)
	defer cancel()
	const ssl = "/etc/kubexm/etcd/ssl/"
	h := m.hosts[0]
	return h.Exec(ctx, append([]string{
		"/usr/local/bin/etcdctl", "--endpoints=https://127.0.0.1:2379", "--command-timeout=20s",
		"--cacert=" + ssl + "ca.pem", "--cert=" + ssl + "admin-" + h.Name + ".pem", "--key=" + ssl + "admin-" + h.Name + "-key.pem",
	}, words...)...)
}
