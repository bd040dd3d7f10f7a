// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package infra_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// pool is an API with objects of the pool.
func pool(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := infrav1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// poolHost is the KubexmHost w1, and who has it.
func poolHost(claim infrav1.MachineReference) *infrav1.KubexmHost {
	h := &infrav1.KubexmHost{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "w1"}}
	h.Spec.Address, h.Spec.ClaimRef = "10.1.0.2", claim
	return h
}

// wants wants one of three answers: the host w1, or that it is not named yet, or never again.
func wants(t *testing.T, want string, got *infra.Host, err error) {
	t.Helper()
	switch pending, gone := new(infra.HostPending), new(infra.HostGone); {
	case err == nil && want == "w1" && got.Name == "w1":
	case errors.As(err, &pending) && strings.HasPrefix(want, "pending: ") && strings.Contains(err.Error(), want[9:]):
	case errors.As(err, &gone) && strings.HasPrefix(want, "gone: ") && strings.Contains(err.Error(), want[6:]):
	default:
		t.Errorf("got %v, %v (%T), want %s", got, err, err, want)
	}
}

// TestHostOfKubexmMachine: a KubexmMachine whose status was lost names its host still. While its Machine is deleted, nobody gives it one.
func TestHostOfKubexmMachine(t *testing.T) {
	ours := infrav1.MachineReference{Name: "m", ClusterName: "prod", UID: "before a move"}
	for name, tc := range map[string]struct {
		providerID, status string
		claim              infrav1.MachineReference
		leaves             bool
		want               string
	}{
		"its status says it":           {providerID: "kubexm://fleet/w1", status: "w1", claim: ours, want: "w1"},
		"its status was lost":          {providerID: "kubexm://fleet/w1", claim: ours, want: "w1"},
		"and it leaves":                {providerID: "kubexm://fleet/w1", claim: ours, leaves: true, want: "w1"},
		"it has none yet":              {want: "pending: the KubexmMachine m has no host yet"},
		"it never had one, and leaves": {leaves: true, want: "gone: the KubexmMachine m never had a host"},
		"another's":                    {providerID: "other://fleet/w1", want: "pending: has no host yet"},
		"of another namespace":         {providerID: "kubexm://other/w1", want: "pending: has no host yet"},
		"its claim was lost": {
			providerID: "kubexm://fleet/w1", leaves: true, want: "pending: is not claimed by the KubexmMachine m",
		},
		"another has it now": {
			providerID: "kubexm://fleet/w1", claim: infrav1.MachineReference{Name: "n"}, leaves: true,
			want: "gone: is claimed by the KubexmMachine n",
		},
		"it is gone": {providerID: "kubexm://fleet/w2", leaves: true, want: "gone: the KubexmHost w2 does not exist any more"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &infrav1.KubexmMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "m", UID: "1"}}
			m.Spec.ProviderID, m.Status.HostRef.Name = tc.providerID, tc.status
			machine, c := machineOf("KubexmMachine"), pool(t, m, poolHost(tc.claim))
			if tc.leaves {
				now := metav1.Now()
				machine.DeletionTimestamp = &now
			}
			got, err := infra.Of(machine, c, c).Host(t.Context(), infra.Subject{Machine: machine, Config: &bootstrapv1.KubexmConfig{}})
			wants(t, tc.want, got, err)
		})
	}
}

// TestHostOfLeavingConfig: a host that another has claimed is waited for by one that comes, and by none that leaves.
func TestHostOfLeavingConfig(t *testing.T) {
	other := infrav1.MachineReference{Kind: infrav1.ClaimedByConfig, Name: "other", ClusterName: "prod"}
	for name, tc := range map[string]struct {
		claim  infrav1.MachineReference
		leaves bool
		want   string
	}{
		"another has it":        {other, false, "pending: is claimed by the KubexmConfig other"},
		"and it leaves":         {other, true, "gone: is claimed by the KubexmConfig other"},
		"nobody, and it leaves": {infrav1.MachineReference{}, true, "gone: the KubexmHost w1 is not claimed"},
	} {
		t.Run(name, func(t *testing.T) {
			c := pool(t, poolHost(tc.claim))
			config := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "c"}}
			config.Spec.HostRef = bootstrapv1.HostReference{Name: "w1", Role: spec.RoleEtcd}
			if tc.leaves {
				now := metav1.Now()
				config.DeletionTimestamp = &now
			}
			got, err := infra.Inventory(c, c).Host(t.Context(), infra.Subject{Config: config})
			wants(t, tc.want, got, err)
		})
	}
}
