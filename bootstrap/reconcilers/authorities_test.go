// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// TestUntrusted: a Secret that exists is not enough: it must have the pair that the control plane has recorded.
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
		record string
		cert   []byte
		want   string
	}{
		"the pair that is recorded": {prints.String(), pairs.Cluster.Cert, ""},
		"nothing is recorded":       {"", other.Cert, ""},
		"another pair":              {prints.String(), other.Cert, "the Secret prod-ca holds another key pair"},
		"an empty Secret":           {prints.String(), nil, "the Secret prod-ca has no key pair that can be read"},
		"a record that is none":     {"x", pairs.Cluster.Cert, controlplanev1.AuthoritiesAnnotation},
	} {
		t.Run(name, func(t *testing.T) {
			s := testScope()
			s.controlPlane.Annotations = map[string]string{controlplanev1.AuthoritiesAnnotation: tc.record}
			r := &Config{Reader: fake.NewClientBuilder().WithObjects(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-ca"}, Data: map[string][]byte{"tls.crt": tc.cert},
			}).Build()}
			waiting, err := r.waitsFor(t.Context(), s)
			if err != nil || !strings.HasPrefix(strings.TrimPrefix(waiting, "the annotation "), tc.want) || (waiting == "") != (tc.want == "") {
				t.Errorf("got %q, %v; want %q", waiting, err, tc.want)
			}
			if strings.Contains(waiting, "PRIVATE") {
				t.Error("a key is shown")
			}
		})
	}
}
