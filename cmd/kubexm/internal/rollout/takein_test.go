// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/rollout"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme, infrav1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// declared are the objects of a cluster of three control plane hosts and a worker.
func declared(t *testing.T) []client.Object {
	t.Helper()
	c, _, err := config.Parse([]byte(`
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  hosts:
  - {name: cp1, address: 172.16.0.1}
  - {name: cp2, address: 172.16.0.2}
  - {name: cp3, address: 172.16.0.3}
  - {name: w1, address: 172.16.0.4}
  roleGroups: {master: [cp1, cp2, cp3], worker: [w1]}
  controlPlaneEndpoint: {internalLoadbalancer: haproxy}
  kubernetes: {version: v1.36.3}
`))
	if err != nil {
		t.Fatal(err)
	}
	return objects.Of(c, objects.Inputs{Namespace: "default", Endpoint: "172.16.0.1"})
}

// TestTakeIn: wherever it is cut and done again, each control plane host has one Machine, which says that its host was touched, and one of
// them begins; all the while the Cluster is paused. A Cluster that goes on is left alone.
func TestTakeIn(t *testing.T) {
	scheme, all := scheme(t), declared(t)
	hosts := []string{"cp1", "cp2", "cp3", "w1"} // of the cluster; a worker has its Machine from Cluster API
	key := client.ObjectKey{Namespace: "default", Name: "prod"}
	cut := errors.New("cut")
	for _, calls := range []int{0, 1, 2, 3, 7, 99} { // KubexmConfig, KubexmMachine, Machine, of one host after the other
		left := calls
		count := func() error {
			if left--; left < 0 {
				return cut
			}
			return nil
		}
		plane := fake.NewClientBuilder().WithScheme(scheme).Build()
		cutting := interceptor.NewClient(plane, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if err := count(); err != nil {
					return err
				}
				return c.Create(ctx, o, options...)
			},
		})
		if err := rollout.TakeIn(t.Context(), cutting, all, hosts); calls < 9 && !errors.Is(err, cut) || calls > 9 && err != nil {
			t.Fatalf("a cut at %d: %v", calls, err)
		}
		if err := rollout.TakeIn(t.Context(), plane, all, hosts); err != nil {
			t.Fatalf("after a cut at %d: %v", calls, err)
		}
		s, err := rollout.Read(t.Context(), plane, key)
		if err != nil {
			t.Fatal(err)
		}
		if !ptr.Deref(s.Cluster.Spec.Paused, false) || len(s.Machines) != 3 || len(s.Configs) != 3 || len(s.InfraMachines) != 3 {
			t.Fatalf("after a cut at %d: paused %v, %d Machines, %d KubexmConfigs, %d KubexmMachines", calls, s.Cluster.Spec.Paused,
				len(s.Machines), len(s.Configs), len(s.InfraMachines))
		}
		begin := 0
		for i := range s.Configs {
			if s.Configs[i].Spec.BootstrapMode == spec.BootstrapInit {
				begin++
			}
		}
		if begin != 1 {
			t.Errorf("after a cut at %d: %d begin", calls, begin)
		}
		for i := range s.Machines {
			if at := slices.IndexFunc(s.InfraMachines, func(m infrav1.KubexmMachine) bool {
				return m.Name == s.Machines[i].Spec.InfrastructureRef.Name
			}); at < 0 || !slices.Contains(hosts, s.InfraMachines[at].Spec.HostName) || s.InfraMachines[at].Spec.HostSelector != nil {
				t.Errorf("the Machine %s does not name its host", s.Machines[i].Name)
			}
			if _, touched := s.Machines[i].Annotations[bootstrapv1.HostResetHook]; !touched {
				t.Errorf("the Machine %s does not say that its host was touched", s.Machines[i].Name)
			}
		}
		if _, err := rollout.Apply(t.Context(), plane, all); err != nil {
			t.Fatal(err)
		}
		if err := rollout.TakeIn(t.Context(), plane, all, hosts); err != nil {
			t.Fatal(err)
		}
		if s, err = rollout.Read(t.Context(), plane, key); err != nil || ptr.Deref(s.Cluster.Spec.Paused, false) {
			t.Errorf("a Cluster that goes on is paused (%v)", err)
		}
	}
}

