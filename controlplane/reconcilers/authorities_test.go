// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

var authoritySecrets = []string{"prod-ca", "prod-etcd", "prod-proxy", "prod-sa"}

const encryptionSecret = "prod-encryption"

// ofProd is metadata of an object of the cluster.
func ofProd(name string, labels ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "fleet", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"}}
	for _, l := range labels {
		m.Labels[l] = ""
	}
	return m
}

// secrets are the key pairs that there are, by their Secrets' names.
func (r *KubexmControlPlaneReconciler) secrets(t *testing.T) map[string]*corev1.Secret {
	t.Helper()
	list := &corev1.SecretList{}
	if err := r.Reader.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	all := map[string]*corev1.Secret{}
	for i := range list.Items {
		if slices.Contains(append(authoritySecrets, encryptionSecret), list.Items[i].Name) {
			all[list.Items[i].Name] = &list.Items[i]
		}
	}
	return all
}

// refused checks that the reconcile stops, that the condition says why, and that no Secret was made or changed.
func refused(t *testing.T, r *KubexmControlPlaneReconciler, s *scope, reason string, words ...string) {
	t.Helper()
	before := r.secrets(t)
	err := r.reconcileControlPlane(t.Context(), s)
	if !errors.As(err, new(*untrusted)) {
		t.Fatalf("got %v, want the key pairs to stop the reconcile", err)
	}
	s.describe()
	got := conditions.Get(s.Object, controlplanev1.CertificatesAvailableCondition)
	if got.Status != metav1.ConditionFalse || got.Reason != reason {
		t.Errorf("condition %+v, want %s", got, reason)
	}
	for _, word := range append(words, "kubexm certs recover prod", "backup") {
		if !strings.Contains(got.Message, word) {
			t.Errorf("%q must have %q", got.Message, word)
		}
	}
	after := r.secrets(t)
	if len(after) != len(before) {
		t.Errorf("there were %d key pairs, and are %d", len(before), len(after))
	}
	for name, s := range before {
		if a := after[name]; a == nil || !bytes.Equal(a.Data["tls.crt"], s.Data["tls.crt"]) || !bytes.Equal(a.Data["tls.key"], s.Data["tls.key"]) ||
			!bytes.Equal(a.Data["key"], s.Data["key"]) {
			t.Errorf("the Secret %s was changed", name)
		}
	}
}

// TestMissingAuthorities: whatever is left of a cluster that has begun, statuses or none, a pair that is gone is not made anew.
func TestMissingAuthorities(t *testing.T) {
	for name, left := range map[string]struct {
		objects []client.Object
		change  func(*scope)
	}{
		"it was initialized": {change: func(s *scope) { s.Object.Status.Initialization.ControlPlaneInitialized = ptr.To(true) }},
		"the Cluster says so": {change: func(s *scope) {
			s.Cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		}},
		"a control plane Machine without a status": {objects: []client.Object{
			&clusterv1.Machine{ObjectMeta: ofProd("prod-1", clusterv1.MachineControlPlaneLabel)},
		}},
		"a worker with a Node": {objects: []client.Object{&clusterv1.Machine{
			ObjectMeta: ofProd("prod-w1"), Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: "w1"}},
		}}},
		"a KubexmConfig of the control plane without a status": {objects: []client.Object{&bootstrapv1.KubexmConfig{
			ObjectMeta: ofProd("prod-1"), Spec: bootstrapv1.KubexmConfigSpec{BootstrapMode: spec.BootstrapInit},
		}}},
		"a KubexmConfig of the inventory without a status": {objects: []client.Object{&bootstrapv1.KubexmConfig{
			ObjectMeta: ofProd("prod-lb1"),
			Spec:       bootstrapv1.KubexmConfigSpec{HostRef: bootstrapv1.HostReference{Name: "lb1", Role: spec.RoleLoadBalancer}},
		}}},
		"a worker whose host was changed": {objects: []client.Object{&bootstrapv1.KubexmConfig{
			ObjectMeta: ofProd("prod-w1"), Status: bootstrapv1.KubexmConfigStatus{Operations: []bootstrapv1.OperationStatus{{
				Type: bootstrapv1.ConvergeOperation, StartTime: metav1.NewTime(time.Unix(1, 0)),
			}}},
		}}},
		"the kubeconfig": {objects: []client.Object{&corev1.Secret{ObjectMeta: controlled(ofProd("prod-kubeconfig"))}}},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := testReconciler(t, append(left.objects, testScope().Object)...), testScope()
			if left.change != nil {
				left.change(s)
			}
			refused(t, r, s, controlplanev1.AuthorityMissingReason, authoritySecrets...)
		})
	}
}

