// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// adminValidity is how long a kubeconfig that is made for one command is good.
const adminValidity = 24 * time.Hour

// Trust is what a cluster's trust rests on, and where its API server is.
type Trust struct {
	pki.Authorities
	Cluster, Server string
}

// Secret resolves a plan's references: the cluster's key pairs.
func (t *Trust) Secret(ref step.SecretRef) ([]byte, error) {
	pair, found := t.Get(ref.Name)
	switch {
	case found && ref.Key == corev1.TLSCertKey:
		return pair.Cert, nil
	case found && ref.Key == corev1.TLSPrivateKeyKey:
		return pair.Key.Reveal(), nil
	}
	return nil, fmt.Errorf("there is no secret %s in the cluster's state", ref)
}

// Kubeconfig makes a kubeconfig for the cluster's administrator.
func (t *Trust) Kubeconfig(validity time.Duration) (secret.Value, error) {
	client, err := t.Authorities.Cluster.Sign(pki.LeafRequest{
		CommonName: "kubernetes-admin", Organizations: []string{"system:masters"}, Usages: []pki.Usage{pki.Client}, Validity: validity,
	})
	if err != nil {
		return secret.Value{}, err
	}
	return pki.Kubeconfig(pki.KubeconfigRequest{
		Cluster: t.Cluster, User: t.Cluster + "-admin", Server: t.Server, CA: t.Authorities.Cluster.Cert, Client: client,
	})
}

// API is the cluster's, for steps on the controller.
func (t *Trust) API(context.Context) (step.Cluster, error) {
	kubeconfig, err := t.Kubeconfig(adminValidity)
	if err != nil {
		return nil, err
	}
	cluster, err := kube.FromKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	return cluster, nil
}
