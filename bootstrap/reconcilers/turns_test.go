// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestPool: as many hosts of a pool are disrupted at once as may be unavailable, those included that are not well; none begins after one
// has failed; and who is not well, or has begun, waits for nobody.
func TestPool(t *testing.T) {
	began := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	well := func(name string) peer { return peer{name: name, well: began} }
	turn := func(p peer) peer { p.turn = began; return p }
	failed := func(p peer) peer { p.failed = "step kubelet/healthy failed"; return p }
	down := func(p peer) peer { p.unwell = "whose Node is not Ready"; return p }
	unknown := func(p peer) peer { p.unwell, p.unknown = "of whose Node nothing is known", true; return p }
	const workers, master = "MachineDeployment/md", "ControlPlane"
	for name, tc := range map[string]struct {
		pool   string
		most   int
		own    peer
		others []peer
		reason string // "" if it may begin
		says   string
	}{
		"all are well": {own: well("w1"), others: []peer{well("w2"), well("w3")}},
		"one alone":    {own: well("w1")},
		"another one's turn": {own: well("w1"), others: []peer{turn(well("w2"))},
			reason: bootstrapv1.WaitingForPoolReason, says: "w2, being updated since 2026-11-23T08:00:00Z"},
		"its own turn":                       {own: turn(well("w1")), others: []peer{turn(well("w2"))}},
		"its own turn, though others failed": {own: turn(well("w1")), others: []peer{failed(turn(well("w2")))}},
		"another one is not well": {own: well("w1"), others: []peer{down(well("w2"))},
			reason: bootstrapv1.WaitingForPoolReason, says: "w2, whose Node is not Ready"},
		"of another one nothing is known": {own: well("w1"),
			others: []peer{unknown(well("w2"))}, reason: bootstrapv1.WaitingForPoolReason, says: "nothing is known"},
		"it is not well itself":                         {own: down(well("w1")), others: []peer{down(well("w2")), turn(well("w3"))}},
		"it is not well itself, and another has failed": {own: down(well("w1")), others: []peer{failed(turn(well("w2")))}},
		"of itself nothing is known": {own: unknown(well("w1")),
			others: []peer{down(well("w2"))}, reason: bootstrapv1.WaitingForPoolReason, says: "w2"},
		"of itself nothing is known, and nobody else is away":   {own: unknown(well("w1")), others: []peer{well("w2")}},
		"of the API nothing is known, and it is a host of that": {pool: master, own: unknown(well("c1")), others: []peer{unknown(well("c2"))}},
		"one has failed that has no turn":                       {own: well("w1"), others: []peer{failed(well("w2"))}},
		"one has failed that has a turn": {own: well("w1"), others: []peer{failed(turn(well("w2")))},
			reason: bootstrapv1.PoolStoppedReason, says: "failed on w2: step kubelet/healthy failed"},
		"one has failed, and more may be away": {most: 5, own: well("w1"), others: []peer{failed(turn(well("w2")))}, reason: bootstrapv1.PoolStoppedReason, says: "w2"},
		"more may be away":                     {most: 2, own: well("w1"), others: []peer{turn(well("w2")), well("w3")}},
		"and as many are": {most: 2, own: well("w1"), others: []peer{turn(well("w2")), down(well("w3"))},
			reason: bootstrapv1.WaitingForPoolReason, says: "2 of MachineDeployment/md may be"},
		"one whose turn it is, and who is not Ready, is counted once": {most: 2, own: well("w1"), others: []peer{turn(down(well("w2")))}},
		"of many it names some": {
			own: well("w0"), others: []peer{down(well("w1")), down(well("w2")), down(well("w3")), down(well("w4")), down(well("w5"))},
			reason: bootstrapv1.WaitingForPoolReason, says: "w3, whose Node is not Ready; and 2 more;",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pool{name: workers, workers: tc.pool == "", most: max(1, tc.most), own: tc.own, others: tc.others}
			if tc.pool != "" {
				p.name = tc.pool
			}
			got := p.waits()
			switch {
			case (got == nil) != (tc.reason == ""):
				t.Errorf("got %+v, want %q", got, tc.reason)
			case got != nil && (got.reason != tc.reason || !strings.Contains(got.message, tc.says) || got.remedy == ""):
				t.Errorf("got %s: %s\n%s; want %s: %s", got.reason, got.message, got.remedy, tc.reason, tc.says)
			}
		})
	}
}

