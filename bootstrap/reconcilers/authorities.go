// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	corev1 "k8s.io/api/core/v1"
	capisecret "sigs.k8s.io/cluster-api/util/secret"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// untrusted is why no host may be made with the key pair in a Secret of the Cluster: it is not the one that the KubexmClusterConfig
// names, it cannot be read, or what is to be signed by it cannot be. It is nil if the KubexmClusterConfig names none yet, but for the
// Cluster's own authority, by which hosts know whose they are. What to do is also said by the control plane's condition
// CertificatesAvailable.
func untrusted(s *scope, purpose capisecret.Purpose, pair *corev1.Secret) *decision.Blocker {
	waits := func(format string, args ...any) *decision.Blocker {
		return decision.Block(bootstrapv1.WaitingForClusterReason, format, args...)
	}
	want := s.clusterConfig.Spec.FingerprintOf(string(purpose))
	if want == "" && purpose != capisecret.ClusterCA {
		return nil
	}
	has, err := fingerprint(purpose, pair)
	switch {
	case err != nil:
		return waits("the Secret %s has no key pair that can be read (%v): restore it from a backup, or from a control plane host "+
			"of the cluster (kubexm certs recover, kubexm certs secrets)", pair.Name, err)
	case want != "" && has != want:
		return waits("the Secret %s holds another key pair (%s) than the cluster was made with (%s): restore it", pair.Name, has, want)
	case purpose == capisecret.ClusterCA && s.role().IsNode() && len(pair.Data[capisecret.TLSKeyDataName]) == 0:
		return waits("the Secret %s has a certificate and no %s: the kubelet's certificate is signed by it. Put the key of the cluster's "+
			"authority in it", pair.Name, capisecret.TLSKeyDataName)
	}
	return nil
}

// fingerprint is that of the key pair, or of the encryption key, in a Secret.
func fingerprint(p capisecret.Purpose, s *corev1.Secret) (string, error) {
	if p == pki.EncryptionName {
		return pki.EncryptionFingerprint(secret.New(s.Data[pki.EncryptionKeyName]))
	}
	return pki.Fingerprint(s.Data[capisecret.TLSCrtDataName])
}
