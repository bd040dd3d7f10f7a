// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// encryptedScope is a cluster that is declared to encrypt.
func encryptedScope() *scope {
	s := clearScope()
	s.Object.Spec.Cluster.Kubernetes.EncryptionAtRest.Provider = spec.EncryptionSecretbox
	return s
}

// clearScope is one that is declared not to, with keys that are soon made.
func clearScope() *scope {
	s := testScope()
	s.Object.Spec.Cluster.Certificates.CAAlgorithm = spec.KeyECDSAP256
	return s
}

// again is what is left of s after a move: no status.
func again(t *testing.T, r *KubexmControlPlaneReconciler, s *scope) *scope {
	t.Helper()
	moved := encryptedScope()
	stored := &controlplanev1.KubexmControlPlane{}
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(s.Object), stored); err != nil {
		t.Fatal(err)
	}
	moved.Object.Annotations = stored.Annotations
	return moved
}

// TestEncryptionKeyIsMade: with the key pairs, once, and owned and recorded as they are; and not for a cluster that does not encrypt.
func TestEncryptionKeyIsMade(t *testing.T) {
	r, s := testReconciler(t, encryptedScope().Object), encryptedScope()
	if err := r.reconcileAuthorities(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	made := r.secret(t, encryptionSecret)
	if made.Type != clusterv1.ClusterSecretType || made.Labels[clusterv1.ClusterNameLabel] != "prod" ||
		!metav1.IsControlledBy(made, s.Object) || len(made.Data) != 1 {
		t.Errorf("type %s, labels %v, owners %v, %d keys", made.Type, made.Labels, made.OwnerReferences, len(made.Data))
	}
	recorded, err := pki.ParseFingerprints(s.Object.Annotations[controlplanev1.AuthoritiesAnnotation])
	if err != nil || recorded[pki.EncryptionName] == "" || len(recorded) != 5 {
		t.Errorf("recorded %v (%v)", recorded, err)
	}
	if err := r.reconcileAuthorities(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if string(r.secret(t, encryptionSecret).Data["key"]) != string(made.Data["key"]) {
		t.Error("a key that exists must stay")
	}

	r, s = testReconciler(t, clearScope().Object), clearScope()
	if err := r.reconcileAuthorities(t.Context(), s); err != nil || len(r.secrets(t)) != 4 {
		t.Errorf("error %v, %d Secrets; want 4", err, len(r.secrets(t)))
	}
}

// TestEncryptionKeyIsRecorded: the record tells that the key is missing, empty or another one, and nothing is made.
func TestEncryptionKeyIsRecorded(t *testing.T) {
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
		"empty": {func(t *testing.T, r *KubexmControlPlaneReconciler, s *corev1.Secret) {
			t.Helper()
			s.Data = nil
			if err := r.Client.Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}, controlplanev1.AuthorityIncompleteReason},
		"another": {func(t *testing.T, r *KubexmControlPlaneReconciler, s *corev1.Secret) {
			t.Helper()
			s.Data["key"] = pki.NewEncryptionKey().Key.Reveal()
			if err := r.Client.Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}, controlplanev1.AuthorityDiffersReason},
	} {
		t.Run(what, func(t *testing.T) {
			r, s := testReconciler(t, encryptedScope().Object), encryptedScope()
			if err := r.reconcileAuthorities(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			kept := r.secret(t, encryptionSecret).DeepCopy()
			tc.change(t, r, r.secret(t, encryptionSecret))
			moved := again(t, r, s)
			refused(t, r, moved, tc.reason, encryptionSecret)
			if err := r.reconcileAuthorities(t.Context(), moved); err == nil || strings.Contains(err.Error(), string(kept.Data["key"])) {
				t.Errorf("got %v", err)
			}

			// What was there is restored, and all goes on.
			if err := r.Client.Delete(t.Context(),
				&corev1.Secret{ObjectMeta: ofProd(encryptionSecret)}); client.IgnoreNotFound(err) != nil {
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

// TestMissingEncryptionKey: of a cluster that has begun no key is made, though no record is left and all pairs are there.
func TestMissingEncryptionKey(t *testing.T) {
	pairs, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	r, s := testReconciler(t, encryptedScope().Object), encryptedScope()
	r.bringAll(t, &pairs)
	s.Object.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	refused(t, r, s, controlplanev1.AuthorityMissingReason, encryptionSecret)
}

// TestEncryptionOfAClusterThatExists: if admission was not asked, no host is asked to encrypt, or to stop, once others have written.
func TestEncryptionOfAClusterThatExists(t *testing.T) {
	for name, tc := range map[string]struct{ was, is *scope }{
		"turned on": {clearScope(), encryptedScope()}, "turned off": {encryptedScope(), clearScope()},
	} {
		t.Run(name, func(t *testing.T) {
			r := testReconciler(t, tc.was.Object.DeepCopy())
			if err := r.reconcileAuthorities(t.Context(), tc.was); err != nil {
				t.Fatal(err)
			}
			// Anyone who turns it on may have brought a key.
			if err := r.Client.Create(t.Context(), &corev1.Secret{
				ObjectMeta: ofProd(encryptionSecret), Data: map[string][]byte{"key": pki.NewEncryptionKey().Key.Reveal()},
			}); client.IgnoreAlreadyExists(err) != nil {
				t.Fatal(err)
			}
			tc.is.Object.Annotations = tc.was.Object.Annotations
			err := r.reconcileControlPlane(t.Context(), tc.is)
			if !errors.As(err, new(*untrusted)) {
				t.Fatalf("got %v, want it to stop the reconcile", err)
			}
			tc.is.describe()
			got := conditions.Get(tc.is.Object, controlplanev1.CertificatesAvailableCondition)
			if got.Status != metav1.ConditionFalse || got.Reason != controlplanev1.AuthorityDiffersReason ||
				!strings.Contains(got.Message, "spec.cluster.kubernetes.encryptionAtRest.provider: ") {
				t.Errorf("condition %+v", got)
			}
		})
	}
}

// TestEncryptionKeyThatTheUserBrings counts if it can be one, and goes along when the cluster is moved.
func TestEncryptionKeyThatTheUserBrings(t *testing.T) {
	key := pki.NewEncryptionKey().Key.Reveal()
	for name, tc := range map[string]struct {
		key  []byte
		want string
	}{
		"a key": {key, ""}, "with the line's end": {append(key, '\n'), "not 32 bytes in base64"}, "a password": {[]byte("opensesame"), "not 32 bytes in base64"},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := testReconciler(t, encryptedScope().Object,
				&corev1.Secret{ObjectMeta: ofProd(encryptionSecret), Data: map[string][]byte{"key": tc.key}}), encryptedScope()
			err := r.reconcileAuthorities(t.Context(), s)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) ||
					strings.Contains(err.Error(), string(tc.key)) || len(r.secrets(t)) != 1 {
					t.Errorf("got %v, want %q, and no pair to be made", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			brought := r.secret(t, encryptionSecret)
			if _, moves := brought.Labels[clusterctlv1.ClusterctlMoveLabel]; !moves || string(brought.Data["key"]) != string(tc.key) {
				t.Errorf("it has the labels %v, or is another one", brought.Labels)
			}
		})
	}
}
