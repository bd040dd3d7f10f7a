// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/state"
)

var born = metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))

func object() *controlplanev1.KubexmControlPlane {
	return &controlplanev1.KubexmControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "prod", UID: "1"}}
}

// machine is a control plane Machine of object.
func machine(name string, change ...func(*clusterv1.Machine)) clusterv1.Machine {
	m := clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: born, Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(object(), controlplanev1.GroupVersion.WithKind("KubexmControlPlane"))},
		},
		Spec: clusterv1.MachineSpec{Version: "v1.36.3"},
	}
	for _, c := range change {
		c(&m)
	}
	return m
}

func worker(m *clusterv1.Machine)   { m.Labels, m.OwnerReferences = nil, nil }
func stranger(m *clusterv1.Machine) { m.OwnerReferences[0].UID = "2" }

func TestNeedsMachine(t *testing.T) {
	deleted := func(c *controlplanev1.KubexmControlPlane) { c.DeletionTimestamp = &born }
	initialized := func(c *controlplanev1.KubexmControlPlane) {
		c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	}
	for name, tc := range map[string]struct {
		machines []clusterv1.Machine
		change   func(*controlplanev1.KubexmControlPlane)
		want     bool
	}{
		"none exists":                          {want: true},
		"one exists":                           {machines: []clusterv1.Machine{machine("a")}},
		"workers do not count":                 {machines: []clusterv1.Machine{machine("a", worker)}, want: true},
		"Machines of others do not count":      {machines: []clusterv1.Machine{machine("a", stranger)}, want: true},
		"not while it is deleted":              {change: deleted},
		"not in the place of a cluster's data": {change: initialized},
	} {
		t.Run(name, func(t *testing.T) {
			c := &state.ControlPlane{Object: object(), Machines: tc.machines}
			if tc.change != nil {
				tc.change(c.Object)
			}
			if got := c.NeedsMachine(); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestNextFailureDomain(t *testing.T) {
	in := func(domain string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Spec.FailureDomain = domain }
	}
	offer := func(name string, controlPlane bool) clusterv1.FailureDomain {
		return clusterv1.FailureDomain{Name: name, ControlPlane: ptr.To(controlPlane)}
	}
	for name, tc := range map[string]struct {
		offered  []clusterv1.FailureDomain
		machines []clusterv1.Machine
		want     string
	}{
		"none is offered":           {},
		"the first by name":         {offered: []clusterv1.FailureDomain{offer("b", true), offer("a", true)}, want: "a"},
		"not one for workers alone": {offered: []clusterv1.FailureDomain{offer("b", true), offer("a", false)}, want: "b"},
		"the one with the fewest":   {offered: []clusterv1.FailureDomain{offer("a", true), offer("b", true)}, machines: []clusterv1.Machine{machine("x", in("a"))}, want: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &state.ControlPlane{Object: object(), Machines: tc.machines, Cluster: &clusterv1.Cluster{Status: clusterv1.ClusterStatus{FailureDomains: tc.offered}}}
			if got := c.NextFailureDomain(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestVersions(t *testing.T) {
	of := func(v string) func(*clusterv1.Machine) { return func(m *clusterv1.Machine) { m.Spec.Version = v } }
	kubelet := func(v string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: v} }
	}
	got := state.Versions([]clusterv1.Machine{
		machine("a", of("v1.10.0")), machine("b", of("v1.9.0")), machine("c", of("v1.10.0")), machine("d", of("v1.10.0"), kubelet("v1.9.0")),
	})
	want := []clusterv1.StatusVersion{{Version: "v1.9.0", Replicas: 2}, {Version: "v1.10.0", Replicas: 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the oldest first (-want +got):\n%s", diff)
	}
}
