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
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
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
		clusterConfig: &bootstrapv1.KubexmClusterConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}, Spec: bootstrapv1.KubexmClusterConfigSpec{Version: "v1.35.0"},
		},
		host: &infra.Host{
			Host: spec.Host{Name: "w1", Address: "10.1.0.2", InternalAddresses: []string{"192.168.7.2"}, ProviderID: "kubexm://fleet/w1"},
			Access: spec.Access{
				User: "ops", Credentials: spec.Credentials{SecretRef: spec.SecretReference{Name: "ssh"}},
				HostKeys: spec.HostKeys{Pinned: []string{"SHA256:abc"}},
			},
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

// TestLabelsOfInfrastructure: they come to those of the config, and are validated like them.
func TestLabelsOfInfrastructure(t *testing.T) {
	s := testScope()
	s.config.Spec.NodeLabels, s.host.NodeLabels = map[string]string{"disk": "ssd"}, map[string]string{"metal3.io/uuid": "4c4c-44"}
	target, err := targetOf(s)
	if err != nil || len(target.Node.NodeLabels) != 2 || len(s.config.Spec.NodeLabels) != 1 {
		t.Errorf("labels %v, and %v in the config: %v", target.Node.NodeLabels, s.config.Spec.NodeLabels, err)
	}
	for label, remedy := range map[string]string{"a b": "use a label's key", "kubernetes.io/uuid": "use a domain of your own"} {
		s := testScope()
		s.host.NodeLabels = map[string]string{label: "x"}
		if _, _, err := (&KubexmConfigReconciler{}).decideNeed(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		said := conditions.Get(s.config, bootstrapv1.HostConvergedCondition)
		if said == nil || said.Reason != bootstrapv1.InvalidReason ||
			!strings.Contains(said.Message, "target.node.nodeLabels["+label+"]") || !strings.Contains(said.Message, remedy) {
			t.Errorf("of the label %q it says %+v", label, said)
		}
	}
}

// A plan knows the cluster's own Secrets and those of users by one name each: what means the former cannot be the latter.
func TestUsersSecretsAreNotTheClusters(t *testing.T) {
	for _, purpose := range ofCluster {
		s := testScope()
		s.config.Spec.Files = []spec.File{
			{Path: "/etc/x", ContentFrom: spec.ContentSource{Secret: spec.SecretKey{Name: string(purpose), Key: "tls.key"}}},
		}
		if _, err := targetOf(s); err == nil || !strings.Contains(err.Error(), "target.node.files[0].contentFrom.secret.name") {
			t.Errorf("a file from the Secret %s: %v", purpose, err)
		}
		s = testScope()
		s.clusterConfig.Spec.Cluster.Etcd = spec.Etcd{Type: spec.EtcdExternal, External: spec.ExternalEtcd{
			Endpoints: []string{"https://10.1.0.9:2379"}, SecretRef: spec.SecretReference{Name: string(purpose)},
		}}
		if _, err := targetOf(s); err == nil || !strings.Contains(err.Error(), "target.cluster.etcd.external.secretRef.name") {
			t.Errorf("an external etcd by the Secret %s: %v", purpose, err)
		}
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
		j, err := (&KubexmConfigReconciler{}).jobFor(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		inputs[j.input] = true
	}
	if len(inputs) != 3 {
		t.Errorf("%d inputs, want one for each value", len(inputs))
	}
}

// member is one that serves, by its name and address.
func member(name string, role spec.Role, address string) bootstrapv1.ClusterMember {
	return bootstrapv1.ClusterMember{Name: name, Role: role, Address: address, Phase: bootstrapv1.MemberServing, ConfigName: "prod-" + name}
}

// TestMembersMissing waits for what a host would never hear of later, or would serve in vain: with an incomplete list nothing is planned.
func TestMembersMissing(t *testing.T) {
	self := member("w1", spec.RoleControlPlane, "10.1.0.2")
	in := func(members ...bootstrapv1.ClusterMember) func(*scope) {
		return func(s *scope) { s.clusterConfig.Spec.Members = members }
	}
	etcd := func(names []string, members ...bootstrapv1.ClusterMember) func(*scope) {
		return func(s *scope) {
			s.clusterConfig.Spec.Cluster.Etcd.Hosts = spec.Hosts{Names: names}
			if len(names) == 0 {
				s.clusterConfig.Spec.Cluster.Etcd.Hosts.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "etcd"}}
			}
			s.clusterConfig.Spec.Members = append(members, self)
		}
	}
	as := func(role spec.Role, change func(*scope)) func(*scope) {
		return func(s *scope) {
			s.machine, s.config.Spec.HostRef = nil, bootstrapv1.HostReference{Name: "w1", Role: role}
			change(s)
		}
	}
	worker := func(change func(*scope)) func(*scope) {
		return func(s *scope) {
			s.machine.Labels = nil
			s.clusterConfig.Spec.Cluster.LoadBalancer.Type = spec.LoadBalancerNodeLocal
			change(s)
		}
	}
	leaving := member("cp1", spec.RoleControlPlane, "10.1.0.9")
	leaving.Phase = bootstrapv1.MemberDraining
	removed := self
	removed.Phase = bootstrapv1.MemberRemoved
	lb := member("w1", spec.RoleLoadBalancer, "10.1.0.2")
	for name, tc := range map[string]struct {
		change func(*scope)
		want   string
	}{
		"nothing": {in(self), ""},
		"the infrastructure has taken another address": {func(s *scope) {
			s.clusterConfig.Spec.Cluster.ControlPlaneEndpoint = spec.ControlPlaneEndpoint{Address: "10.1.0.100"}
		}, "spec.controlPlaneEndpoint is 10.1.0.1"},
		"itself":                            {in(member("cp1", spec.RoleControlPlane, "10.1.0.9")), "does not list the host"},
		"its own address":                   {in(member("w1", spec.RoleControlPlane, "")), "does not list the host"},
		"itself, after it was removed":      {in(removed, member("cp1", spec.RoleControlPlane, "10.1.0.9")), "does not list the host"},
		"an etcd host":                      {etcd([]string{"e1", "e2"}, member("e1", spec.RoleEtcd, "10.1.0.7")), "etcd's host e2"},
		"the address of an etcd host":       {etcd(nil, member("e1", spec.RoleEtcd, "10.1.0.7"), member("e2", spec.RoleEtcd, "")), "etcd's host e2"},
		"any etcd host":                     {etcd(nil), "any of etcd's own hosts"},
		"no etcd host":                      {etcd([]string{"e1"}, member("e1", spec.RoleEtcd, "10.1.0.7")), ""},
		"servers to balance":                {as(spec.RoleLoadBalancer, in(lb)), "without servers"},
		"servers that stay":                 {as(spec.RoleLoadBalancer, in(lb, leaving)), "without servers"},
		"no servers":                        {as(spec.RoleLoadBalancer, in(lb, member("cp1", spec.RoleControlPlane, "10.1.0.9"))), ""},
		"another role":                      {as(spec.RoleEtcd, in(lb)), "does not list the host"},
		"servers, a worker":                 {worker(in()), "without servers"},
		"no servers, a worker":              {worker(in(member("cp1", spec.RoleControlPlane, "10.1.0.9"))), ""},
		"servers, though one of them waits": {worker(in(member("cp1", spec.RoleControlPlane, ""))), "without servers"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testScope()
			s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
			tc.change(s)
			got := s.shared().Missing(s.machine, s.config)
			if !strings.Contains(got.String(), tc.want) || (got == nil) != (tc.want == "") {
				t.Errorf("waits for %q, want %q", got, tc.want)
			}
			if got != nil && got.Reason != bootstrapv1.WaitingForClusterReason {
				t.Errorf("the reason is %s", got.Reason)
			}
		})
	}
}

