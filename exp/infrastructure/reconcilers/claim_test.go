// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

type hostOption func(*infrav1.KubexmHost)

func aHost(name string, options ...hostOption) infrav1.KubexmHost {
	host := infrav1.KubexmHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name},
		Spec:       infrav1.KubexmHostSpec{Address: "10.0.0.1"},
	}
	for _, option := range options {
		option(&host)
	}
	return host
}

func takenBy(machine string) hostOption {
	return func(h *infrav1.KubexmHost) {
		h.Spec.ClaimRef = infrav1.MachineReference{Name: machine, ClusterName: "prod"}
	}
}

func in(domain string) hostOption {
	return func(h *infrav1.KubexmHost) { h.Spec.FailureDomain = domain }
}

// inside gives a host addresses for other hosts.
func inside(addresses ...string) hostOption {
	return func(h *infrav1.KubexmHost) { h.Spec.InternalAddresses = addresses }
}

func worker(h *infrav1.KubexmHost) { h.Labels = map[string]string{"role": "worker"} }

func onHold(h *infrav1.KubexmHost) { h.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }

func with(cpus int32, memory string) hostOption {
	return func(h *infrav1.KubexmHost) {
		h.Spec.Capacity = infrav1.HostCapacity{CPUs: cpus}
		if memory != "" {
			h.Spec.Capacity.Memory = resource.MustParse(memory)
		}
	}
}

func said(cpus int32, bytes int64) hostOption {
	return func(h *infrav1.KubexmHost) { h.Status.Facts.CPUs, h.Status.Facts.MemoryBytes = cpus, bytes }
}

func disk(kind string) hostOption {
	return func(h *infrav1.KubexmHost) {
		h.Labels = maps.Clone(h.Labels)
		if h.Labels == nil {
			h.Labels = map[string]string{}
		}
		h.Labels[kind] = ""
	}
}

func prefers(weight int32, label string) infrav1.HostPreference {
	return infrav1.HostPreference{Weight: weight, Selector: metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: label, Operator: metav1.LabelSelectorOpExists}},
	}}
}

func deleting(h *infrav1.KubexmHost) { h.DeletionTimestamp = &metav1.Time{Time: noon} }

// is adds a condition that became so some time before noon.
func is(condition string, status metav1.ConditionStatus, reason string, ago time.Duration) hostOption {
	return func(h *infrav1.KubexmHost) {
		h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{
			Type: condition, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(noon.Add(-ago)),
		})
	}
}

// beat is the time of a heartbeat some time before noon.
func beat(ago time.Duration) hostOption {
	return func(h *infrav1.KubexmHost) { h.Status.LastHeartbeatTime = metav1.NewTime(noon.Add(-ago)) }
}

func alive(h *infrav1.KubexmHost) {
	is(infrav1.ReachableCondition, metav1.ConditionTrue, infrav1.ReachedReason, time.Hour)(h)
}

