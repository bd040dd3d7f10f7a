// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/rollout"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/inplace"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const old, updated = "v1.35.4", "v1.36.3"

// at is ready() with a control plane host, an etcd host and a worker that all have a version.
func at(version string) *rollout.Snapshot {
	s := ready()
	s.ControlPlane.Spec.Version = version
	s.ControlPlane.Status.Versions = []clusterv1.StatusVersion{{Version: version, Replicas: 1}}
	etcd := s.Configs[0]
	etcd.Status.Host.Name = "etcd1"
	etcd.Spec.HostRef = bootstrapv1.HostReference{Name: "etcd1", Role: spec.RoleEtcd}
	s.Configs = append(s.Configs, etcd)
	for i := range s.Configs {
		s.Configs[i].Name, s.Configs[i].Status.KubernetesVersion = s.Configs[i].Status.Host.Name, version
	}
	for i, labels := range []map[string]string{
		{clusterv1.MachineControlPlaneLabel: ""}, {clusterv1.MachineDeploymentNameLabel: "workers"},
	} {
		s.Machines[i].Labels = labels
		s.Machines[i].Spec = clusterv1.MachineSpec{Version: version, Bootstrap: clusterv1.Bootstrap{
			ConfigRef: clusterv1.ContractVersionedObjectReference{Name: s.Configs[i].Name},
		}}
	}
	s.Deployments[0].Spec.Template.Spec.Version = version
	return s
}

func TestUpgradeWaits(t *testing.T) {
	for _, c := range []struct {
		name                  string
		from                  string
		change                func(s *rollout.Snapshot)
		controlPlane, workers []rollout.Wait
	}{
		{"all have it", updated, func(*rollout.Snapshot) {}, nil, nil},
		{"none has", old, func(*rollout.Snapshot) {},
			[]rollout.Wait{
				{On: "etcd1", Reason: "Upgrading", Message: "has v1.35.4"}, {On: "node1", Reason: "Upgrading", Message: "has v1.35.4"},
				{On: "control plane", Reason: "Upgrading", Message: "1 of its Machines have v1.35.4"},
			},
			[]rollout.Wait{
				{On: "node2", Reason: "Upgrading", Message: "has v1.35.4"},
				{On: "workers", Reason: "Upgrading", Message: "its Machines are made with v1.35.4"},
			}},
		{"a host failed", updated, func(s *rollout.Snapshot) {
			s.Configs[1].Status.Conditions = []metav1.Condition{
				condition(bootstrapv1.HostReadyCondition, metav1.ConditionFalse, "NotReady", "in more words"),
				condition(bootstrapv1.HostConvergedCondition, metav1.ConditionFalse, "StepFailed", "kubelet exited"),
			}
			s.Deployments[0].Status.Conditions = []metav1.Condition{
				condition(inplace.UpgradingCondition, metav1.ConditionTrue, inplace.HostFailedReason, "node2 failed"),
			}
		}, nil, []rollout.Wait{
			{On: "workers", Reason: "HostFailed", Message: "node2 failed"}, {On: "node2", Reason: "StepFailed", Message: "kubelet exited"},
		}},
		{"it is not possible", updated, func(s *rollout.Snapshot) {
			s.Deployments[0].Annotations = map[string]string{inplace.VersionAnnotation: "v1.20.0"}
			s.Deployments[0].Status.Conditions = []metav1.Condition{
				condition(inplace.UpgradingCondition, metav1.ConditionFalse, inplace.InvalidReason, "a downgrade"),
			}
		}, nil, []rollout.Wait{
			{On: "workers", Reason: "Invalid", Message: "a downgrade"},
			{On: "workers", Reason: "Upgrading", Message: "its Machines are made with v1.36.3"},
		}},
		{"the control plane rolls", updated, func(s *rollout.Snapshot) {
			s.ControlPlane.Status.Conditions = append(s.ControlPlane.Status.Conditions,
				condition(controlplanev1.RollingOutCondition, metav1.ConditionTrue, "RollingOut", "waiting for a host"))
			s.Machines[0].Spec.Version = old
		}, []rollout.Wait{
			{On: "control plane", Reason: "RollingOut", Message: "waiting for a host"},
			{On: "node1", Reason: "Upgrading", Message: "its Machine is to have v1.35.4"},
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := at(c.from)
			c.change(s)
			if diff := cmp.Diff(c.controlPlane, s.ControlPlaneWaits(updated)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.workers, s.WorkerWaits("workers", updated)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if waits := at(updated).WorkerWaits("others", updated); len(waits) != 1 || waits[0].Reason != "NotFound" {
		t.Errorf("of a MachineDeployment that there is not: %v", waits)
	}
}

func TestVersions(t *testing.T) {
	s := at(old)
	if diff := cmp.Diff([]string{old}, s.Versions()); diff != "" {
		t.Error(diff)
	}
	s.Machines[1].Spec.Version = updated
	if diff := cmp.Diff([]string{old, updated}, s.Versions()); diff != "" {
		t.Error(diff)
	}
	if got := (&rollout.Snapshot{}).Versions(); len(got) > 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// TestBegin: a MachineDeployment is asked once, and what it has come to meanwhile stays.
func TestBegin(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, has   string
		ask         rollout.Workers
		version     string
		annotations map[string]string
	}{
		{"in place", old, rollout.Workers{Unavailable: 2}, old, map[string]string{inplace.VersionAnnotation: updated}},
		{"a canary", old, rollout.Workers{Unavailable: 2, Canary: "node2"}, old,
			map[string]string{inplace.VersionAnnotation: updated, inplace.CanaryAnnotation: "node2"}},
		{"replaced", old, rollout.Workers{Unavailable: 2, Replace: true}, updated, nil},
		{"has it", updated, rollout.Workers{Unavailable: 2}, updated, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "workers"}}
			md.Spec.Template.Spec.Version = c.has
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(md).Build()
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(md), md); err != nil {
				t.Fatal(err)
			}
			stale := md.DeepCopy()
			c.ask.Deployment, c.ask.Version = "workers", updated
			if err := (&rollout.Snapshot{Deployments: []clusterv1.MachineDeployment{*md}}).Begin(t.Context(), api, c.ask); err != nil {
				t.Fatal(err)
			}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(md), md); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.annotations, md.Annotations); diff != "" || md.Spec.Template.Spec.Version != c.version {
				t.Errorf("%s %s", md.Spec.Template.Spec.Version, diff)
			}
			if got := md.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable; got == nil || *got != intstr.FromInt32(2) {
				t.Errorf("maxUnavailable is %v", ptr.Deref(got, intstr.IntOrString{}))
			}
			if err := (&rollout.Snapshot{Deployments: []clusterv1.MachineDeployment{*stale}}).Begin(t.Context(), api, c.ask); err == nil {
				t.Error("what somebody else has changed must be read again first")
			}
		})
	}
}
