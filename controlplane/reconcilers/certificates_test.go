// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

func testScope() *scope {
	return &scope{ControlPlane: &snapshot.ControlPlane{
		Object: &controlplanev1.KubexmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod", UID: "1"}},
		Cluster: &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"},
			Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "10.1.0.1", Port: 6443}},
		},
	}}
}

func testReconciler(t *testing.T, objects ...client.Object) *KubexmControlPlaneReconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &KubexmControlPlaneReconciler{Client: c, Reader: c}
}

func (r *KubexmControlPlaneReconciler) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	if err := r.Reader.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: name}, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCertificates(t *testing.T) {
	r, s := testReconciler(t, testScope().Object), testScope()
	if err := r.reconcileAuthorities(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"prod-ca", "prod-etcd", "prod-proxy", "prod-sa"} {
		made := r.secret(t, name)
		if made.Type != clusterv1.ClusterSecretType || made.Labels[clusterv1.ClusterNameLabel] != "prod" ||
			!metav1.IsControlledBy(made, s.Object) || len(made.Data["tls.crt"]) == 0 || len(made.Data["tls.key"]) == 0 {
			t.Errorf("Secret %s: type %s, labels %v, keys %d", name, made.Type, made.Labels, len(made.Data))
		}
	}
	before := r.secret(t, "prod-ca").Data["tls.crt"]
	if err := r.reconcileAuthorities(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, r.secret(t, "prod-ca").Data["tls.crt"]) {
		t.Error("an authority that exists must stay")
	}
}

func bring(name string, cert, key []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name},
		Data:       map[string][]byte{"tls.crt": cert, "tls.key": key},
	}
}

