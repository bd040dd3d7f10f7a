// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
)

// Who may write objects of ours need not be allowed to read Secrets, and has us read them. So Secrets say themselves what they are for.

// keptFromHosts are the types of Secrets that are never a host's, whatever their labels say.
var keptFromHosts = []corev1.SecretType{
	clusterv1.ClusterSecretType, corev1.SecretTypeSSHAuth, corev1.SecretTypeServiceAccountToken, bootstrapapi.SecretTypeBootstrapToken,
}

// mayBeContent says why a Secret must not come to hosts, nil if it may.
func mayBeContent(s *corev1.Secret) error {
	if slices.Contains(keptFromHosts, s.Type) {
		return fmt.Errorf("the Secret %s is of type %s, which never comes to hosts: put what they need into a Secret of its own", s.Name, s.Type)
	}
	return labelled(s, bootstrapv1.ForHostsContent, "its content does not come to hosts")
}

// mayLogIn says why nobody is to log in with what a Secret has, nil if they may. A private key stays with us, and who makes a Secret
// of that type says what it is for; a password is sent to whatever host is named.
func mayLogIn(s *corev1.Secret) error {
	switch s.Type {
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[infra.KeyPassword])+len(s.Data[infra.KeySudoPassword]) == 0 {
			return nil
		}
		return labelled(s, bootstrapv1.ForHostsCredentials, "its password is not given to hosts")
	case corev1.SecretTypeOpaque, corev1.SecretTypeBasicAuth, "":
		return labelled(s, bootstrapv1.ForHostsCredentials, "nobody logs in to hosts with it")
	}
	return fmt.Errorf("the Secret %s is of type %s, with which nobody logs in to hosts: make one of type %s", s.Name, s.Type, corev1.SecretTypeSSHAuth)
}

func labelled(s *corev1.Secret, use, otherwise string) error {
	if s.Labels[bootstrapv1.ForHostsLabel] == use {
		return nil
	}
	return fmt.Errorf("the Secret %[1]s has no label %[2]s=%[3]s, so %[4]s; anyone who may change it agrees by: kubectl label secret -n %[5]s %[1]s %[2]s=%[3]s",
		s.Name, bootstrapv1.ForHostsLabel, use, otherwise, s.Namespace)
}
