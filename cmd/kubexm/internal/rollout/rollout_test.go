// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/rollout"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// ready is a snapshot of a cluster with one control plane host and one worker, ready in all its parts.
func ready() *rollout.Snapshot {
	config := func(host string) bootstrapv1.KubexmConfig {
		return bootstrapv1.KubexmConfig{Status: bootstrapv1.KubexmConfigStatus{
			Host:       bootstrapv1.HostStatus{Name: host},
			Conditions: []metav1.Condition{condition(bootstrapv1.HostReadyCondition, metav1.ConditionTrue, "Ready", "")},
		}}
	}
	machine := clusterv1.Machine{Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: "x"}}}
	return &rollout.Snapshot{
		Cluster: &clusterv1.Cluster{},
		ControlPlane: &controlplanev1.KubexmControlPlane{Status: controlplanev1.KubexmControlPlaneStatus{
			Conditions: []metav1.Condition{condition(controlplanev1.AvailableCondition, metav1.ConditionTrue, "Available", "")},
		}},
		Configs:  []bootstrapv1.KubexmConfig{config("node1"), config("node2")},
		Machines: []clusterv1.Machine{machine, machine},
		Deployments: []clusterv1.MachineDeployment{{
			ObjectMeta: metav1.ObjectMeta{Name: "workers"},
			Spec:       clusterv1.MachineDeploymentSpec{Replicas: ptr.To(int32(1))},
			Status:     clusterv1.MachineDeploymentStatus{AvailableReplicas: ptr.To(int32(1))},
		}},
	}
}

