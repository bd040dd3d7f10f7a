// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// untrusted is why no host may be made with the key pairs in the Secrets: one of them is not the pair that the KubexmClusterConfig
// names. It is "" if all are, or it names none yet. What to do is said by the control plane's condition CertificatesAvailable.
func (r *Config) untrusted(ctx context.Context, s *scope, purposes ...capisecret.Purpose) (string, error) {
	for _, p := range purposes {
		want := s.clusterConfig.Spec.FingerprintOf(string(p))
		if want == "" {
			continue
		}
		found := &corev1.Secret{}
		key := client.ObjectKey{Namespace: s.cluster.Namespace, Name: capisecret.Name(s.cluster.Name, p)}
		if err := r.Reader.Get(ctx, key, found); err != nil {
			return "", fmt.Errorf("get the Secret %s: %w", key.Name, err)
		}
		if has, err := fingerprint(p, found); err != nil {
			return fmt.Sprintf("the Secret %s has no key pair that can be read (%v): restore it", key.Name, err), nil
		} else if has != want {
			return fmt.Sprintf("the Secret %s holds another key pair (%s) than the cluster was made with (%s): restore it", key.Name, has, want), nil
		}
	}
	return "", nil
}

// fingerprint is that of the key pair, or of the encryption key, in a Secret.
func fingerprint(p capisecret.Purpose, s *corev1.Secret) (string, error) {
	if p == pki.EncryptionName {
		return pki.EncryptionFingerprint(secret.New(s.Data[pki.EncryptionKeyName]))
	}
	return pki.Fingerprint(s.Data[capisecret.TLSCrtDataName])
}