// TestTakeInBesideMachines: of a control plane that a management plane has begun, and plans have completed, the hosts get Machines that
// have none. A Machine that waits for a host gets one of them, as it would get any otherwise; hosts that are not the cluster's yet are left
// for it to choose, and so are those in quarantine.
func TestTakeInBesideMachines(t *testing.T) {
	scheme, all := scheme(t), declared(t)
	key := client.ObjectKey{Namespace: "default", Name: "prod"}
	machine := func(name string) *clusterv1.Machine {
		return &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: map[string]string{
				clusterv1.ClusterNameLabel: key.Name, clusterv1.MachineControlPlaneLabel: "",
			}},
			Spec: clusterv1.MachineSpec{ClusterName: key.Name, InfrastructureRef: clusterv1.ContractVersionedObjectReference{Name: name}},
		}
	}
	infra := func(name, provider string) *infrav1.KubexmMachine {
		return &infrav1.KubexmMachine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: key.Namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: key.Name},
			},
			Spec: infrav1.KubexmMachineSpec{ProviderID: provider, HostSelector: &metav1.LabelSelector{}},
		}
	}
	for name, c := range map[string]struct {
		hosts      []string
		claimed    bool // by the Machine that there is
		quarantine string
		// want is the host that each KubexmMachine names; further ones are by their hosts.
		want map[string]string
		join int
	}{
		"the Machine has its host":     {[]string{"cp1", "cp2", "cp3"}, true, "", map[string]string{"begun": "", "cp2": "cp2", "cp3": "cp3"}, 2},
		"the Machine waits for one":    {[]string{"cp1", "cp2"}, false, "", map[string]string{"begun": "cp1", "cp2": "cp2"}, 1},
		"none is the cluster's but it": {[]string{"cp1"}, true, "", map[string]string{"begun": ""}, 0},
		"one is in quarantine":         {[]string{"cp1", "cp2", "cp3"}, true, "cp3", map[string]string{"begun": "", "cp2": "cp2"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			plane := fake.NewClientBuilder().WithScheme(scheme).Build()
			if _, err := rollout.Apply(t.Context(), plane, all); err != nil {
				t.Fatal(err)
			}
			provider := ""
			if c.claimed {
				provider = "kubexm://default/cp1"
			}
			for _, o := range []client.Object{machine("begun"), infra("begun", provider)} {
				if err := plane.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			hosts := &infrav1.KubexmHostList{}
			if err := plane.List(t.Context(), hosts); err != nil {
				t.Fatal(err)
			}
			for i := range hosts.Items {
				h := &hosts.Items[i]
				if h.Name == "cp1" && c.claimed {
					h.Spec.ClaimRef = infrav1.MachineReference{Name: "begun"}
				}
				if h.Name == c.quarantine {
					h.Spec.Quarantine = infrav1.Quarantine{Reason: "ResetFailed"}
				}
				if err := plane.Update(t.Context(), h); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := rollout.TakeIn(t.Context(), plane, all, c.hosts); err != nil {
					t.Fatal(err)
				}
			}
			s, err := rollout.Read(t.Context(), plane, key)
			if err != nil {
				t.Fatal(err)
			}
			names := map[string]string{}
			for i := range s.InfraMachines {
				m := &s.InfraMachines[i]
				if m.Name == "begun" {
					names[m.Name] = m.Spec.HostName
				} else {
					names[m.Spec.HostName] = m.Spec.HostName
				}
				if (m.Spec.HostName != "") == (m.Spec.HostSelector != nil) {
					t.Errorf("%s names %q and selects %v", m.Name, m.Spec.HostName, m.Spec.HostSelector)
				}
			}
			if diff := cmp.Diff(c.want, names); diff != "" || len(s.Machines) != len(c.want) {
				t.Errorf("%d Machines; hosts that are named (-want +got):\n%s", len(s.Machines), diff)
			}
			for i := range s.Configs {
				if s.Configs[i].Spec.BootstrapMode != spec.BootstrapJoin {
					t.Errorf("%s begins once more", s.Configs[i].Name)
				}
			}
			if len(s.Configs) != c.join || ptr.Deref(s.Cluster.Spec.Paused, false) != (c.join > 0) {
				t.Errorf("%d join, want %d; paused: %v", len(s.Configs), c.join, s.Cluster.Spec.Paused)
			}
		})
	}
}