func TestWaits(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *rollout.Snapshot)
		want   []rollout.Wait
	}{
		{"ready", func(*rollout.Snapshot) {}, nil},
		{"a step failed: the deepest condition, not the summary", func(s *rollout.Snapshot) {
			s.Configs[1].Status.Conditions = []metav1.Condition{
				condition(bootstrapv1.HostReadyCondition, metav1.ConditionFalse, "NotReady", "in more words"),
				condition(bootstrapv1.HostConvergedCondition, metav1.ConditionFalse, "StepFailed", "kubelet exited"),
			}
		}, []rollout.Wait{{On: "node2", Reason: "StepFailed", Message: "kubelet exited"}}},
		{"not observed again since a change", func(s *rollout.Snapshot) {
			s.Configs[0].Generation, s.Configs[0].Status.Conditions[0].ObservedGeneration = 2, 1
		}, []rollout.Wait{{On: "node1", Reason: "Changed", Message: "not observed again yet"}}},
		{"nothing is there", func(s *rollout.Snapshot) { *s = rollout.Snapshot{} },
			[]rollout.Wait{{On: "cluster", Reason: "NotFound", Message: "its objects are not there"}}},
		{"the API does not answer", func(s *rollout.Snapshot) {
			s.ControlPlane.Status.Conditions[0] = condition(controlplanev1.AvailableCondition, metav1.ConditionFalse, "NotAvailable", "refused")
		}, []rollout.Wait{{On: "control plane", Reason: "NotAvailable", Message: "refused"}}},
		{"a worker is missing", func(s *rollout.Snapshot) {
			s.Machines, s.Configs = s.Machines[:1], s.Configs[:1]
			s.Deployments[0].Status.AvailableReplicas = nil
		}, []rollout.Wait{
			{On: "cluster", Reason: "Scaling", Message: "1 of 2 Machines are there"},
			{On: "cluster", Reason: "Scaling", Message: "MachineDeployment workers has 0 of 1 Machines available"},
		}},
		{"users have not installed the network yet", func(s *rollout.Snapshot) {
			s.ControlPlane.Spec.Cluster.Network.Plugin = spec.NetworkNone
			s.Deployments[0].Status.AvailableReplicas, s.Deployments[0].Status.Replicas = nil, ptr.To[int32](1)
		}, nil},
		{"a host that does not become a Node is in the cluster, and nobody wants it", func(s *rollout.Snapshot) {
			apart := s.Configs[0]
			apart.Spec.HostRef = bootstrapv1.HostReference{Name: "lb1", Role: spec.RoleLoadBalancer}
			s.Configs = append(s.Configs, apart)
		}, []rollout.Wait{{On: "cluster", Reason: "Scaling", Message: "1 of 0 hosts of etcd and of load balancers are in the cluster"}}},
		{"a host of etcd was not observed yet", func(s *rollout.Snapshot) {
			s.Configs = append(s.Configs, bootstrapv1.KubexmConfig{
				Spec: bootstrapv1.KubexmConfigSpec{HostRef: bootstrapv1.HostReference{Name: "etcd1", Role: spec.RoleEtcd}},
			})
		}, []rollout.Wait{
			{On: "etcd1", Reason: "NotStarted", Message: "not observed yet"},
			{On: "cluster", Reason: "Scaling", Message: "1 of 0 hosts of etcd and of load balancers are in the cluster"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := ready()
			c.change(s)
			if diff := cmp.Diff(c.want, s.Waits(2, 0)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRetire: the Machine on a host that leaves is the one that goes, and the host is forgotten once it is free.
func TestRetire(t *testing.T) {
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}
	}
	of := map[string]string{clusterv1.ClusterNameLabel: "prod"}
	host := func(name, claim string, kind ...string) *infrav1.KubexmHost {
		return &infrav1.KubexmHost{
			ObjectMeta: meta(name, map[string]string{objects.ClusterLabel: "prod", objects.PoolLabel: "workers"}),
			Spec:       infrav1.KubexmHostSpec{ClaimRef: infrav1.MachineReference{Kind: strings.Join(kind, ""), Name: claim}},
		}
	}
	machine := func(name, infra string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: meta(name, of), Spec: clusterv1.MachineSpec{
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{Name: infra},
		}}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme, infrav1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		host("stays", "infra-a"), host("leaves", "infra-b"), host("free", ""),
		machine("a", "infra-a"), machine("b", "infra-b"),
		host("etcd1", "infra-a", infrav1.ClaimedByConfig), // a KubexmConfig may have a KubexmMachine's name
		host("apart", ""), &bootstrapv1.KubexmConfig{
			ObjectMeta: meta("prod-apart", of),
			Spec:       bootstrapv1.KubexmConfigSpec{HostRef: bootstrapv1.HostReference{Name: "apart", Role: spec.RoleLoadBalancer}},
		},
		&clusterv1.MachineDeployment{ObjectMeta: meta("old", of)}, &clusterv1.MachineDeployment{ObjectMeta: meta("kept", of)},
	).Build()
	key := client.ObjectKey{Namespace: "default", Name: "prod"}
	s, err := rollout.Read(t.Context(), c, key)
	if err != nil {
		t.Fatal(err)
	}
	pools := map[string]string{"stays": "workers"}
	leaving := s.Leaving(pools)
	if len(leaving) != 3 || leaving[0].Name != "apart" || leaving[1].Name != "etcd1" || leaving[2].Name != "leaves" {
		t.Fatalf("leaving are %v", leaving)
	}
	for _, err := range []error{
		s.Release(t.Context(), c, leaving),
		s.Prune(t.Context(), c, []client.Object{&clusterv1.MachineDeployment{ObjectMeta: meta("kept", nil)}}),
		s.PruneHosts(t.Context(), c, pools),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if s, err = rollout.Read(t.Context(), c, key); err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Machines {
		if _, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]; marked != (m.Name == "b") {
			t.Errorf("Machine %s is marked: %v", m.Name, marked)
		}
	}
	if len(s.Deployments) != 1 || s.Deployments[0].Name != "kept" {
		t.Errorf("MachineDeployments are %d", len(s.Deployments))
	}
	if len(s.Hosts) != 4 {
		t.Errorf("%d hosts are left; those in use must stay until they are free", len(s.Hosts))
	}
}

// TestPruneJumpHosts: what a jump host is logged in to with goes with the host, or when the host is not behind it any more. A host that
// leaves is reset first.
func TestPruneJumpHosts(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, infrav1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	host := func(name string, behind bool) infrav1.KubexmHost {
		h := infrav1.KubexmHost{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		h.Spec.Access.Credentials.SecretRef.Name = name + "-ssh"
		if behind {
			h.Spec.Access.ProxyJump.Host, h.Spec.Access.ProxyJump.Credentials.SecretRef.Name = "bastion", name+"-ssh-jump"
		}
		return h
	}
	s := &rollout.Snapshot{}
	var there, declared []client.Object
	for _, name := range []string{"stays", "direct", "leaves"} {
		h := host(name, true)
		s.Hosts = append(s.Hosts, h)
		there = append(there, h.DeepCopy())
		for _, secret := range []string{name + "-ssh", name + "-ssh-jump"} {
			there = append(there, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: secret}})
		}
		if name != "leaves" {
			now := host(name, name == "stays")
			declared = append(declared, &now)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(there...).Build()
	left := func() []string {
		all := &corev1.SecretList{}
		if err := c.List(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range all.Items {
			names = append(names, all.Items[i].Name)
		}
		return names
	}
	if err := s.Prune(t.Context(), c, declared); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"direct-ssh", "leaves-ssh", "leaves-ssh-jump", "stays-ssh", "stays-ssh-jump"}, left()); diff != "" {
		t.Error(diff)
	}
	if err := s.PruneHosts(t.Context(), c, map[string]string{"stays": "workers", "direct": "workers"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"direct-ssh", "stays-ssh", "stays-ssh-jump"}, left()); diff != "" {
		t.Error(diff)
	}
}

// TestElsewhere tells a cluster that was moved from one that was deleted, whose hosts stay.
func TestElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot rollout.Snapshot
		want     bool
	}{
		"moved":         {want: true},
		"deleted":       {snapshot: rollout.Snapshot{Hosts: make([]infrav1.KubexmHost, 1)}},
		"being deleted": {snapshot: rollout.Snapshot{Cluster: &clusterv1.Cluster{}, Hosts: make([]infrav1.KubexmHost, 1)}},
	} {
		if got := c.snapshot.Elsewhere(); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