// TestSettles: a turn ends when the host has been well for long enough after its run.
func TestSettles(t *testing.T) {
	now := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		own       peer
		endedAgo  time.Duration
		want      time.Duration
		isUnknown bool
	}{
		"just ended":                    {own: peer{well: now.Add(-time.Hour)}, want: time.Minute},
		"ended a while ago":             {own: peer{well: now.Add(-time.Hour)}, endedAgo: 20 * time.Second, want: 40 * time.Second},
		"settled":                       {own: peer{well: now.Add(-time.Hour)}, endedAgo: time.Minute},
		"became Ready later":            {own: peer{well: now.Add(-10 * time.Second)}, endedAgo: time.Minute, want: 50 * time.Second},
		"is not Ready":                  {own: peer{unwell: "whose Node is not Ready"}, endedAgo: time.Hour, isUnknown: true},
		"nobody knows whether it is so": {own: peer{unwell: "of which nothing is known", unknown: true}, endedAgo: time.Hour, isUnknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			left, known := (&pool{own: tc.own}).settles(now.Add(-tc.endedAgo), now, time.Minute)
			if left != tc.want || known == tc.isUnknown {
				t.Errorf("%s, known: %t; want %s, known: %t", left, known, tc.want, !tc.isUnknown)
			}
		})
	}
}

