// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// renewBefore is how long before its end the client certificate is renewed: it is valid for a year (contract of control
// plane providers, "Cluster kubeconfig management").
const renewBefore = 182 * 24 * time.Hour

// reconcileKubeconfig makes the administrator's kubeconfig as soon as the endpoint is known, and renews it when its server is gone, or its
// certificate ends soon and before the cluster's authority. One that the user has brought is left alone.
func (r *KubexmControlPlaneReconciler) reconcileKubeconfig(ctx context.Context, s *scope) error {
	if !s.ControlPlane.Endpoint().IsValid() {
		return nil
	}
	found := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.Cluster.Namespace, Name: capisecret.Name(s.Cluster.Name, capisecret.Kubeconfig)}
	err := r.Reader.Get(ctx, key, found)
	switch {
	case apierrors.IsNotFound(err):
		made, err := r.newKubeconfig(ctx, s)
		if err != nil {
			return err
		}
		created := kubeconfig.GenerateSecretWithOwner(client.ObjectKeyFromObject(s.Cluster), made.Reveal(), desired.Owner(s.Object))
		if err := r.Client.Create(ctx, created); err != nil {
			return fmt.Errorf("create the Secret %s: %w", key.Name, err)
		}
		s.kubeconfig = made
		return nil
	case err != nil:
		return fmt.Errorf("get the Secret %s: %w", key.Name, err)
	}
	s.kubeconfig = secret.New(found.Data[capisecret.KubeconfigDataName])
	if !metav1.IsControlledBy(found, s.Object) {
		return nil
	}
	ends, err := kubeconfig.NeedsClientCertRotation(found, renewBefore)
	if err != nil {
		return fmt.Errorf("check the client certificate in the Secret %s: %w", key.Name, err)
	}
	if is, err := clientcmd.RESTConfigFromKubeConfig(s.kubeconfig.Reveal()); err == nil && is.Host == s.Server() {
		if !ends {
			return nil
		}
		if lasts, err := r.lastsAsAuthority(ctx, s, is); lasts || err != nil {
			return err
		}
	}
	renewed, err := r.newKubeconfig(ctx, s)
	if err != nil {
		return err
	}
	before := found.DeepCopy()
	found.Data[capisecret.KubeconfigDataName] = renewed.Reveal()
	if err := r.Client.Patch(ctx, found, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("update the Secret %s: %w", key.Name, err)
	}
	s.kubeconfig = renewed
	return nil
}

// lastsAsAuthority reports whether a kubeconfig's client certificate is good for as long as the cluster's authority, which it is for: a new
// one would end then, too.
func (r *KubexmControlPlaneReconciler) lastsAsAuthority(ctx context.Context, s *scope, is *rest.Config) (bool, error) {
	pair, err := r.pair(ctx, s, capisecret.ClusterCA)
	if err != nil {
		return false, err
	}
	ca, caErr := pair.Certificate()
	leaf, leafErr := pki.KeyPair{Cert: is.CertData}.Certificate()
	if caErr != nil || leafErr != nil {
		return false, nil // who makes the new one says what is wrong with the authority
	}
	return bytes.Equal(is.CAData, pair.Cert) && !leaf.NotAfter.Before(ca.NotAfter) && time.Now().Before(leaf.NotAfter), nil
}

func (r *KubexmControlPlaneReconciler) newKubeconfig(ctx context.Context, s *scope) (secret.Value, error) {
	ca, err := r.pair(ctx, s, capisecret.ClusterCA)
	if err != nil {
		return secret.Value{}, err
	}
	// The API server knows no roles before kubeadm has made them; this group needs none.
	admin, err := ca.Sign(pki.LeafRequest{
		CommonName: "kubernetes-admin", Organizations: []string{"system:masters"}, Usages: []pki.Usage{pki.Client},
	})
	if err != nil {
		return secret.Value{}, err
	}
	return pki.Kubeconfig(pki.KubeconfigRequest{
		Cluster: s.Cluster.Name, User: s.Cluster.Name + "-admin", Server: s.Server(),
		CA: ca.Cert, Client: admin,
	})
}