func TestChoose(t *testing.T) {
	before := func(h *infrav1.KubexmHost) { h.Spec.ClaimRef.UID = "before" }
	maintained := func(h *infrav1.KubexmHost) { h.Spec.Maintenance = infrav1.Maintenance{Message: "a new disk"} }
	dirty := func(h *infrav1.KubexmHost) { h.Spec.Quarantine = infrav1.Quarantine{Reason: infrav1.NotResetReason} }
	let := is(infrav1.CleanCondition, metav1.ConditionFalse, infrav1.InUseReason, time.Hour)
	reset := is(infrav1.CleanCondition, metav1.ConditionTrue, infrav1.ResetReason, time.Hour)
	resetLately := is(infrav1.CleanCondition, metav1.ConditionTrue, infrav1.ResetReason, time.Second)
	inUse := is(infrav1.CleanCondition, metav1.ConditionFalse, infrav1.InUseReason, time.Hour)
	for name, test := range map[string]struct {
		spec    infrav1.KubexmMachineSpec
		domain  string
		network spec.Network
		hosts   []infrav1.KubexmHost
		peers   peers
		want    string
		claimed bool
		reason  string
		message string
		retry   time.Duration
	}{
		"the first by name": {hosts: []infrav1.KubexmHost{aHost("b"), aHost("a")}, want: "a"},
		"one that was reset": {
			hosts: []infrav1.KubexmHost{aHost("a", dirty), aHost("b", reset)}, want: "b",
		},
		"none whose claim somebody has removed": {
			hosts: []infrav1.KubexmHost{aHost("a", let), aHost("b", reset)}, want: "b",
		},
		"one that somebody has cleaned": {
			hosts: []infrav1.KubexmHost{aHost("a",
				is(infrav1.CleanCondition, metav1.ConditionFalse, infrav1.NotResetReason, time.Hour))}, want: "a",
		},
		"one that nobody has had, before one that was reset": {
			hosts: []infrav1.KubexmHost{aHost("a", reset), aHost("b")}, want: "b",
		},
		"the one that is free the longest": {
			hosts: []infrav1.KubexmHost{aHost("a", resetLately), aHost("b", reset)}, want: "b",
		},
		"its own, whatever else is free": {
			hosts: []infrav1.KubexmHost{aHost("a"), aHost("b", takenBy("m"), inUse)}, want: "b", claimed: true,
		},
		"its own after a move, whose claim has the UID of the object before it": {
			spec:  infrav1.KubexmMachineSpec{ProviderID: "kubexm://fleet/b"},
			hosts: []infrav1.KubexmHost{aHost("a"), aHost("b", takenBy("m"), before, inUse)}, want: "b", claimed: false,
		},
		"not the one of a Machine of its name before it": {
			hosts: []infrav1.KubexmHost{aHost("a"), aHost("b", takenBy("m"), before, inUse)}, want: "a",
		},
		"none in maintenance": {
			hosts: []infrav1.KubexmHost{aHost("a", maintained), aHost("b")}, want: "b",
		},
		"the failure domain with the fewest peers": {
			hosts: []infrav1.KubexmHost{aHost("a", in("r1")), aHost("b", in("r2")), aHost("c", in("r3"))},
			peers: peers{all: map[string]int{"r1": 2, "r2": 1, "r3": 1}}, want: "b",
		},
		"the failure domain with the fewest peers that stay, though another has fewer": {
			hosts: []infrav1.KubexmHost{aHost("a", in("r1")), aHost("b", in("r2")), aHost("c", in("r3"))},
			peers: peers{all: map[string]int{"r1": 1, "r2": 2, "r3": 3}, staying: map[string]int{"r1": 1}}, want: "b",
		},
		"the Machine's failure domain before all": {
			domain: "r1",
			hosts:  []infrav1.KubexmHost{aHost("a", in("r2")), aHost("b", in("r1"))},
			peers:  peers{staying: map[string]int{"r1": 5}}, want: "b",
		},
		"the named one": {
			spec:  infrav1.KubexmMachineSpec{HostName: "c"},
			hosts: []infrav1.KubexmHost{aHost("a"), aHost("c")}, want: "c",
		},
		"a selected one": {
			spec:  infrav1.KubexmMachineSpec{HostSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "worker"}}},
			hosts: []infrav1.KubexmHost{aHost("a"), aHost("b", worker)}, want: "b",
		},
		"one that is large enough, as declared or as it said": {
			spec: infrav1.KubexmMachineSpec{Requirements: infrav1.HostCapacity{CPUs: 4, Memory: resource.MustParse("8Gi")}},
			hosts: []infrav1.KubexmHost{
				aHost("a", with(2, "16Gi")), aHost("b", with(8, "4Gi")), aHost("c", said(64, 1<<40), with(1, "")), aHost("d", said(4, 8<<30)),
			}, want: "d",
		},
		"none of which it is not known": {
			spec:   infrav1.KubexmMachineSpec{Requirements: infrav1.HostCapacity{CPUs: 4, Memory: resource.MustParse("8Gi")}},
			hosts:  []infrav1.KubexmHost{aHost("a"), aHost("b", with(4, "")), aHost("c", with(2, "8Gi")), aHost("d", with(4, "7Gi"))},
			reason: infrav1.NoHostReason,
			message: "no host is free; of the 4 in the namespace fleet: 1 of unknown memory (say so in spec.capacity) (b); " +
				"1 of unknown processors (say so in spec.capacity) (a); 1 with fewer than 4 processors (c); 1 with less than 8Gi of memory (d)",
		},
		"its own, though it is too small by now": {
			spec:  infrav1.KubexmMachineSpec{Requirements: infrav1.HostCapacity{CPUs: 64}},
			hosts: []infrav1.KubexmHost{aHost("a", with(64, "")), aHost("b", takenBy("m"), inUse, with(1, ""))}, want: "b", claimed: true,
		},
		"one in the networks of hosts, by an address for other hosts": {
			network: spec.Network{HostCIDRs: []string{"192.0.2.0/24", "172.16.0.0/24"}},
			hosts:   []infrav1.KubexmHost{aHost("a"), aHost("b", inside("198.51.100.2")), aHost("c", inside("198.51.100.3", "172.16.0.3"))}, want: "c",
		},
		"one in the networks of hosts, by the address at which it is reached": {
			network: spec.Network{HostCIDRs: []string{"10.0.0.0/24"}},
			hosts:   []infrav1.KubexmHost{aHost("a", inside("172.16.0.2"))}, want: "a",
		},
		"none outside of the networks of hosts, or in the one of the second family alone": {
			network: spec.Network{PodCIDRs: []string{"10.233.64.0/18", "fd85::/112"}, HostCIDRs: []string{"172.16.0.0/24", "fd00::/64"}},
			hosts:   []infrav1.KubexmHost{aHost("a"), aHost("b", inside("10.0.0.2", "fd00::2"))},
			reason:  infrav1.NoHostReason, retry: time.Minute,
			message: "no host is free; of the 2 in the namespace fleet: " +
				"2 with no IPv4 address in the networks of hosts (network.hostCIDRs: 172.16.0.0/24, fd00::/64) (a, b)",
		},
		"none with an address of another family than the cluster's": {
			hosts:  []infrav1.KubexmHost{aHost("a", func(h *infrav1.KubexmHost) { h.Spec.Address = "2001:db8::1" })},
			reason: infrav1.NoHostReason, retry: time.Minute,
			message: "no host is free; of the 1 in the namespace fleet: 1 with no IPv4 address (a)",
		},
		"the named one is outside of the networks of hosts": {
			spec:    infrav1.KubexmMachineSpec{HostName: "a"},
			network: spec.Network{HostCIDRs: []string{"172.16.0.0/24"}},
			hosts:   []infrav1.KubexmHost{aHost("a"), aHost("b", inside("172.16.0.3"))}, reason: infrav1.NoHostReason, retry: time.Minute,
			message: "the KubexmHost a cannot be claimed: with no IPv4 address in the networks of hosts (network.hostCIDRs: 172.16.0.0/24)",
		},
		"its own, though it is outside of the networks of hosts": {
			network: spec.Network{HostCIDRs: []string{"172.16.0.0/24"}},
			hosts:   []infrav1.KubexmHost{aHost("a", inside("172.16.0.2")), aHost("b", takenBy("m"), inUse)}, want: "b", claimed: true,
		},
		"the one that it had, though it is outside of the networks of hosts": {
			spec:    infrav1.KubexmMachineSpec{ProviderID: "kubexm://fleet/b"},
			network: spec.Network{HostCIDRs: []string{"172.16.0.0/24"}},
			hosts:   []infrav1.KubexmHost{aHost("a", inside("172.16.0.2")), aHost("b")}, want: "b",
		},
		"the one with the highest sum of weights": {
			spec:  infrav1.KubexmMachineSpec{Preferences: []infrav1.HostPreference{prefers(50, "nvme"), prefers(30, "new"), prefers(30, "near")}},
			hosts: []infrav1.KubexmHost{aHost("a", disk("nvme")), aHost("b", disk("new"), disk("near")), aHost("c", disk("new"))}, want: "b",
		},
		"the failure domain with the fewest peers before one that is preferred": {
			spec:  infrav1.KubexmMachineSpec{Preferences: []infrav1.HostPreference{prefers(100, "nvme")}},
			hosts: []infrav1.KubexmHost{aHost("a", in("r1"), disk("nvme")), aHost("b", in("r2"))},
			peers: peers{all: map[string]int{"r1": 1}}, want: "b",
		},
		"one that is preferred before one that is free for longer": {
			spec:  infrav1.KubexmMachineSpec{Preferences: []infrav1.HostPreference{prefers(1, "nvme")}},
			hosts: []infrav1.KubexmHost{aHost("a", reset), aHost("b", resetLately, disk("nvme"))}, want: "b",
		},
		"a preference that cannot be read": {
			spec: infrav1.KubexmMachineSpec{Preferences: []infrav1.HostPreference{{Weight: 1, Selector: metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}},
			}}}},
			hosts: []infrav1.KubexmHost{aHost("a")}, reason: infrav1.NoHostReason,
			message: `spec.preferences[0].selector: "Near" is not a valid label selector operator`,
		},
		"one that was unreachable long ago": {
			hosts: []infrav1.KubexmHost{aHost("a", is(infrav1.ReachableCondition, metav1.ConditionFalse, "Unreachable", 11*time.Minute))}, want: "a",
		},
		"one that a heartbeat found out of reach again": {
			hosts: []infrav1.KubexmHost{
				aHost("a", is(infrav1.ReachableCondition, metav1.ConditionFalse, "LoginFailed", time.Hour), beat(3*time.Minute)),
			},
			reason: infrav1.NoHostReason, retry: 7 * time.Minute,
			message: "no host is free; of the 1 in the namespace fleet: 1 unreachable: LoginFailed (a)",
		},
		"one that no heartbeat has reached for long, if there is no other": {
			hosts: []infrav1.KubexmHost{aHost("a", is(infrav1.ReachableCondition, metav1.ConditionFalse, "Unreachable", time.Hour), beat(time.Hour))},
			want:  "a",
		},
		"one that was never dialled before one that was unreachable long ago": {
			spec: infrav1.KubexmMachineSpec{Preferences: []infrav1.HostPreference{prefers(100, "nvme")}},
			hosts: []infrav1.KubexmHost{
				aHost("a", disk("nvme"), is(infrav1.ReachableCondition, metav1.ConditionFalse, "Unreachable", time.Hour)), aHost("b"),
			},
			want: "b",
		},
		"the failure domain with the fewest peers, although its host was unreachable long ago": {
			hosts: []infrav1.KubexmHost{
				aHost("a", in("r1")), aHost("b", in("r2"), is(infrav1.ReachableCondition, metav1.ConditionFalse, "Unreachable", time.Hour)),
			},
			peers: peers{all: map[string]int{"r1": 1}}, want: "b",
		},
		"one whose heartbeat has succeeded before one that was never dialled": {
			hosts: []infrav1.KubexmHost{aHost("a"), aHost("b", alive, beat(time.Minute))}, want: "b",
		},
		"one that is preferred before one whose heartbeat has succeeded": {
			spec:  infrav1.KubexmMachineSpec{Preferences: []infrav1.HostPreference{prefers(1, "nvme")}},
			hosts: []infrav1.KubexmHost{aHost("a", alive, beat(time.Minute)), aHost("b", disk("nvme"))}, want: "b",
		},
		"without heartbeats, one that was never used before one that answered when it was": {
			hosts: []infrav1.KubexmHost{aHost("a", reset, alive), aHost("b")}, want: "b",
		},
		"the one that it had, although in quarantine": {
			spec:  infrav1.KubexmMachineSpec{ProviderID: "kubexm://fleet/b"},
			hosts: []infrav1.KubexmHost{aHost("a"), aHost("b", dirty)}, want: "b",
		},
		"no other than the one that it had": {
			spec:  infrav1.KubexmMachineSpec{ProviderID: "kubexm://fleet/gone"},
			hosts: []infrav1.KubexmHost{aHost("a")}, reason: infrav1.HostLostReason,
			message: "the KubexmHost of kubexm://fleet/gone does not exist any more: create it again, or delete this Machine",
		},
		"not the one that it had and another has": {
			spec:  infrav1.KubexmMachineSpec{ProviderID: "kubexm://fleet/a"},
			hosts: []infrav1.KubexmHost{aHost("a", takenBy("other"))}, reason: infrav1.HostLostReason,
			message: "the KubexmMachine other of the Cluster prod has claimed this Machine's host a: delete this Machine",
		},
		"no hosts at all": {
			reason: infrav1.NoHostReason, message: "there are no KubexmHosts in the namespace fleet",
		},
		"the named one is not there": {
			spec:  infrav1.KubexmMachineSpec{HostName: "c"},
			hosts: []infrav1.KubexmHost{aHost("a")}, reason: infrav1.NoHostReason,
			message: "the KubexmHost c does not exist in the namespace fleet",
		},
		"the named one is taken": {
			spec:  infrav1.KubexmMachineSpec{HostName: "c"},
			hosts: []infrav1.KubexmHost{aHost("a"), aHost("c", takenBy("other"))}, reason: infrav1.NoHostReason,
			message: "the KubexmHost c cannot be claimed: taken by other Machines",
		},
		"every reason is counted": {
			spec:   infrav1.KubexmMachineSpec{HostSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "worker"}}},
			domain: "r1",
			hosts: []infrav1.KubexmHost{
				aHost("a"),
				aHost("b", worker),
				aHost("c", worker, in("r1"), takenBy("other")),
				aHost("d", worker, in("r1"), dirty),
				aHost("e", worker, in("r1"), onHold),
				aHost("f", worker, in("r1"), deleting),
				aHost("g", worker, in("r1"), is(infrav1.ReachableCondition, metav1.ConditionFalse, "Unreachable", time.Minute)),
				aHost("h", worker, in("r1"), is(infrav1.ReachableCondition, metav1.ConditionFalse, "Unreachable", 4*time.Minute)),
			},
			reason: infrav1.NoHostReason, retry: 6 * time.Minute,
			message: "no host is free; of the 8 in the namespace fleet: 1 being deleted (f); " +
				"1 in quarantine (d); 1 not in the failure domain r1 (b); 1 not selected (a); " +
				"1 paused (e); 1 taken by other Machines (c); 2 unreachable (g, h)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &claimant{
				machine: &infrav1.KubexmMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "m"}, Spec: test.spec},
				owner:   &clusterv1.Machine{Spec: clusterv1.MachineSpec{FailureDomain: test.domain}},
				network: test.network,
				hosts:   test.hosts,
				peers:   test.peers,
			}
			got := c.choose(noon)
			host := ""
			if got.host != nil {
				host = got.host.Name
			}
			if host != test.want || got.claimed != test.claimed || got.reason != test.reason || got.retry != test.retry {
				t.Errorf("chose %q (claimed %v), reason %q, retry after %s; want %q (%v), %q, %s",
					host, got.claimed, got.reason, got.retry, test.want, test.claimed, test.reason, test.retry)
			}
			if diff := cmp.Diff(test.message, got.message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNetworkOf: what the cluster's hosts share says it, or what is to say that.
func TestNetworkOf(t *testing.T) {
	said := func(apiVersion, kind, name string, network map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "fleet", "name": name},
			"spec": map[string]any{"cluster": map[string]any{"network": network}},
		}}
	}
	shared := said("bootstrap.cluster.x-k8s.io/v1beta1", "KubexmClusterConfig", "prod",
		map[string]any{"hostCIDRs": []any{"172.16.0.0/24"}, "podCIDRs": []any{"10.0.0.0/16"}})
	silent := said("bootstrap.cluster.x-k8s.io/v1beta1", "KubexmClusterConfig", "prod", map[string]any{})
	controlPlane := said("controlplane.cluster.x-k8s.io/v1beta1", "KubexmControlPlane", "cp", map[string]any{"hostCIDRs": []any{"192.0.2.0/24"}})
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}}
	cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.1.0.0/16"}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: "controlplane.cluster.x-k8s.io", Kind: "KubexmControlPlane", Name: "cp",
	}
	for name, test := range map[string]struct {
		objects []client.Object
		want    spec.Network
	}{
		"the KubexmClusterConfig": {
			[]client.Object{shared, controlPlane}, spec.Network{HostCIDRs: []string{"172.16.0.0/24"}, PodCIDRs: []string{"10.0.0.0/16"}},
		},
		"a KubexmClusterConfig that says nothing": {[]client.Object{silent, controlPlane}, spec.Network{PodCIDRs: []string{"10.1.0.0/16"}}},
		"the KubexmControlPlane before it": {
			[]client.Object{controlPlane}, spec.Network{HostCIDRs: []string{"192.0.2.0/24"}, PodCIDRs: []string{"10.1.0.0/16"}},
		},
		"the Cluster alone": {nil, spec.Network{PodCIDRs: []string{"10.1.0.0/16"}}},
	} {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(test.objects...).Build()
			r := &KubexmMachineReconciler{Options{Reader: reader}}
			got, err := r.networkOf(t.Context(), cluster)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("network (-want +got):\n%s", diff)
			}
		})
	}
}

