// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestOtherWorkersAreTold says what stands in the way of workers of other bootstrap providers, and nothing where there are none.
func TestOtherWorkersAreTold(t *testing.T) {
	const approved, canJoin = controlplanev1.ServingCertificatesApprovedCondition, controlplanev1.WorkersCanJoinCondition
	for name, tc := range map[string]struct {
		config  string // that of the one worker, none if ""
		kind    spec.KubernetesType
		serving *snapshot.Serving
		// want are conditions as type=status reason.
		want []string
		says string
	}{
		"no worker":         {serving: nil},
		"a worker of ours":  {config: "KubexmConfig"},
		"all is well":       {config: "KubeadmConfig", serving: &snapshot.Serving{Approved: []string{"w"}}},
		"not looked at yet": {config: "KubeadmConfig", want: []string{approved + "=False Before", canJoin + "=False Before"}},
		"a request is not approved": {
			config: "KubeadmConfig", serving: &snapshot.Serving{Refused: []string{"csr-1 of x: no", "csr-2 of y: no"}},
			want: []string{approved + "=False RequestsNotApproved"}, says: "\n* csr-1 of x: no\n* csr-2 of y: no",
		},
		"requests cannot be read": {
			config: "KubeadmConfig", serving: &snapshot.Serving{Err: errors.New("forbidden")},
			want: []string{approved + "=Unknown RequestsUnknown"}, says: "forbidden",
		},
		"the version is not told": {
			config: "KubeadmConfig", serving: &snapshot.Serving{NotTold: errors.New("not readable")},
			want: []string{canJoin + "=Unknown VersionUnknown"}, says: "not readable",
		},
		"units": {
			config: "KubeadmConfig", kind: spec.KubernetesKubexm, serving: &snapshot.Serving{},
			want: []string{canJoin + "=False KubeadmConfigNotSupported"}, says: "the Machines w have a KubeadmConfig, but spec.cluster.kubernetes.type is Binary",
		},
		"units, and a worker by something else": {config: "OtherConfig", kind: spec.KubernetesKubexm, serving: &snapshot.Serving{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := testScope()
			s.Machines = nil
			if tc.config != "" {
				w := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
				w.Spec.Bootstrap.ConfigRef.Kind = tc.config
				s.Machines = append(s.Machines, w)
			}
			if s.Object.Spec.Cluster.Kubernetes.Type = tc.kind; tc.kind == "" {
				s.Object.Spec.Cluster.Kubernetes.Type = spec.KubernetesKubeadm
			}
			for _, kind := range []string{approved, canJoin} {
				s.set(kind, metav1.ConditionFalse, "Before", "")
			}
			s.serving = tc.serving
			s.setOtherWorkers()
			var got []string
			var says string
			for _, kind := range []string{approved, canJoin} {
				if c := conditions.Get(s.Object, kind); c != nil {
					got = append(got, kind+"="+string(c.Status)+" "+c.Reason)
					says += c.Message
				}
			}
			if strings.Join(got, ", ") != strings.Join(tc.want, ", ") || !strings.Contains(says, tc.says) {
				t.Errorf("%q %q, want %q %q", got, says, tc.want, tc.says)
			}
		})
	}
}

// TestNobodyLooks for requests before the cluster answers, or where no worker is another provider's.
func TestNobodyLooks(t *testing.T) {
	for name, tc := range map[string]struct {
		config   string
		workload *snapshot.Workload
		want     bool
	}{
		"another's worker": {"KubeadmConfig", &snapshot.Workload{Initialized: true}, true},
		"ours":             {"KubexmConfig", &snapshot.Workload{Initialized: true}, false},
		"not looked at":    {"KubeadmConfig", nil, false},
		"not initialized":  {"KubeadmConfig", &snapshot.Workload{}, false},
		"no answer":        {"KubeadmConfig", &snapshot.Workload{Initialized: true, Err: errors.New("refused")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := testScope()
			w := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
			w.Spec.Bootstrap.ConfigRef.Kind = tc.config
			s.Machines, s.ControlPlane.Workload = []clusterv1.Machine{w}, tc.workload
			looked := false
			r := &KubexmControlPlaneReconciler{Serving: func(context.Context, secret.Value, *snapshot.ControlPlane) *snapshot.Serving {
				looked = true
				return &snapshot.Serving{}
			}}
			if err := r.reconcileOtherWorkers(t.Context(), s); err != nil || looked != tc.want {
				t.Errorf("error %v, looked %v, want %v", err, looked, tc.want)
			}
		})
	}
}
