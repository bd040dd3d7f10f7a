// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package desired_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/webhooks"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func controlPlane() *snapshot.ControlPlane {
	return &snapshot.ControlPlane{
		Cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}},
		Object: &controlplanev1.KubexmControlPlane{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod", UID: "1"},
			Spec: controlplanev1.KubexmControlPlaneSpec{
				Version: "v1.36.3",
				Node:    bootstrapv1.KubexmConfigSpec{Node: spec.Node{NodeLabels: map[string]string{"pool": "masters"}}},
				MachineTemplate: controlplanev1.MachineTemplate{
					ObjectMeta: clusterv1.ObjectMeta{
						Labels:      map[string]string{"team": "a", clusterv1.ClusterNameLabel: "not the user's to say"},
						Annotations: map[string]string{"note": "b"},
					},
					Spec: controlplanev1.MachineTemplateSpec{
						ReadinessGates: []clusterv1.MachineReadinessGate{{ConditionType: "Mine"}},
						Deletion:       controlplanev1.MachineDeletion{NodeDrainTimeoutSeconds: ptr.To[int32](60)},
					},
				},
			},
		},
	}
}

func TestMachine(t *testing.T) {
	m := desired.Machine(controlPlane(), "prod-x", clusterv1.ContractVersionedObjectReference{Kind: "KubexmMachine", Name: "prod-x"})
	labels := map[string]string{
		"team": "a", clusterv1.ClusterNameLabel: "prod", clusterv1.MachineControlPlaneLabel: "", clusterv1.MachineControlPlaneNameLabel: "prod",
	}
	if diff := cmp.Diff(labels, m.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if !metav1.IsControlledBy(m, controlPlane().Object) {
		t.Error("the control plane must own its Machines")
	}
	if m.Spec.Version != "v1.36.3" || m.Spec.Bootstrap.ConfigRef.Name != "prod-x" || *m.Spec.Deletion.NodeDrainTimeoutSeconds != 60 {
		t.Errorf("spec %+v", m.Spec)
	}
	if last := m.Spec.ReadinessGates[len(m.Spec.ReadinessGates)-1].ConditionType; last != "Mine" || len(m.Spec.ReadinessGates) != 6 {
		t.Errorf("gates %v, want ours and the user's", m.Spec.ReadinessGates)
	}
}

// TestGatesOnce: a gate that the user gives, too, is there once, as Machines must have it, and all that a user may give fit on a Machine.
func TestGatesOnce(t *testing.T) {
	for name, etcd := range map[string]spec.Etcd{"stacked": {}, "apart": {Type: spec.EtcdKubexm, Hosts: spec.Hosts{Names: []string{"e1"}}}} {
		t.Run(name, func(t *testing.T) {
			c := controlPlane()
			c.Object.Spec.Cluster.Etcd = etcd
			most := 27
			if !c.Stacked() {
				most = 29
			}
			gates := &c.Object.Spec.MachineTemplate.Spec.ReadinessGates
			*gates = []clusterv1.MachineReadinessGate{
				{ConditionType: snapshot.APIServerPodHealthy, Polarity: clusterv1.PositivePolarityCondition},
			}
			for i := range most - 1 {
				*gates = append(*gates, clusterv1.MachineReadinessGate{ConditionType: fmt.Sprintf("Mine%d", i)})
			}
			m := desired.Machine(c, "prod-x", clusterv1.ContractVersionedObjectReference{})
			seen := map[string]bool{}
			for _, gate := range m.Spec.ReadinessGates {
				if seen[gate.ConditionType] {
					t.Errorf("%s is there twice", gate.ConditionType)
				}
				seen[gate.ConditionType] = true
			}
			refused := func() bool {
				return slices.ContainsFunc(webhooks.ValidateControlPlane(c.Object), func(err *field.Error) bool {
					return err.Field == "spec.machineTemplate.spec.readinessGates"
				})
			}
			if len(m.Spec.ReadinessGates) != 31 || refused() {
				t.Errorf("there are %d of %d; refused: %t", len(m.Spec.ReadinessGates), most, refused())
			}
			if *gates = append(*gates, clusterv1.MachineReadinessGate{ConditionType: "TooMany"}); !refused() {
				t.Errorf("%d are not refused", most+1)
			}
		})
	}
}

// TestPropagate changes what may be changed in place, and nothing else.
func TestPropagate(t *testing.T) {
	c := controlPlane()
	m := desired.Machine(c, "prod-x", clusterv1.ContractVersionedObjectReference{})
	m.Labels["others"] = "stay"
	before := m.DeepCopy()
	desired.Propagate(c, m)
	if diff := cmp.Diff(before, m); diff != "" {
		t.Errorf("it must change nothing when nothing changed (-want +got):\n%s", diff)
	}
	c.Object.Spec.Version = "v1.37.0"
	c.Object.Spec.MachineTemplate.Spec.Deletion.NodeDrainTimeoutSeconds = nil
	desired.Propagate(c, m)
	if m.Spec.Version != "v1.36.3" || m.Spec.Deletion.NodeDrainTimeoutSeconds != nil || m.Labels["others"] != "stay" {
		t.Errorf("version %s, deletion %+v, labels %v", m.Spec.Version, m.Spec.Deletion, m.Labels)
	}
	// What Cluster API's webhook sets where nothing is said must not look like a change, or each reconcile would be one.
	if got := m.Spec.Deletion.NodeDeletionTimeoutSeconds; got == nil || *got != 10 {
		t.Errorf("nodeDeletionTimeoutSeconds %v, Cluster API makes 10 of nothing", got)
	}
	c.Object.Spec.MachineTemplate.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](0)
	desired.Propagate(c, m)
	if *m.Spec.Deletion.NodeDeletionTimeoutSeconds != 0 {
		t.Error("0, for ever, is something that is said")
	}
}