// A template offers what each of the hosts has that its Machines may get.
func TestOffer(t *testing.T) {
	arch := func(a spec.Arch) hostOption { return func(h *infrav1.KubexmHost) { h.Status.Facts.Arch = a } }
	hosts := []infrav1.KubexmHost{
		aHost("a", with(8, "16Gi"), worker, arch(spec.ArchAMD64)), aHost("b", said(4, 32<<30), worker, arch(spec.ArchAMD64), takenBy("m")),
		aHost("c", worker, arch(spec.ArchAMD64)), aHost("d", with(1, "1Gi"), arch(spec.ArchARM64)),
	}
	workers := &metav1.LabelSelector{MatchLabels: map[string]string{"role": "worker"}}
	for name, test := range map[string]struct {
		spec         infrav1.KubexmMachineSpec
		cpus, memory string
		arch         spec.Arch
		os           string
	}{
		"all":                           {infrav1.KubexmMachineSpec{}, "1", "1Gi", "", "linux"},
		"those that are selected":       {infrav1.KubexmMachineSpec{HostSelector: workers}, "4", "16Gi", spec.ArchAMD64, "linux"},
		"those that are enough":         {infrav1.KubexmMachineSpec{Requirements: infrav1.HostCapacity{CPUs: 5}}, "8", "16Gi", spec.ArchAMD64, "linux"},
		"the one that is named":         {infrav1.KubexmMachineSpec{HostName: "d"}, "1", "1Gi", spec.ArchARM64, "linux"},
		"one of which nothing is known": {infrav1.KubexmMachineSpec{HostName: "c"}, "", "", spec.ArchAMD64, "linux"},
		"none":                          {infrav1.KubexmMachineSpec{HostName: "e"}, "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := offer(&test.spec, hosts)
			cpus, memory := "", ""
			if got.Capacity != nil {
				cpus, memory = got.Capacity.Cpu().String(), got.Capacity.Memory().String()
			}
			if cpus != test.cpus || memory != test.memory ||
				got.NodeInfo != (infrav1.NodeInfo{Architecture: test.arch, OperatingSystem: test.os}) {
				t.Errorf("it offers %s processors, %s of memory, %+v; want %s, %s, %s of %s", cpus, memory, got.NodeInfo, test.cpus, test.memory, test.arch, test.os)
			}
		})
	}
}

