// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func testScope() *scope {
	return &scope{
		config:  &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-w1"}},
		machine: &clusterv1.Machine{Spec: clusterv1.MachineSpec{ClusterName: "prod", Version: "v1.36.3"}},
		cluster: &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"},
			Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "10.1.0.1", Port: 6443}},
		},
		controlPlane: &controlplanev1.KubexmControlPlane{Spec: controlplanev1.KubexmControlPlaneSpec{Version: "v1.35.0"}},
		host: &infra.Host{
			Name: "w1", Address: "10.1.0.2", Internal: []string{"192.168.7.2"}, ProviderID: "kubexm://fleet/w1",
			User: "ops", Credentials: "ssh", HostKeys: []string{"SHA256:abc"},
		},
	}
}

func TestTargetOfWorker(t *testing.T) {
	target, err := targetOf(testScope())
	if err != nil {
		t.Fatal(err)
	}
	want := spec.Host{
		Name: "w1", Role: spec.RoleWorker, Address: "10.1.0.2", InternalAddresses: []string{"192.168.7.2"}, ProviderID: "kubexm://fleet/w1",
	}
	if diff := cmp.Diff(want, target.Host); diff != "" {
		t.Errorf("host (-want +got):\n%s", diff)
	}
	if target.KubernetesVersion != "v1.36.3" {
		t.Errorf("version %s, want the Machine's own", target.KubernetesVersion)
	}
	taints := []corev1.Taint{{Key: "node.cluster.x-k8s.io/uninitialized", Effect: corev1.TaintEffectNoSchedule}}
	if diff := cmp.Diff(taints, target.Node.NodeTaints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
}

func TestTargetOfControlPlane(t *testing.T) {
	s := testScope()
	s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	target, err := targetOf(s)
	if err != nil {
		t.Fatal(err)
	}
	if target.Host.Role != spec.RoleControlPlane || len(target.Node.NodeTaints) > 0 {
		t.Errorf("role %s, taints %v; want a control plane without the worker's taint", target.Host.Role, target.Node.NodeTaints)
	}
}

func TestTargetNamesTheWrongField(t *testing.T) {
	s := testScope()
	s.config.Spec.NodeLabels = map[string]string{"kubernetes.io/role": "x"}
	if _, err := targetOf(s); err == nil || !strings.Contains(err.Error(), "target.node.nodeLabels[kubernetes.io/role]") {
		t.Errorf("got %v, want the path of the field", err)
	}
}

// A plan knows the cluster's own Secrets and those of users by one name each: what means the former cannot be the latter.
func TestUsersSecretsAreNotTheClusters(t *testing.T) {
	for _, purpose := range ofCluster {
		s := testScope()
		s.config.Spec.Files = []spec.File{{Path: "/etc/x", ContentFrom: spec.ContentSource{Secret: spec.SecretKey{Name: string(purpose), Key: "tls.key"}}}}
		if _, err := targetOf(s); err == nil || !strings.Contains(err.Error(), "target.node.files[0].contentFrom.secret.name") {
			t.Errorf("a file from the Secret %s: %v", purpose, err)
		}
		s = testScope()
		s.controlPlane.Spec.Cluster.Etcd = spec.Etcd{Type: spec.EtcdExternal, External: spec.ExternalEtcd{
			Endpoints: []string{"https://10.1.0.9:2379"}, SecretRef: spec.SecretReference{Name: string(purpose)},
		}}
		if _, err := targetOf(s); err == nil || !strings.Contains(err.Error(), "target.cluster.etcd.external.secretRef.name") {
			t.Errorf("an external etcd by the Secret %s: %v", purpose, err)
		}
	}
}

func TestSharedOf(t *testing.T) {
	for name, tc := range map[string]struct {
		endpoint clusterv1.APIEndpoint
		network  clusterv1.ClusterNetwork
		shared   spec.Cluster
		want     spec.Cluster
	}{
		"the Cluster's endpoint counts": {
			endpoint: clusterv1.APIEndpoint{Host: "10.1.0.1", Port: 6443},
			shared:   spec.Cluster{ControlPlaneEndpoint: spec.ControlPlaneEndpoint{Address: "10.9.9.9", Port: 7443}},
			want:     spec.Cluster{ControlPlaneEndpoint: spec.ControlPlaneEndpoint{Address: "10.1.0.1", Port: 6443}},
		},
		"a name is the domain, and keeps the address that the control plane gives it": {
			endpoint: clusterv1.APIEndpoint{Host: "api.prod.example", Port: 6443},
			shared:   spec.Cluster{ControlPlaneEndpoint: spec.ControlPlaneEndpoint{Address: "10.1.0.1"}},
			want:     spec.Cluster{ControlPlaneEndpoint: spec.ControlPlaneEndpoint{Domain: "api.prod.example", Address: "10.1.0.1", Port: 6443}},
		},
		"the Cluster's networks count": {
			network: clusterv1.ClusterNetwork{
				Pods: clusterv1.NetworkRanges{CIDRBlocks: []string{"10.244.0.0/16"}}, ServiceDomain: "prod.local",
			},
			shared: spec.Cluster{Network: spec.Network{PodCIDRs: []string{"10.0.0.0/16"}, ServiceCIDRs: []string{"10.96.0.0/12"}}},
			want: spec.Cluster{
				Network: spec.Network{PodCIDRs: []string{"10.244.0.0/16"}, ServiceCIDRs: []string{"10.96.0.0/12"}},
				DNS:     spec.DNS{ClusterDomain: "prod.local"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{ControlPlaneEndpoint: tc.endpoint, ClusterNetwork: tc.network}}
			controlPlane := &controlplanev1.KubexmControlPlane{Spec: controlplanev1.KubexmControlPlaneSpec{Cluster: tc.shared}}
			if diff := cmp.Diff(tc.want, SharedOf(cluster, controlPlane)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInputFollowsWhatARunDependsOn(t *testing.T) {
	target, err := targetOf(testScope())
	if err != nil {
		t.Fatal(err)
	}
	h := *testScope().host
	base, err := inputOf(target, &h, []string{"s@1"})
	if err != nil {
		t.Fatal(err)
	}
	again, _ := inputOf(target, &h, []string{"s@1"})
	secret, _ := inputOf(target, &h, []string{"s@2"})
	moved := h
	moved.Address = "10.1.0.9"
	address, _ := inputOf(target, &moved, []string{"s@1"})
	target.Node.PreCommands = []string{"true"}
	node, _ := inputOf(target, &h, []string{"s@1"})
	if base != again || base == secret || base == address || base == node {
		t.Errorf("base %s, again %s, another secret %s, another address %s, another node %s", base, again, secret, address, node)
	}
}

// TestAskedToConverge has each new value of the annotation be a reason to converge a host, however lately it was.
func TestAskedToConverge(t *testing.T) {
	inputs := map[string]bool{}
	for _, asked := range []string{"", "2026-11-21T12:00:00Z", "2026-11-21T12:00:01Z", ""} {
		s := testScope()
		if asked != "" {
			s.config.Annotations = map[string]string{bootstrapv1.ConvergeAnnotation: asked}
		}
		j, err := (&Config{}).jobFor(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		inputs[j.input] = true
	}
	if len(inputs) != 3 {
		t.Errorf("%d inputs, want one for each value", len(inputs))
	}
}

// TestMembersMissing waits for what an API server would never hear of later, or would serve in vain.
func TestMembersMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*scope)
		want   string
	}{
		"nothing": {func(*scope) {}, ""},
		"the infrastructure has taken another address": {func(s *scope) {
			s.controlPlane.Spec.Cluster.ControlPlaneEndpoint = spec.ControlPlaneEndpoint{Address: "10.1.0.100"}
		}, "spec.controlPlaneEndpoint is 10.1.0.1"},
		"an etcd host": {func(s *scope) {
			s.controlPlane.Spec.Cluster.Etcd.Hosts.Names = []string{"e1", "e2"}
			s.controlPlane.Status.Members = []spec.Member{{Name: "e1", Role: spec.RoleEtcd, Address: "10.1.0.7"}}
		}, "etcd's host e2"},
		"no etcd host": {func(s *scope) {
			s.controlPlane.Spec.Cluster.Etcd.Hosts.Names = []string{"e1"}
			s.controlPlane.Status.Members = []spec.Member{{Name: "e1", Role: spec.RoleEtcd, Address: "10.1.0.7"}}
		}, ""},
	} {
		s := testScope()
		s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
		tc.change(s)
		shared := SharedOf(s.cluster, s.controlPlane)
		if got := membersMissing(s, &shared); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: waits for %q, want %q", name, got, tc.want)
		}
	}
}

// A worker waits for the control plane to have its version; who is part of the control plane goes first.
func TestControlPlaneBehind(t *testing.T) {
	for _, tt := range []struct {
		name, oldest, wanted string
		controlPlane, waits  bool
	}{
		{"the control plane is not there yet", "", "v1.36.3", false, false},
		{"as new", "v1.36.3", "v1.36.3", false, false},
		{"older", "v1.36.3", "v1.35.4", false, false},
		{"newer", "v1.35.4", "v1.36.3", false, true},
		{"newer by a patch", "v1.36.2", "v1.36.3", false, true},
		{"of the control plane", "v1.35.4", "v1.36.3", true, false},
		{"a Machine without a version", "v1.35.4", "", false, false},
	} {
		s := testScope()
		s.controlPlane.Status.Version, s.machine.Spec.Version = tt.oldest, tt.wanted
		if tt.controlPlane {
			s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
		}
		if got := controlPlaneBehind(s); (got != "") != tt.waits {
			t.Errorf("%s: it waits for %q", tt.name, got)
		}
	}
}

// A Machine's own patience with drains holds, unless the specification has another.
func TestDrainIsLimitedByTheMachine(t *testing.T) {
	for _, tt := range []struct {
		name          string
		machine       *int32
		cluster, node []spec.Limit
		want          int32
	}{
		{"neither", nil, nil, nil, 0},
		{"the Machine", ptr.To[int32](60), nil, nil, 60},
		{"for ever", ptr.To[int32](0), nil, nil, 0},
		{"longer than a limit may be", ptr.To[int32](1 << 30), nil, nil, 86400},
		{"the cluster says otherwise", ptr.To[int32](60), []spec.Limit{{Step: "node/drain", TimeoutSeconds: 30}}, nil, 30},
		{"the host says otherwise", ptr.To[int32](60), nil, []spec.Limit{{Step: "node/drain", TimeoutSeconds: 20}}, 20},
		{"of another step", ptr.To[int32](60), []spec.Limit{{Step: "gate/api", TimeoutSeconds: 30}}, nil, 60},
		{"the cluster speaks of attempts", ptr.To[int32](60), []spec.Limit{{Step: "node/drain", Attempts: 2}}, nil, 60},
		{"the host speaks of attempts", ptr.To[int32](60), nil, []spec.Limit{{Step: "node/drain", Attempts: 2}}, 60},
	} {
		s := testScope()
		s.machine.Spec.Deletion.NodeDrainTimeoutSeconds = tt.machine
		s.controlPlane.Spec.Cluster.Limits, s.config.Spec.Limits = tt.cluster, tt.node
		target, err := targetOf(s)
		if err != nil {
			t.Fatal(err)
		}
		bounds := target.Bounds("drain-w1", "node/drain")
		if bounds.TimeoutSeconds != tt.want || (bounds.Attempts != 0) != strings.Contains(tt.name, "attempts") {
			t.Errorf("%s: a drain has the bounds %+v, want %d seconds", tt.name, bounds, tt.want)
		}
	}
}
