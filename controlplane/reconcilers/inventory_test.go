// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestHostsStayUntilOthersServe: a list of hosts that does not have those that serve resets none of them, and the object says why.
func TestHostsStayUntilOthersServe(t *testing.T) {
	s := testScope()
	s.Object.Spec.Cluster.Etcd = spec.Etcd{Type: spec.EtcdKubexm, Hosts: spec.Hosts{Names: []string{"typo"}}}
	r := testReconciler(t)
	for _, name := range []string{"e1", "e2", "e3"} {
		config := desired.InventoryConfig(s.ControlPlane, bootstrapv1.HostReference{Name: name, Role: spec.RoleEtcd})
		if err := r.Client.Create(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		config.Status.KubernetesVersion = "v1.36.3"
		s.Configs = append(s.Configs, *config)
	}
	if err := r.reconcileInventory(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	left, err := configsOf(t.Context(), r.Reader, s.Cluster)
	if err != nil || len(left) != 4 {
		t.Errorf("there are %d KubexmConfigs, not those of the three that serve and of the one that is chosen (%v)", len(left), err)
	}
	s.setScaling(nil)
	got := conditions.Get(s.Object, controlplanev1.ScalingDownCondition)
	if got.Status != metav1.ConditionTrue || !strings.Contains(got.Message, "the host e1 is not wanted any more, and stays: ") {
		t.Errorf("ScalingDown is %s: %s", got.Status, got.Message)
	}
}

// TestCacheBeginsNothing: of etcd's hosts, the first begins a cluster also where the cache does not show its KubexmConfig yet.
func TestCacheBeginsNothing(t *testing.T) {
	s := testScope()
	s.Object.Spec.Cluster.Etcd = spec.Etcd{Type: spec.EtcdKubexm, Hosts: spec.Hosts{Names: []string{"e1", "e2"}}}
	r := testReconciler(t, desired.InventoryConfig(s.ControlPlane, bootstrapv1.HostReference{Name: "e1", Role: spec.RoleEtcd}))
	if err := r.reconcileInventory(t.Context(), s); err != nil { // whose snapshot has no KubexmConfig
		t.Fatal(err)
	}
	all, err := configsOf(t.Context(), r.Reader, s.Cluster)
	if err != nil || len(all) != 2 {
		t.Fatalf("there are %d KubexmConfigs (%v)", len(all), err)
	}
	for want, config := range map[spec.BootstrapMode]bootstrapv1.KubexmConfig{spec.BootstrapInit: all[0], spec.BootstrapJoin: all[1]} {
		if config.Spec.BootstrapMode != want {
			t.Errorf("%s is to %s, not to %s", config.Name, config.Spec.BootstrapMode, want)
		}
	}
}

// TestEtcdBeginsAnew: where the host that was to begin etcd leaves before anything served, the one in its place begins, and no second one
// does, though the cache shows neither.
func TestEtcdBeginsAnew(t *testing.T) {
	s := testScope()
	s.Now = time.Now()
	s.Object.Spec.Cluster.Etcd = spec.Etcd{Type: spec.EtcdKubexm, Hosts: spec.Hosts{Names: []string{"e1", "e2", "e3"}}}
	r := testReconciler(t)
	modes := func(cached bool, wanted ...string) string {
		t.Helper()
		s.Object.Spec.Cluster.Etcd.Hosts.Names = wanted
		var err error
		if s.Configs, err = configsOf(t.Context(), r.Reader, s.Cluster); err != nil {
			t.Fatal(err)
		}
		if !cached {
			s.Configs = nil
		}
		if err := r.reconcileInventory(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		s.Known = s.Members()
		all, err := configsOf(t.Context(), r.Reader, s.Cluster)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, config := range all {
			said = append(said, config.Spec.HostRef.Name+" "+string(config.Spec.BootstrapMode))
		}
		return strings.Join(said, ", ")
	}
	for _, step := range []struct {
		cached bool
		wanted []string
		want   string
	}{
		{true, []string{"e1", "e2", "e3"}, "e1 Init, e2 Join, e3 Join"},
		{true, []string{"e2", "e3", "f1"}, "e2 Join, e3 Join, f1 Init"},
		{false, []string{"a1", "e2", "e3", "f1"}, "a1 Join, e2 Join, e3 Join, f1 Init"},
	} {
		if got := modes(step.cached, step.wanted...); got != step.want {
			t.Errorf("with %v: %s, want %s", step.wanted, got, step.want)
		}
	}
}

// TestOnlyEtcdHostIsMadeAgain: the KubexmConfig of the only host of etcd, deleted before it served, begins again when it is made anew.
func TestOnlyEtcdHostIsMadeAgain(t *testing.T) {
	s := testScope()
	s.Now = time.Now()
	s.Object.Spec.Cluster.Etcd = spec.Etcd{Type: spec.EtcdKubexm, Hosts: spec.Hosts{Names: []string{"e1"}}}
	r := testReconciler(t)
	config := desired.InventoryConfig(s.ControlPlane, bootstrapv1.HostReference{Name: "e1", Role: spec.RoleEtcd})
	config.DeletionTimestamp = &metav1.Time{Time: s.Now}
	s.Configs = []bootstrapv1.KubexmConfig{*config}
	s.Known, s.Configs = s.Members(), nil // and it is gone
	if err := r.reconcileInventory(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if len(s.Configs) != 1 || s.Configs[0].Spec.BootstrapMode != spec.BootstrapInit {
		t.Errorf("there are %d KubexmConfigs, the first of which is to %s", len(s.Configs), s.Configs[0].Spec.BootstrapMode)
	}
}

// TestEtcdHostsAreHeldAgain: a host of etcd's own that stays is held for its member, also where a deletion that a move has left behind had
// released it; one that leaves was released for good.
func TestEtcdHostsAreHeldAgain(t *testing.T) {
	s := testScope()
	r := testReconciler(t)
	for _, name := range []string{"e1", "e2"} {
		config := desired.InventoryConfig(s.ControlPlane, bootstrapv1.HostReference{Name: name, Role: spec.RoleEtcd})
		config.Annotations, config.Finalizers = nil, []string{"test.x/held"}
		if err := r.Client.Create(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Client.Delete(t.Context(), &bootstrapv1.KubexmConfig{ObjectMeta: ofProd("prod-e2")}); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.Configs, err = configsOf(t.Context(), r.Reader, s.Cluster); err != nil {
		t.Fatal(err)
	}
	if err := r.syncMachines(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	all, err := configsOf(t.Context(), r.Reader, s.Cluster)
	if err != nil || len(all) != 2 {
		t.Fatalf("there are %d KubexmConfigs (%v)", len(all), err)
	}
	for i, want := range []bool{true, false} {
		if _, held := all[i].Annotations[controlplanev1.EtcdMemberRemovalHook]; held != want {
			t.Errorf("%s is held: %t", all[i].Name, held)
		}
	}
}

// TestInventoryFollowsTheWatchLabel: the label by which a control plane is watched comes to hosts of the inventory that exist, those that
// leave, too, and to nobody else's.
func TestInventoryFollowsTheWatchLabel(t *testing.T) {
	s := testScope()
	r := testReconciler(t)
	for name, role := range map[string]spec.Role{
		"e1": spec.RoleEtcd, "l1": spec.RoleLoadBalancer, "l2": spec.RoleLoadBalancer, "other": spec.RoleEtcd,
	} {
		config := desired.InventoryConfig(s.ControlPlane, bootstrapv1.HostReference{Name: name, Role: role})
		config.Finalizers = []string{"test.x/held"}
		if name == "other" {
			config.OwnerReferences = nil
		}
		if err := r.Client.Create(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Client.Delete(t.Context(), &bootstrapv1.KubexmConfig{ObjectMeta: ofProd("prod-l2")}); err != nil {
		t.Fatal(err)
	}
	s.Object.Labels = map[string]string{clusterv1.WatchLabel: "blue"}
	var err error
	if s.Configs, err = configsOf(t.Context(), r.Reader, s.Cluster); err != nil {
		t.Fatal(err)
	}
	if err := r.syncMachines(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	all, err := configsOf(t.Context(), r.Reader, s.Cluster)
	if err != nil || len(all) != 4 {
		t.Fatalf("there are %d KubexmConfigs (%v)", len(all), err)
	}
	for i, want := range []string{"blue", "blue", "blue", ""} {
		if got := all[i].Labels[clusterv1.WatchLabel]; got != want {
			t.Errorf("%s is labelled %q, want %q", all[i].Name, got, want)
		}
		if _, held := all[i].Annotations[controlplanev1.EtcdMemberRemovalHook]; held != (all[i].Spec.HostRef.Role == spec.RoleEtcd) {
			t.Errorf("%s is held: %t", all[i].Name, held)
		}
	}
}

// TestServedIsKept: that an API server has served is known without the object's own status.
func TestServedIsKept(t *testing.T) {
	shared := &bootstrapv1.KubexmClusterConfig{ObjectMeta: ofProd("prod")}
	for name, tc := range map[string]struct {
		change func(*scope)
		want   bool
	}{
		"nothing says so": {func(*scope) {}, false},
		"the Cluster does": {func(s *scope) {
			yes := true
			s.Cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{ControlPlaneInitialized: &yes}
		}, true},
		"the KubexmClusterConfig does": {func(*scope) { shared.Spec.APIServerVersion = "v1.36.3" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := testScope()
			shared.Spec.APIServerVersion = ""
			tc.change(s)
			if err := testReconciler(t, shared.DeepCopy()).fetchClusterConfig(t.Context(), s); err != nil || s.Served != tc.want {
				t.Errorf("served: %t, want %t (%v)", s.Served, tc.want, err)
			}
		})
	}
}

// TestLeavingTrustsNoCache: no further host of etcd's own leaves while one does that the cache shows as one that stays.
func TestLeavingTrustsNoCache(t *testing.T) {
	s := testScope()
	s.Object.Spec.Cluster.Etcd = spec.Etcd{Type: spec.EtcdKubexm, Hosts: spec.Hosts{Names: []string{"e3"}}}
	r := testReconciler(t)
	said := bootstrapv1.EtcdStatus{ObservedTime: metav1.NowMicro()}
	for i, name := range []string{"e1", "e2", "e3"} {
		said.Members = append(said.Members, bootstrapv1.EtcdMemberStatus{ID: name, Name: name, PeerURL: fmt.Sprintf("https://10.0.0.%d:2380", i)})
	}
	for i, name := range []string{"e1", "e2", "e3"} {
		config := desired.InventoryConfig(s.ControlPlane, bootstrapv1.HostReference{Name: name, Role: spec.RoleEtcd})
		config.Finalizers = []string{"test.x/held"}
		config.Status.KubernetesVersion, config.Status.Etcd = "v1.36.3", said
		config.Status.Host = bootstrapv1.HostStatus{Name: name, Address: fmt.Sprintf("10.0.0.%d", i)}
		if err := r.Client.Create(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		s.Configs = append(s.Configs, *config)
	}
	if err := r.Client.Delete(t.Context(), s.Configs[1].DeepCopy()); err != nil { // after the snapshot was taken
		t.Fatal(err)
	}
	if err := r.reconcileInventory(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	all, err := configsOf(t.Context(), r.Reader, s.Cluster)
	if err != nil || len(all) != 3 || !all[0].DeletionTimestamp.IsZero() || all[1].DeletionTimestamp.IsZero() {
		t.Errorf("of %d, e1 leaves since %v, e2 since %v (%v)", len(all), all[0].DeletionTimestamp, all[1].DeletionTimestamp, err)
	}
}
