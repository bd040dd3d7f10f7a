// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// adminValidity is how long a kubeconfig that is made for one command is good.
const adminValidity = 24 * time.Hour

// Trust is what a cluster's trust rests on, and where its API server is.
type Trust struct {
	pki.Authorities
	Cluster, Server string
	// Secrets are further ones that plans refer to.
	Secrets Secrets
}

// Secrets are values by their Secret's name and their key in it.
type Secrets map[string]map[string]secret.Value

// EtcdSecrets reads what an external etcd is reached with: nothing where it is reached without TLS, or where there is none.
// name is that of the Secret that the files become.
func EtcdSecrets(name string, files config.EtcdFiles) (Secrets, error) {
	if files == (config.EtcdFiles{}) {
		return nil, nil
	}
	values := map[string]secret.Value{}
	for _, f := range []struct{ path, key string }{
		{files.CA, "ca.crt"}, {files.Cert, corev1.TLSCertKey}, {files.Key, corev1.TLSPrivateKeyKey},
	} {
		content, err := os.ReadFile(f.path)
		if err != nil {
			return nil, fmt.Errorf("external etcd: %w", err)
		}
		values[f.key] = secret.New(content)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(values["ca.crt"].Reveal()) {
		return nil, fmt.Errorf("external etcd: %s has no certificate in PEM", files.CA)
	}
	if _, err := tls.X509KeyPair(values[corev1.TLSCertKey].Reveal(), values[corev1.TLSPrivateKeyKey].Reveal()); err != nil {
		return nil, fmt.Errorf("external etcd: %s and %s are no key pair: %w", files.Cert, files.Key, err)
	}
	return Secrets{name: values}, nil
}

// Secret resolves a plan's references: the cluster's key pairs, and further Secrets.
func (t *Trust) Secret(ref step.SecretRef) ([]byte, error) {
	if value, found := t.Secrets[ref.Name][ref.Key]; found {
		return value.Reveal(), nil
	}
	pair, found := t.Get(ref.Name)
	found = found && ref.Name != pki.EncryptionName
	switch {
	case found && ref.Key == corev1.TLSCertKey:
		return pair.Cert, nil
	case found && ref.Key == corev1.TLSPrivateKeyKey:
		return pair.Key.Reveal(), nil
	case ref.Name == pki.EncryptionName && ref.Key == pki.EncryptionKeyName && !pair.IsZero():
		return pair.Key.Reveal(), nil
	}
	return nil, fmt.Errorf("there is no secret %s in the cluster's state", ref)
}

// adminsGroup is bound to the role cluster-admin in every cluster: what is given to it can be taken back.
const adminsGroup = "kubeadm:cluster-admins"

// Kubeconfig makes a kubeconfig for the cluster's administrator.
func (t *Trust) Kubeconfig(validity time.Duration) (secret.Value, error) {
	return t.kubeconfig(adminsGroup, validity)
}

func (t *Trust) kubeconfig(group string, validity time.Duration) (secret.Value, error) {
	client, err := t.Authorities.Cluster.Sign(pki.LeafRequest{
		CommonName: "kubernetes-admin", Organizations: []string{group}, Usages: []pki.Usage{pki.Client}, Validity: validity,
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
	// It is what binds roles to others, in a cluster that has none yet. It is kept nowhere.
	kubeconfig, err := t.kubeconfig("system:masters", adminValidity)
	if err != nil {
		return nil, err
	}
	cluster, err := kube.FromKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	return cluster, nil
}