// TestPhases: what each phase of a member means to the others, and to nobody else.
func TestPhases(t *testing.T) {
	phases := []bootstrapv1.MemberPhase{
		bootstrapv1.MemberJoining, bootstrapv1.MemberServing, bootstrapv1.MemberDraining, bootstrapv1.MemberRemoved,
	}
	for _, role := range []spec.Role{spec.RoleControlPlane, spec.RoleLoadBalancer} {
		var members, leaving []string
		for _, phase := range phases {
			s := testScope()
			if role == spec.RoleControlPlane {
				s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
			} else {
				s.machine, s.config.Spec.HostRef = nil, bootstrapv1.HostReference{Name: "w1", Role: role}
			}
			other := member("cp1", spec.RoleControlPlane, "10.1.0.9")
			other.Phase = phase
			s.clusterConfig.Spec.Members = []bootstrapv1.ClusterMember{
				other, member("w1", role, "192.168.7.2"), member("cp2", spec.RoleControlPlane, ""),
			}
			target, err := targetOf(s)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range target.Members {
				if m.Name != "w1" {
					members = append(members, string(phase)+" "+m.Name)
				}
			}
			for _, m := range target.Leaving {
				leaving = append(leaving, string(phase)+" "+m.Name)
			}
		}
		if diff := cmp.Diff([]string{"Joining cp1", "Serving cp1"}, members); diff != "" {
			t.Errorf("a %s knows (-want +got):\n%s", role, diff)
		}
		var want []string
		if role == spec.RoleControlPlane {
			want = []string{"Removed cp1"}
		}
		if diff := cmp.Diff(want, leaving); diff != "" {
			t.Errorf("a %s removes (-want +got):\n%s", role, diff)
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
		s.clusterConfig.Spec.APIServerVersion, s.machine.Spec.Version = tt.oldest, tt.wanted
		if tt.controlPlane {
			s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
		}
		if got := s.shared().ControlPlaneBehind(s.machine, s.config); (got != nil) != tt.waits {
			t.Errorf("%s: it waits for %q", tt.name, got)
		}
	}
}

// A worker without a version of its own has the API servers' until they have the declared one: it is planned for, and is never newer.
func TestWorkerWithoutAVersion(t *testing.T) {
	for _, tt := range []struct {
		name, declared, oldest, own string
		controlPlane                bool
		want                        string
	}{
		{"the control plane is not there yet", "v1.36.3", "", "", false, "v1.36.3"},
		{"it is being upgraded", "v1.36.3", "v1.35.4", "", false, "v1.35.4"},
		{"it has been upgraded", "v1.36.3", "v1.36.3", "", false, "v1.36.3"},
		{"the upgrade is taken back", "v1.35.4", "v1.36.3", "", false, "v1.35.4"},
		{"the version is not ours", "v1.36.3", "v1", "", false, "v1.36.3"},
		{"a version of its own", "v1.36.3", "v1.35.4", "v1.34.1", false, "v1.34.1"},
		{"of the control plane", "v1.36.3", "v1.35.4", "", true, "v1.36.3"},
	} {
		s := testScope()
		s.clusterConfig.Spec.Version, s.clusterConfig.Spec.APIServerVersion, s.machine.Spec.Version = tt.declared, tt.oldest, tt.own
		if tt.controlPlane {
			s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
		}
		target, err := targetOf(s)
		if err != nil || target.KubernetesVersion != tt.want {
			t.Errorf("%s: it is to have %s, want %s (%v)", tt.name, target.KubernetesVersion, tt.want, err)
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
		s.clusterConfig.Spec.Cluster.Limits, s.config.Spec.Limits = tt.cluster, tt.node
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