// TestWaitingWorkersAreNoCluster: Machines and KubexmConfigs of workers may come before the control plane's first reconcile.
func TestWaitingWorkersAreNoCluster(t *testing.T) {
	r, s := testReconciler(t, testScope().Object,
		&clusterv1.Machine{ObjectMeta: ofProd("prod-w1")}, &bootstrapv1.KubexmConfig{ObjectMeta: ofProd("prod-w1")}), testScope()
	if err := r.reconcileAuthorities(t.Context(), s); err != nil || len(r.secrets(t)) != 4 {
		t.Errorf("error %v, %d key pairs; want 4 to be made", err, len(r.secrets(t)))
	}
}

// TestAuthoritiesAreRecorded: the record alone, which a move and a backup of the object keep, tells what is missing, partial or another's,
// though no status and no other object is left.
func TestAuthoritiesAreRecorded(t *testing.T) {
	other, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	own, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range authoritySecrets {
		for what, tc := range map[string]struct {
			change func(t *testing.T, r *KubexmControlPlaneReconciler, s *corev1.Secret)
			reason string
		}{
			"missing": {func(t *testing.T, r *KubexmControlPlaneReconciler, s *corev1.Secret) {
				t.Helper()
				if err := r.Client.Delete(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}, controlplanev1.AuthorityMissingReason},
			"without its key": {func(t *testing.T, r *KubexmControlPlaneReconciler, s *corev1.Secret) {
				t.Helper()
				delete(s.Data, "tls.key")
				if err := r.Client.Update(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}, controlplanev1.AuthorityIncompleteReason},
			"another": {func(t *testing.T, r *KubexmControlPlaneReconciler, s *corev1.Secret) {
				t.Helper()
				pair, _ := other.Get(strings.TrimPrefix(s.Name, "prod-"))
				s.Data["tls.crt"], s.Data["tls.key"] = pair.Cert, pair.Key.Reveal()
				if err := r.Client.Update(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}, controlplanev1.AuthorityDiffersReason},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				r, s := testReconciler(t, testScope().Object), testScope()
				r.bringAll(t, &own)
				if err := r.reconcileAuthorities(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				kept := r.secret(t, name).DeepCopy()
				tc.change(t, r, r.secret(t, name))

				moved := testScope() // no status, another UID
				stored := &controlplanev1.KubexmControlPlane{}
				if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(s.Object), stored); err != nil {
					t.Fatal(err)
				}
				moved.Object.Annotations = stored.Annotations
				if _, err := pki.ParseFingerprints(stored.Annotations[controlplanev1.AuthoritiesAnnotation]); err != nil {
					t.Fatal(err)
				}
				refused(t, r, moved, tc.reason, name)

				// What was there is restored, and all goes on.
				if err := r.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: ofProd(name)}); client.IgnoreNotFound(err) != nil {
					t.Fatal(err)
				}
				kept.ResourceVersion = ""
				if err := r.Client.Create(t.Context(), kept); err != nil {
					t.Fatal(err)
				}
				if err := r.reconcileAuthorities(t.Context(), moved); err != nil {
					t.Errorf("it is restored: %v", err)
				}
			})
		}
	}
}

// bringAll makes the Secrets of all pairs.
func (r *KubexmControlPlaneReconciler) bringAll(t *testing.T, pairs *pki.Authorities) {
	t.Helper()
	for _, name := range pki.Names() {
		pair, _ := pairs.Get(name)
		if err := r.Client.Create(t.Context(), bring("prod-"+name, pair.Cert, pair.Key.Reveal())); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAuthoritiesWithoutRecord: an object that was made again from a manifest has no record. The pairs that are there count.
func TestAuthoritiesWithoutRecord(t *testing.T) {
	r, s := testReconciler(t, testScope().Object, &clusterv1.Machine{ObjectMeta: ofProd("prod-1", clusterv1.MachineControlPlaneLabel)}), testScope()
	pairs, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	r.bringAll(t, &pairs)
	if err := r.reconcileAuthorities(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	want, err := pairs.Fingerprints()
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Object.Annotations[controlplanev1.AuthoritiesAnnotation]; got != want.String() {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

// controlled is the metadata of what the KubexmControlPlane has made.
func controlled(meta metav1.ObjectMeta) metav1.ObjectMeta {
	meta.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: controlplanev1.GroupVersion.String(), Kind: "KubexmControlPlane", Name: "prod", UID: "another", Controller: ptr.To(true),
	}}
	return meta
}
