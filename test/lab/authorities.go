// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Secret resolves an engine's references to the key pairs of a cluster.
func Secret(of *pki.Authorities, ref step.SecretRef) ([]byte, error) {
	pair, found := of.Get(ref.Name)
	switch {
	case found && ref.Key == corev1.TLSCertKey:
		return pair.Cert, nil
	case found && ref.Key == corev1.TLSPrivateKeyKey:
		return pair.Key.Reveal(), nil
	}
	return nil, fmt.Errorf("there is no secret %s", ref)
}

// Administrator is a kubeconfig of somebody who may do everything, by the API server at an address.
func Administrator(of *pki.Authorities, cluster, address string) (secret.Value, error) {
	client, err := of.Cluster.Sign(pki.LeafRequest{
		CommonName: "kubernetes-admin", Organizations: []string{"system:masters"}, Usages: []pki.Usage{pki.Client},
	})
	if err != nil {
		return secret.Value{}, err
	}
	return pki.Kubeconfig(pki.KubeconfigRequest{
		Cluster: cluster, User: "admin", Server: "https://" + address + ":6443", CA: of.Cluster.Cert, Client: client,
	})
}