func TestCertificatesThatTheUserBrings(t *testing.T) {
	ca, err := pki.NewCA(pki.CARequest{CommonName: "mine", Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.NewCA(pki.CARequest{CommonName: "other", Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	old, err := pki.NewCA(pki.CARequest{CommonName: "old", Validity: time.Nanosecond, Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		cert, key []byte
		refused   string
	}{
		"a good one counts":  {ca.Cert, ca.Key.Reveal(), ""},
		"another's key":      {ca.Cert, other.Key.Reveal(), "does not belong"},
		"no key":             {ca.Cert, nil, "the Secret prod-ca has no tls.crt or no tls.key"},
		"one that has ended": {old.Cert, old.Key.Reveal(), "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := testReconciler(t, testScope().Object, bring("prod-ca", tc.cert, tc.key)), testScope()
			err := r.reconcileAuthorities(t.Context(), s)
			if tc.refused == "" {
				if err != nil || !bytes.Equal(r.secret(t, "prod-ca").Data["tls.crt"], tc.cert) {
					t.Errorf("error %v, or the authority was replaced", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.refused) {
				t.Fatalf("got %v, want %q", err, tc.refused)
			}
			s.describe()
			if got := conditions.Get(s.Object, controlplanev1.CertificatesAvailableCondition); got.Status != metav1.ConditionFalse {
				t.Errorf("condition %+v", got)
			}
			if list := (&corev1.SecretList{}); r.Reader.List(t.Context(), list) != nil || len(list.Items) != 1 {
				t.Errorf("%d Secrets: nothing may be made beside an authority that cannot be used", len(list.Items))
			}
		})
	}
}

func TestKubeconfig(t *testing.T) {
	r, s := testReconciler(t, testScope().Object), testScope()
	if err := r.reconcileAuthorities(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := r.reconcileKubeconfig(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	made := r.secret(t, "prod-kubeconfig")
	if !bytes.Contains(made.Data["value"], []byte("https://10.1.0.1:6443")) || made.Type != clusterv1.ClusterSecretType {
		t.Errorf("type %s, kubeconfig without the endpoint", made.Type)
	}
	before := made.Data["value"]
	if err := r.reconcileKubeconfig(t.Context(), s); err != nil || !bytes.Equal(before, r.secret(t, "prod-kubeconfig").Data["value"]) {
		t.Errorf("error %v, or a fresh kubeconfig was replaced", err)
	}

	// One whose client certificate ends soon is renewed.
	ca, err := r.pair(t.Context(), s, capisecret.ClusterCA)
	if err != nil {
		t.Fatal(err)
	}
	soon, err := ca.Sign(pki.LeafRequest{CommonName: "kubernetes-admin", Usages: []pki.Usage{pki.Client}, Validity: renewBefore - time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ending, err := pki.Kubeconfig(pki.KubeconfigRequest{Cluster: "prod", User: "prod-admin", Server: "https://10.1.0.1:6443", CA: ca.Cert, Client: soon})
	if err != nil {
		t.Fatal(err)
	}
	made = r.secret(t, "prod-kubeconfig")
	made.Data["value"] = ending.Reveal()
	if err := r.Client.Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if err := r.reconcileKubeconfig(t.Context(), s); err != nil || bytes.Equal(ending.Reveal(), r.secret(t, "prod-kubeconfig").Data["value"]) {
		t.Errorf("error %v, or the kubeconfig was not renewed", err)
	}

	// The user's own is left alone.
	made = r.secret(t, "prod-kubeconfig")
	made.OwnerReferences, made.Data["value"] = nil, ending.Reveal()
	if err := r.Client.Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if err := r.reconcileKubeconfig(t.Context(), s); err != nil || !bytes.Equal(ending.Reveal(), r.secret(t, "prod-kubeconfig").Data["value"]) {
		t.Errorf("error %v, or the user's kubeconfig was replaced", err)
	}
	if !s.kubeconfig.Equal(secret.New(ending.Reveal())) {
		t.Error("the user's kubeconfig must be used")
	}
}

// TestKubeconfigOfAnAuthorityThatEnds: a certificate cannot outlive its authority, so one that lasts as long is not made again and again.
func TestKubeconfigOfAnAuthorityThatEnds(t *testing.T) {
	ca, err := pki.NewCA(pki.CARequest{CommonName: "mine", Key: pki.ECDSAP256, Validity: 100 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.NewCA(pki.CARequest{CommonName: "mine", Key: pki.ECDSAP256, Validity: 100 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r, s := testReconciler(t, testScope().Object, bring("prod-ca", ca.Cert, ca.Key.Reveal())), testScope()
	reconciled := func() []byte {
		t.Helper()
		if err := r.reconcileKubeconfig(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return r.secret(t, "prod-kubeconfig").Data["value"]
	}
	first := reconciled()
	if !bytes.Equal(first, reconciled()) {
		t.Error("a kubeconfig that lasts as long as its authority was replaced")
	}
	for what, of := range map[string]struct {
		by       pki.KeyPair
		validity time.Duration
		server   string
	}{
		"one that ends before its authority": {ca, 99 * 24 * time.Hour, "https://10.1.0.1:6443"},
		"one that has ended":                 {ca, time.Nanosecond, "https://10.1.0.1:6443"},
		"one of another authority":           {other, 365 * 24 * time.Hour, "https://10.1.0.1:6443"},
		"one of another server":              {ca, 365 * 24 * time.Hour, "https://10.1.0.2:6443"},
	} {
		leaf, err := of.by.Sign(pki.LeafRequest{CommonName: "kubernetes-admin", Usages: []pki.Usage{pki.Client}, Validity: of.validity})
		if err != nil {
			t.Fatal(err)
		}
		was, err := pki.Kubeconfig(pki.KubeconfigRequest{Cluster: "prod", User: "prod-admin", Server: of.server, CA: of.by.Cert, Client: leaf})
		if err != nil {
			t.Fatal(err)
		}
		held := r.secret(t, "prod-kubeconfig")
		held.Data["value"] = was.Reveal()
		if err := r.Client.Update(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(was.Reveal(), reconciled()) {
			t.Errorf("%s was kept", what)
		}
	}
}