// TestHookComesBack: a Machine that stays is held for its etcd member, also where a deletion that a move has left behind had released it;
// one that is being deleted was released for good.
func TestHookComesBack(t *testing.T) {
	c := controlPlane()
	m := desired.Machine(c, "prod-x", clusterv1.ContractVersionedObjectReference{})
	held := func() bool { _, is := m.Annotations[controlplanev1.EtcdMemberRemovalHook]; return is }
	if !held() {
		t.Error("a new one is not held")
	}
	delete(m.Annotations, controlplanev1.EtcdMemberRemovalHook)
	leaving := m.DeepCopy()
	if desired.Propagate(c, m); !held() {
		t.Error("one that stays is not held")
	}
	m, leaving.DeletionTimestamp = leaving, ptr.To(metav1.Now())
	if desired.Propagate(c, m); held() {
		t.Error("one that leaves is held again")
	}
}

// TestMetadataGoes: what leaves the template's metadata goes from objects that have it from there, and nothing of others does.
func TestMetadataGoes(t *testing.T) {
	c := controlPlane()
	template := &c.Object.Spec.MachineTemplate.ObjectMeta
	template.Labels = map[string]string{"team": "a", "tier": "b"}
	template.Annotations = map[string]string{"note": "c"}
	infra := &unstructured.Unstructured{Object: map[string]any{}}
	infra.SetLabels(map[string]string{"others": "stay"})
	desired.PropagateMetadata(c, infra)
	if infra.GetLabels()["team"] != "a" || infra.GetAnnotations()["note"] != "c" || infra.GetLabels()["others"] != "stay" {
		t.Fatalf("labels %v, annotations %v", infra.GetLabels(), infra.GetAnnotations())
	}
	infra.SetLabels(map[string]string{"others": "stay", "team": "a", "tier": "b", "note": "not ours"})
	template.Labels, template.Annotations = map[string]string{"tier": "c"}, nil
	desired.PropagateMetadata(c, infra)
	if _, stays := infra.GetLabels()["team"]; stays || infra.GetLabels()["tier"] != "c" || infra.GetLabels()["note"] != "not ours" {
		t.Errorf("labels %v", infra.GetLabels())
	}
	if _, stays := infra.GetAnnotations()["note"]; stays {
		t.Errorf("annotations %v", infra.GetAnnotations())
	}
	template.Labels = nil
	desired.PropagateMetadata(c, infra)
	before := infra.DeepCopy()
	desired.PropagateMetadata(c, infra)
	if diff := cmp.Diff(before, infra); diff != "" || infra.GetLabels()["others"] != "stay" || len(infra.GetAnnotations()) > 0 {
		t.Errorf("annotations %v; twice is another: %s", infra.GetAnnotations(), diff)
	}
}

