// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestUntrustedEncryptionKey: a control plane host of a cluster that encrypts waits for the key that the KubexmClusterConfig names.
func TestUntrustedEncryptionKey(t *testing.T) {
	pairs, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	pairs.CompleteEncryption()
	prints, err := pairs.Fingerprints()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		key  []byte
		want string
	}{
		"the key that is recorded": {pairs.Encryption.Key.Reveal(), ""},
		"another key":              {pki.NewEncryptionKey().Key.Reveal(), "the Secret prod-encryption holds another key pair"},
		"no key":                   {nil, "the Secret prod-encryption has no key pair that can be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testScope()
			for name, fingerprint := range prints {
				s.clusterConfig.Spec.Authorities = append(s.clusterConfig.Spec.Authorities,
					bootstrapv1.AuthorityFingerprint{Name: name, Fingerprint: fingerprint})
			}
			key := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-encryption"}, Data: map[string][]byte{"key": tc.key},
			}
			r := &KubexmConfigReconciler{Reader: fake.NewClientBuilder().WithObjects(key).Build()}
			waiting := untrusted(s, pki.EncryptionName, key)
			if !strings.HasPrefix(waiting.String(), tc.want) || (waiting == nil) != (tc.want == "") {
				t.Errorf("got %q, want %q", waiting, tc.want)
			}
			got, err := r.secrets(t.Context(), client.ObjectKeyFromObject(s.cluster))(step.SecretRef{Name: "encryption", Key: "key"})
			if err == nil && string(got) != string(tc.key) || (err == nil) != (tc.key != nil) {
				t.Errorf("a plan gets %d bytes, %v", len(got), err)
			}
		})
	}
}

// TestUntrusted: a Secret that exists is not enough: it must have the pair that the KubexmClusterConfig names.
func TestUntrusted(t *testing.T) {
	pairs, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.NewCA(pki.CARequest{CommonName: "kubernetes", Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	prints, err := pairs.Fingerprints()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		record pki.Fingerprints
		cert   []byte
		key    string
		want   string
	}{
		"the pair that is recorded": {prints, pairs.Cluster.Cert, "key", ""},
		"nothing is recorded":       {nil, other.Cert, "key", ""},
		"another pair":              {prints, other.Cert, "key", "the Secret prod-ca holds another key pair"},
		"no key":                    {prints, pairs.Cluster.Cert, "", "the Secret prod-ca has a certificate and no tls.key"},
		"an empty Secret":           {prints, nil, "", "the Secret prod-ca has no key pair that can be read"},
		"one that cannot be read, and nothing is recorded": {
			nil, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "key", "the Secret prod-ca has no key pair that can be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := testScope()
			for name, fingerprint := range tc.record {
				s.clusterConfig.Spec.Authorities = append(s.clusterConfig.Spec.Authorities,
					bootstrapv1.AuthorityFingerprint{Name: name, Fingerprint: fingerprint})
			}
			reads := 0
			r := &KubexmConfigReconciler{Reader: fake.NewClientBuilder().WithObjects(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-ca"},
				Data:       map[string][]byte{"tls.crt": tc.cert, "tls.key": []byte(tc.key)},
			}).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(
					ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption,
				) error {
					reads++
					return c.Get(ctx, key, into, options...)
				},
			}).Build()}
			waiting, err := r.waitsFor(t.Context(), s)
			if reads != 1 {
				t.Errorf("the Secret is read %d times", reads)
			}
			if recorded := s.config.Annotations[bootstrapv1.AuthorityAnnotation]; (recorded != "") != (tc.want == "") {
				t.Errorf("the authority %q is recorded", recorded)
			}
			if err != nil || !strings.HasPrefix(waiting.String(), tc.want) || (waiting == nil) != (tc.want == "") {
				t.Errorf("got %q, %v; want %q", waiting, err, tc.want)
			}
			if waiting != nil && waiting.Reason != bootstrapv1.WaitingForClusterReason {
				t.Errorf("the reason is %s", waiting.Reason)
			}
			if strings.Contains(waiting.String(), "PRIVATE") {
				t.Error("a key is shown")
			}
		})
	}
}