func TestPeers(t *testing.T) {
	machine := func(name, deployment string, controlPlane bool) clusterv1.Machine {
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
		m.Spec.InfrastructureRef.Name = "infra-" + name
		if controlPlane {
			m.Labels[clusterv1.MachineControlPlaneLabel] = ""
		} else {
			m.Labels[clusterv1.MachineDeploymentNameLabel] = deployment
		}
		return m
	}
	on := func(name, domain string) infrav1.KubexmMachine {
		m := infrav1.KubexmMachine{ObjectMeta: metav1.ObjectMeta{Name: "infra-" + name}}
		m.Status.HostRef.Name, m.Status.FailureDomain = "host-of-"+name, domain
		return m
	}
	waiting := infrav1.KubexmMachine{ObjectMeta: metav1.ObjectMeta{Name: "infra-w4"}}
	owners := []clusterv1.Machine{
		machine("cp1", "", true), machine("cp2", "", true),
		machine("w1", "md", false), machine("w2", "md", false), machine("w3", "other", false), machine("w4", "md", false),
	}
	machines := []infrav1.KubexmMachine{on("cp1", "r1"), on("cp2", "r2"), on("w1", "r1"), on("w2", "r1"), on("w3", "r3"), waiting}
	for name, want := range map[string]map[string]int{
		"cp1": {"r2": 1},
		"w1":  {"r1": 1},
		"w4":  {"r1": 2},
		"w3":  {},
	} {
		for i := range owners {
			if owners[i].Name != name {
				continue
			}
			if diff := cmp.Diff(want, peersOf(&owners[i], owners, machines).all); diff != "" {
				t.Errorf("peers of %s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// TestPeersThatStay: a Machine that is deleted or is to be replaced is a peer of second rank; one that is updated where it is is not.
func TestPeersThatStay(t *testing.T) {
	upToDate := func(status metav1.ConditionStatus, reason string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			conditions.Set(m, metav1.Condition{Type: clusterv1.MachineUpToDateCondition, Status: status, Reason: reason})
		}
	}
	owners := []clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "new"}}}
	var machines []infrav1.KubexmMachine
	for domain, change := range map[string]func(*clusterv1.Machine){
		"of which nothing is said": func(*clusterv1.Machine) {},
		"up to date":               upToDate(metav1.ConditionTrue, clusterv1.MachineUpToDateReason),
		"updating":                 upToDate(metav1.ConditionFalse, clusterv1.MachineUpToDateUpdatingReason),
		"outdated":                 upToDate(metav1.ConditionFalse, clusterv1.MachineNotUpToDateReason),
		"deleted":                  func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) },
	} {
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: domain}}
		m.Spec.InfrastructureRef.Name = domain
		change(&m)
		on := infrav1.KubexmMachine{ObjectMeta: metav1.ObjectMeta{Name: domain}}
		on.Status.HostRef.Name, on.Status.FailureDomain = "host", domain
		owners, machines = append(owners, m), append(machines, on)
	}
	got, want := peersOf(&owners[0], owners, machines), map[string]int{"of which nothing is said": 1, "up to date": 1, "updating": 1}
	if diff := cmp.Diff(want, got.staying); diff != "" || len(got.all) != len(machines) {
		t.Errorf("of %d, these stay (-want +got):\n%s", len(got.all), diff)
	}
}

func TestAddresses(t *testing.T) {
	host := aHost("node1")
	host.Spec.Address = "203.0.113.7"
	host.Spec.InternalAddresses = []string{"10.0.0.7", "10.1.0.7"}
	want := clusterv1.MachineAddresses{
		{Type: clusterv1.MachineHostName, Address: "node1"},
		{Type: clusterv1.MachineInternalIP, Address: "10.0.0.7"},
		{Type: clusterv1.MachineInternalIP, Address: "10.1.0.7"},
		{Type: clusterv1.MachineExternalIP, Address: "203.0.113.7"},
	}
	if diff := cmp.Diff(want, addressesOf(&host)); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}