// TestCertificatesEnd tells Cluster API, which shows it on the Machine, when the first certificate of a component ends.
func TestCertificatesEnd(t *testing.T) {
	c := controlPlane()
	m := desired.Machine(c, "prod-x", clusterv1.ContractVersionedObjectReference{})
	if _, told := m.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]; told {
		t.Error("nothing is known of certificates yet")
	}
	first := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	c.Configs = []bootstrapv1.KubexmConfig{{
		ObjectMeta: metav1.ObjectMeta{Name: "prod-x"},
		Status: bootstrapv1.KubexmConfigStatus{Certificates: []bootstrapv1.CertificateStatus{
			{Path: "/a", Type: bootstrapv1.ComponentCertificate, NotAfter: metav1.NewTime(first.Add(time.Hour))},
			{Path: "/b", Type: bootstrapv1.ComponentCertificate, NotAfter: metav1.NewTime(first)},
			{Path: "/c", Type: bootstrapv1.KubeletCertificate, NotAfter: metav1.NewTime(first.Add(-time.Hour))},
		}},
	}}
	desired.Propagate(c, m)
	if got := m.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]; got != "2027-01-02T03:04:05Z" {
		t.Errorf("told %q", got)
	}
}

// TestFormatIsForNewMachines: the infrastructure has read the bootstrap data of those that exist, in the format that they were made with.
func TestFormatIsForNewMachines(t *testing.T) {
	c := controlPlane()
	old := desired.Config(c, "prod-x", spec.BootstrapInit)
	c.Object.Spec.Node.Format = bootstrapv1.IgnitionFormat
	desired.PropagateConfig(c, old)
	if made := desired.Config(c, "prod-y", spec.BootstrapJoin); old.Spec.Format != "" || made.Spec.Format != bootstrapv1.IgnitionFormat {
		t.Errorf("the old has %q, a new one %q", old.Spec.Format, made.Spec.Format)
	}
}

func TestConfig(t *testing.T) {
	config := desired.Config(controlPlane(), "prod-x", spec.BootstrapInit)
	if config.Spec.NodeLabels["pool"] != "masters" || config.Labels[clusterv1.ClusterNameLabel] != "prod" {
		t.Errorf("config %+v", config)
	}
	if metav1.GetControllerOf(config) != nil {
		t.Error("Cluster API makes the Machine its controller, and could not if there were one")
	}
}

// TestInventoryIsWatched: who watches only objects with a label watches the hosts without Machines, too.
func TestInventoryIsWatched(t *testing.T) {
	for _, value := range []string{"", "blue"} {
		for _, role := range []spec.Role{spec.RoleEtcd, spec.RoleLoadBalancer} {
			c := controlPlane()
			if value != "" {
				c.Object.Labels = map[string]string{clusterv1.WatchLabel: value}
			}
			labels := desired.InventoryConfig(c, bootstrapv1.HostReference{Name: "e1", Role: role}).Labels
			got, has := labels[clusterv1.WatchLabel]
			if got != value || has != (value != "") || labels[clusterv1.ClusterNameLabel] != "prod" {
				t.Errorf("the control plane has %q; the labels of its %s are %v", value, role, labels)
			}
		}
	}
}

