// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

var purposes = []capisecret.Purpose{capisecret.ClusterCA, capisecret.EtcdCA, capisecret.FrontProxyCA, capisecret.ServiceAccount}

// certificates makes the certificate authorities that do not exist. Those that the user has brought count, if they can
// do their work.
func (r *ControlPlane) certificates(ctx context.Context, s *scope) (err error) {
	defer func() { s.Certificates = err }()
	var known pki.Authorities
	for _, p := range purposes {
		pair, err := r.pair(ctx, s, p)
		if err != nil {
			return err
		}
		known.Set(string(p), pair)
	}
	made, err := known.Complete(pki.CARequest{
		Key:      pki.Algorithm(s.Object.Spec.Cluster.Certificates.CAAlgorithm),
		Validity: s.Object.Spec.Cluster.Certificates.CAValidity(),
	})
	if err != nil {
		return err
	}
	if err := known.Check(time.Now()); err != nil {
		return fmt.Errorf("the Secrets %s-…: %w", s.Cluster.Name, err)
	}
	for _, name := range made {
		pair, _ := known.Get(name)
		if err := r.Client.Create(ctx, pairSecret(s, name, pair)); apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("the Secret %s was created by somebody else just now", capisecret.Name(s.Cluster.Name, capisecret.Purpose(name)))
		} else if err != nil {
			return fmt.Errorf("create the Secret %s: %w", capisecret.Name(s.Cluster.Name, capisecret.Purpose(name)), err)
		}
	}
	return nil
}

// pair reads a key pair; it is zero where there is no Secret.
func (r *ControlPlane) pair(ctx context.Context, s *scope, p capisecret.Purpose) (pki.KeyPair, error) {
	found := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.Cluster.Namespace, Name: capisecret.Name(s.Cluster.Name, p)}
	if err := r.Reader.Get(ctx, key, found); apierrors.IsNotFound(err) {
		return pki.KeyPair{}, nil
	} else if err != nil {
		return pki.KeyPair{}, fmt.Errorf("get the Secret %s: %w", key.Name, err)
	}
	pair := pki.KeyPair{Cert: found.Data[capisecret.TLSCrtDataName], Key: secret.New(found.Data[capisecret.TLSKeyDataName])}
	if len(pair.Cert) == 0 || pair.Key.IsZero() {
		return pair, fmt.Errorf("the Secret %s has no %s or no %s: kubexm needs both", key.Name, capisecret.TLSCrtDataName, capisecret.TLSKeyDataName)
	}
	return pair, nil
}

func pairSecret(s *scope, name string, pair pki.KeyPair) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Cluster.Namespace, Name: capisecret.Name(s.Cluster.Name, capisecret.Purpose(name)),
			Labels:          map[string]string{clusterv1.ClusterNameLabel: s.Cluster.Name},
			OwnerReferences: []metav1.OwnerReference{desired.Owner(s.Object)},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{capisecret.TLSCrtDataName: pair.Cert, capisecret.TLSKeyDataName: pair.Key.Reveal()},
	}
}