// TestPeer says what objects tell of a host.
func TestPeer(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC))
	shared := &bootstrapv1.KubexmClusterConfig{}
	shared.Status.Turns = []bootstrapv1.Turn{{ConfigName: "c1", Pool: "worker", Since: since}}
	shared.Spec.Members = []bootstrapv1.ClusterMember{
		{Name: "m1", ConfigName: "m1", Phase: bootstrapv1.MemberServing}, {Name: "m2", ConfigName: "m2", Phase: bootstrapv1.MemberJoining},
	}
	// lost is a KubexmConfig whose status was not moved with it, or that is new.
	lost := func(name string) *bootstrapv1.KubexmConfig {
		return &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	held := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{bootstrapv1.HostResetHook: ""}}}
	machine := func(status metav1.ConditionStatus, reason string) *clusterv1.Machine {
		m := &clusterv1.Machine{}
		m.Status.NodeRef.Name = "w1"
		conditions.Set(m, metav1.Condition{
			Type: clusterv1.MachineNodeReadyCondition, Status: status, Reason: reason, Message: "* Node.Ready: why\nmore", LastTransitionTime: since,
		})
		return m
	}
	config := func(change ...func(*bootstrapv1.KubexmConfig)) *bootstrapv1.KubexmConfig {
		c := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
		c.Status.PlanDigest = "sha256:0"
		for _, change := range change {
			change(c)
		}
		return c
	}
	said := func(kind string, status metav1.ConditionStatus) func(*bootstrapv1.KubexmConfig) {
		return func(c *bootstrapv1.KubexmConfig) {
			conditions.Set(c, metav1.Condition{Type: kind, Status: status, Reason: "R", Message: "why", LastTransitionTime: since})
		}
	}
	failed := func(c *bootstrapv1.KubexmConfig) {
		c.Status.OperationFor(bootstrapv1.ConvergeOperation).Failures = ptr.To[int32](1)
	}
	why := func(c *bootstrapv1.KubexmConfig) {
		c.Status.OperationFor(bootstrapv1.ConvergeOperation).Message = "why it failed"
	}
	leaves := machine(metav1.ConditionTrue, clusterv1.MachineNodeReadyReason)
	leaves.DeletionTimestamp = &since
	unsaid := &clusterv1.Machine{}
	unsaid.Status.NodeRef.Name = "w1"
	for name, tc := range map[string]struct {
		machine *clusterv1.Machine
		config  *bootstrapv1.KubexmConfig
		want    peer
	}{
		"a Node that is Ready": {machine(metav1.ConditionTrue, clusterv1.MachineNodeReadyReason),
			config(), peer{name: "w1", turn: since.Time, well: since.Time}},
		"one that is not": {machine(metav1.ConditionFalse, clusterv1.MachineNodeNotReadyReason), config(), peer{
			name: "w1", turn: since.Time, unwell: "whose Node is not Ready since 2026-11-23T08:00:00Z (* Node.Ready: why)",
		}},
		"whose kubelet is silent": {machine(metav1.ConditionUnknown, clusterv1.MachineNodeReadyUnknownReason), nil, peer{
			name: "w1", unwell: "whose Node is not Ready since 2026-11-23T08:00:00Z (* Node.Ready: why)",
		}},
		"which nobody can ask for": {machine(metav1.ConditionUnknown, clusterv1.MachineNodeConnectionDownReason), nil, peer{
			name: "w1", unwell: "of whose Node it is not known whether it is Ready since 2026-11-23T08:00:00Z (* Node.Ready: why)", unknown: true,
		}},
		"which nobody has asked for": {unsaid, nil, peer{name: "w1", unwell: "of whose Node nobody has said yet whether it is Ready", unknown: true}},
		"one that leaves":            {leaves, config(), peer{name: "w1", well: since.Time}},
		"one that failed": {machine(metav1.ConditionTrue, clusterv1.MachineNodeReadyReason),
			config(failed, said(bootstrapv1.HostConvergedCondition, metav1.ConditionFalse)), peer{
				name: "w1", turn: since.Time, failed: "R: why", well: since.Time,
			}},
		"one that tries again": {machine(metav1.ConditionTrue, clusterv1.MachineNodeReadyReason), config(failed, why), peer{
			name: "w1", turn: since.Time, failed: "why it failed", well: since.Time,
		}},
		"a host that is not used yet": {&clusterv1.Machine{}, config(func(c *bootstrapv1.KubexmConfig) {
			c.Status.PlanDigest, c.Name = "", "c2"
		}), peer{name: "c2"}},
		"one of which nothing was said yet":            {&clusterv1.Machine{}, lost("c2"), peer{name: "c2"}},
		"one that was touched, and its status is lost": {held, lost("c2"), peer{name: "c2", unwell: "whose health is unknown", unknown: true}},
		"one that is touched for the first time": {held, config(func(c *bootstrapv1.KubexmConfig) {
			c.Status.PlanDigest, c.Name = "", "c2"
			c.Status.OperationFor(bootstrapv1.ConvergeOperation).StartTime = since
		}), peer{name: "c2"}},
		"a member that serves, and its status is lost": {nil, lost("m1"), peer{name: "m1", unwell: "whose health is unknown", unknown: true}},
		"a member that joins":                          {held, lost("m2"), peer{name: "m2"}},
		"whose Node was found Ready": {&clusterv1.Machine{}, config(said(bootstrapv1.NodeJoinedCondition, metav1.ConditionTrue)),
			peer{name: "c1", turn: since.Time, well: since.Time}},
		"whose Node was not": {&clusterv1.Machine{}, config(said(bootstrapv1.NodeJoinedCondition, metav1.ConditionFalse)), peer{
			name: "c1", turn: since.Time, unwell: "which is unhealthy since 2026-11-23T08:00:00Z (why)",
		}},
		"no Node, and it answers": {nil, config(said(bootstrapv1.HostReachableCondition, metav1.ConditionTrue)),
			peer{name: "c1", turn: since.Time, well: since.Time}},
		"no Node, and nothing is known": {nil, config(), peer{name: "c1", turn: since.Time, unwell: "whose health is unknown", unknown: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newPeer(tc.machine, tc.config, shared); got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

// TestPoolOf: workers of one MachineDeployment take turns with each other; those that nobody owns as well; other hosts with their like.
func TestPoolOf(t *testing.T) {
	for want, labels := range map[string]map[string]string{
		"MachineDeployment/md": {clusterv1.MachineDeploymentNameLabel: "md", clusterv1.MachineSetNameLabel: "md-1"},
		"MachineSet/set":       {clusterv1.MachineSetNameLabel: "set"},
		"MachinePool/pool":     {clusterv1.MachinePoolNameLabel: "pool"},
		"Worker":               nil,
	} {
		if got := poolOf(spec.RoleWorker, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: labels}}); got != want {
			t.Errorf("%v: %s, want %s", labels, got, want)
		}
	}
	if got := poolOf(spec.RoleControlPlane, &clusterv1.Machine{}); got != "ControlPlane" {
		t.Errorf("a control plane host is of the pool %s", got)
	}
	if got := poolOf(spec.RoleEtcd, nil); got != "Etcd" {
		t.Errorf("a host of etcd is of the pool %s", got)
	}
}

// TestTurnsAreTakenOnce: of hosts that ask at the same moment, by whatever many managers, as many begin as may; when one has given
// its turn back, one more does; and the turn of a KubexmConfig that is gone is nobody's.
func TestTurnsAreTakenOnce(t *testing.T) {
	const namespace, cluster, hosts, most = "fleet", "prod", 12, 3
	scheme := runtime.NewScheme()
	if err := errors.Join(clusterv1.AddToScheme(scheme), bootstrapv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{clusterv1.ClusterNameLabel: cluster, clusterv1.MachineDeploymentNameLabel: "md"}
	long := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	shared := &bootstrapv1.KubexmClusterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster}}
	shared.Status.Turns = []bootstrapv1.Turn{{ConfigName: "gone", Pool: "MachineDeployment/md", Since: long}}
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "md"}}
	md.Spec.Replicas = ptr.To[int32](hosts)
	md.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString("25%"))
	objects := []client.Object{shared, md}
	var scopes []*scope
	for i := range hosts {
		name := fmt.Sprintf("w%d", i)
		c := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
		c.Status.PlanDigest, c.Status.OperationFor(bootstrapv1.ConvergeOperation).EndTime = "sha256:0", long
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
		m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfig", Name: name,
		}
		m.Status.NodeRef.Name = name
		conditions.Set(m, metav1.Condition{
			Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionTrue,
			Reason: clusterv1.MachineNodeReadyReason, LastTransitionTime: long,
		})
		objects = append(objects, c, m)
		scopes = append(scopes, &scope{
			config: c, key: client.ObjectKeyFromObject(c), machine: m, clusterConfig: shared,
			cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster}},
		})
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&bootstrapv1.KubexmClusterConfig{}).Build()
	managers := []*KubexmConfigReconciler{{Client: api, Reader: api, Settle: time.Minute}, {Client: api, Reader: api, Settle: time.Minute}}

	// asks has all hosts ask at once, again and again until each has its turn or learns what it waits for.
	asks := func() (begun []*scope) {
		var mu sync.Mutex
		var all sync.WaitGroup
		for i, s := range scopes {
			all.Go(func() {
				for {
					held, err := managers[i%len(managers)].takesTurn(t.Context(), s, true)
					if errors.Is(err, errTurns) {
						continue
					}
					if err != nil {
						t.Error(err)
					}
					if held == nil {
						mu.Lock()
						begun = append(begun, s)
						mu.Unlock()
					}
					return
				}
			})
		}
		all.Wait()
		return begun
	}
	begun := asks()
	if len(begun) != most {
		t.Fatalf("%d hosts have begun, want %d", len(begun), most)
	}
	if again := asks(); len(again) != most {
		t.Errorf("%d hosts have their turns when they ask again, want the same %d", len(again), most)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(shared), shared); err != nil {
		t.Fatal(err)
	}
	if len(shared.Status.Turns) != most {
		t.Errorf("the turns are %+v", shared.Status.Turns)
	}
	if left, err := managers[0].givesTurn(t.Context(), begun[0]); left != 0 || err != nil {
		t.Errorf("a host that has settled keeps its turn for %s: %v", left, err)
	}
	if again := asks(); len(again) != most {
		t.Errorf("%d hosts have turns after one has ended, want %d", len(again), most)
	}
	if held, err := managers[1].takesTurn(t.Context(), begun[0], false); held != nil || err != nil {
		t.Errorf("a host that must not wait is held: %+v, %v", held, err)
	}
}