// TestEtcdBeginsOnce: of etcd's hosts the first begins, and none does once one may have begun, whatever became of KubexmConfigs and of
// statuses. One that was to begin and is gone has begun nothing.
func TestEtcdBeginsOnce(t *testing.T) {
	const begins, joins = spec.BootstrapInit, spec.BootstrapJoin
	type change = func(*snapshot.ControlPlane)
	known := func(name string, phase bootstrapv1.MemberPhase) change {
		return func(c *snapshot.ControlPlane) {
			c.Known = append(c.Known, bootstrapv1.ClusterMember{Name: name, Role: spec.RoleEtcd, ConfigName: "prod-" + name, Phase: phase})
		}
	}
	there := func(name string, mode spec.BootstrapMode, by ...func(*bootstrapv1.KubexmConfig)) change {
		return func(c *snapshot.ControlPlane) {
			config := desired.InventoryConfig(c, bootstrapv1.HostReference{Name: name, Role: spec.RoleEtcd})
			config.Spec.BootstrapMode = mode
			for _, change := range by {
				change(config)
			}
			c.Configs = append(c.Configs, *config)
		}
	}
	leaves := func(c *bootstrapv1.KubexmConfig) { c.DeletionTimestamp = ptr.To(metav1.Now()) }
	versioned := func(c *bootstrapv1.KubexmConfig) { c.Status.KubernetesVersion = "v1.36.3" }
	lists := func(c *bootstrapv1.KubexmConfig) { c.Status.Etcd.Members = make([]bootstrapv1.EtcdMemberStatus, 1) }
	foreign := func(c *bootstrapv1.KubexmConfig) { c.OwnerReferences = nil }
	machine := func(mode spec.BootstrapMode) change {
		return func(c *snapshot.ControlPlane) {
			c.Machines = append(c.Machines, *desired.Machine(c, "prod-x", clusterv1.ContractVersionedObjectReference{}))
			c.Configs = append(c.Configs, *desired.Config(c, "prod-x", mode))
		}
	}
	e2 := []change{there("e2", joins), known("e2", bootstrapv1.MemberJoining)} // it has waited for who begins
	for name, tc := range map[string]struct {
		of   []change
		want spec.BootstrapMode
	}{
		"none is known":  {nil, begins},
		"none has begun": {[]change{known("e1", bootstrapv1.MemberJoining)}, begins},
		"one has begun":  {[]change{known("e1", bootstrapv1.MemberServing)}, joins},
		"a load balancer has": {[]change{func(c *snapshot.ControlPlane) {
			c.Known = []bootstrapv1.ClusterMember{{Name: "l", Role: spec.RoleLoadBalancer, Phase: bootstrapv1.MemberServing}}
		}}, begins},
		"one is to begin":                      {[]change{there("e1", begins)}, joins},
		"one that was to begin is gone":        {[]change{known("e1", bootstrapv1.MemberDraining)}, begins},
		"it leaves, and another waits for it":  {append(e2, there("e1", begins, leaves), known("e1", bootstrapv1.MemberRemoved)), begins},
		"another waits for one that is gone":   {e2, begins},
		"another has a version":                {[]change{there("e2", joins, versioned), known("e2", bootstrapv1.MemberJoining)}, joins},
		"another lists members":                {[]change{there("e2", joins, lists), known("e2", bootstrapv1.MemberJoining)}, joins},
		"another has served":                   {[]change{there("e2", joins), known("e2", bootstrapv1.MemberServing)}, joins},
		"of another nothing is known":          {[]change{there("e2", joins)}, joins},
		"another is not of this control plane": {[]change{there("e2", begins, foreign)}, begins},
		"the control plane has begun": {append(e2, func(c *snapshot.ControlPlane) {
			c.Object.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		}), joins},
		"it has, though its status is lost": {append(e2, func(c *snapshot.ControlPlane) { c.Served = true }), joins},
		"its API server answers": {append(e2, func(c *snapshot.ControlPlane) {
			c.Workload = &snapshot.Workload{Initialized: true}
		}), joins},
		"its first Machine is there": {append(e2, machine(begins)), begins},
		"a Machine has joined":       {append(e2, machine(joins)), joins},
	} {
		t.Run(name, func(t *testing.T) {
			c := controlPlane()
			for _, change := range tc.of {
				change(c)
			}
			e1 := bootstrapv1.HostReference{Name: "e1", Role: spec.RoleEtcd}
			if got := desired.InventoryConfig(c, e1).Spec.BootstrapMode; got != tc.want {
				t.Errorf("it is to %s, not to %s", got, tc.want)
			}
		})
	}
}

func TestLongNamesFitLabels(t *testing.T) {
	c := controlPlane()
	c.Object.Name = strings.Repeat("a", 100)
	if problems := validation.IsValidLabelValue(desired.Labels(c)[clusterv1.MachineControlPlaneNameLabel]); len(problems) > 0 {
		t.Error(problems)
	}
}
