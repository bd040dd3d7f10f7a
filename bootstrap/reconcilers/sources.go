// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// ofCluster are the names by which plans know a cluster's own Secrets.
var ofCluster = []capisecret.Purpose{
	capisecret.ClusterCA, capisecret.EtcdCA, capisecret.FrontProxyCA, capisecret.ServiceAccount, capisecret.Kubeconfig, pki.EncryptionName,
}

// secrets resolves a plan's references: a cluster's own Secrets, and those that the user named.
func (r *KubexmConfigReconciler) secrets(ctx context.Context, cluster client.ObjectKey) func(step.SecretRef) ([]byte, error) {
	return func(ref step.SecretRef) ([]byte, error) {
		key := client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}
		own := slices.Contains(ofCluster, capisecret.Purpose(ref.Name))
		if own {
			key.Name = capisecret.Name(cluster.Name, capisecret.Purpose(ref.Name))
		}
		s := &corev1.Secret{}
		if err := r.Reader.Get(ctx, key, s); err != nil {
			return nil, fmt.Errorf("get the Secret %s: %w", key.Name, err)
		}
		if !own {
			if err := mayBeContent(s); err != nil {
				return nil, err
			}
		}
		value, found := s.Data[ref.Key]
		if !found {
			return nil, fmt.Errorf("the Secret %s has no key %s", key.Name, ref.Key)
		}
		if ref.Name == pki.EncryptionName { // which nobody may have checked, where another provider runs the control plane
			if err := (pki.KeyPair{Key: secret.New(value)}).CheckEncryptionKey(); err != nil {
				return nil, fmt.Errorf("the Secret %s, key %s: %w", key.Name, ref.Key, err)
			}
		}
		return value, nil
	}
}

// api connects to a cluster's API, once its kubeconfig exists.
func (r *KubexmConfigReconciler) api(cluster client.ObjectKey) func(context.Context) (step.Cluster, error) {
	return func(ctx context.Context) (step.Cluster, error) {
		c, err := r.connect(ctx, cluster)
		if err != nil {
			return nil, err // not a nil *kube.Cluster in an interface
		}
		return c, nil
	}
}

func (r *KubexmConfigReconciler) connect(ctx context.Context, cluster client.ObjectKey) (*kube.Cluster, error) {
	s := &corev1.Secret{}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: capisecret.Name(cluster.Name, capisecret.Kubeconfig)}
	if err := r.Reader.Get(ctx, key, s); err != nil {
		return nil, fmt.Errorf("get the Secret %s: %w", key.Name, err)
	}
	return kube.FromKubeconfig(secret.New(s.Data[capisecret.KubeconfigDataName]))
}

// versions are the resource versions of the Secrets that the host's files and etcd's clients are made from, so that a change of one is
// noticed. One that is missing has none. The error has the field that names a Secret which must not be read for hosts.
func (r *KubexmConfigReconciler) versions(ctx context.Context, namespace string, named []namedSecret) ([]string, error) {
	var versions []string
	for _, n := range named {
		s := &corev1.Secret{}
		if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: n.name}, s); apierrors.IsNotFound(err) {
			versions = append(versions, n.name+"@")
			continue
		} else if err != nil {
			return nil, fmt.Errorf("get the Secret %s: %w", n.name, err)
		}
		if err := mayBeContent(s); err != nil {
			return nil, fmt.Errorf("%s: %w", n.path, err)
		}
		versions = append(versions, n.name+"@"+s.ResourceVersion)
	}
	return versions, nil
}

// pairs are a cluster's own Secrets for these purposes, in their order; nil where there is none yet.
func (r *KubexmConfigReconciler) pairs(
	ctx context.Context, cluster client.ObjectKey, purposes ...capisecret.Purpose,
) ([]*corev1.Secret, error) {
	all := make([]*corev1.Secret, len(purposes))
	for i, p := range purposes {
		s, name := &corev1.Secret{}, capisecret.Name(cluster.Name, p)
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, s)
		switch {
		case err == nil:
			all[i] = s
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("get the Secret %s: %w", name, err)
		}
	}
	return all, nil
}