// TestTurnIsReleased: a host that waits for something else does not keep the turn that it has made no use of, also where its run was cut
// before it changed anything. One of which that is not known keeps it.
func TestTurnIsReleased(t *testing.T) {
	since := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	ran := func(after time.Duration, came bootstrapv1.RunOutcome, changed, failures int32) bootstrapv1.OperationStatus {
		return bootstrapv1.OperationStatus{
			Type: bootstrapv1.ConvergeOperation, StartTime: metav1.NewTime(since.Add(after)), Outcome: came,
			Changed: ptr.To(changed), Failures: ptr.To(failures),
		}
	}
	for name, tc := range map[string]struct {
		last hostCache
		ran  bootstrapv1.OperationStatus
		kept bool
	}{
		"nothing was run since":               {hostCache{turn: true}, ran(-time.Minute, bootstrapv1.RunSucceeded, 1, 0), false},
		"it was cut, and has changed nothing": {hostCache{turn: true}, ran(time.Minute, bootstrapv1.RunInterrupted, 0, 0), false},
		"it was cut, and has begun":           {hostCache{turn: true, begun: "a"}, ran(time.Minute, bootstrapv1.RunInterrupted, 0, 0), true},
		"it was cut, and has changed a step":  {hostCache{turn: true}, ran(time.Minute, bootstrapv1.RunInterrupted, 1, 0), true},
		"another process knows":               {hostCache{}, ran(time.Minute, bootstrapv1.RunInterrupted, 0, 0), true},
		"it has failed":                       {hostCache{turn: true}, ran(time.Minute, bootstrapv1.RunFailed, 0, 1), true},
		"it is to settle":                     {hostCache{turn: true}, ran(time.Minute, bootstrapv1.RunSucceeded, 0, 0), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := testScope()
			s.clusterConfig.Status.Turns = []bootstrapv1.Turn{{ConfigName: s.config.Name, Pool: "Worker", Since: since}}
			api := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(s.clusterConfig).WithStatusSubresource(s.clusterConfig).
				Build()
			key := client.ObjectKeyFromObject(s.clusterConfig)
			if err := api.Get(t.Context(), key, s.clusterConfig); err != nil {
				t.Fatal(err)
			}
			s.config.Status.SetOperation(tc.ran)
			r := &KubexmConfigReconciler{Client: api, Reader: api}
			if err := r.declines(t.Context(), s, &tc.last); err != nil {
				t.Fatal(err)
			}
			now := &bootstrapv1.KubexmClusterConfig{}
			if err := api.Get(t.Context(), key, now); err != nil {
				t.Fatal(err)
			}
			if kept := now.Status.TurnOf(s.config.Name) != nil; kept != tc.kept {
				t.Errorf("it is kept: %v", kept)
			}
		})
	}
}
