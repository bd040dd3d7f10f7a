// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// publish writes the bootstrap data: at once, because the infrastructure waits for it, and we wait for the
// infrastructure. Its name is always that of the KubexmConfig, so that a lost status is found again.
func (r *KubexmConfigReconciler) publish(ctx context.Context, s *scope) error {
	var data []byte
	err := refuseFormat(s)
	if err == nil {
		err = r.refuseConnection(s)
	}
	if err == nil {
		err = r.openDoor(ctx, s)
	}
	if err == nil {
		data, err = r.bootstrapData(ctx, s)
	}
	if err != nil {
		setFalse(s.config, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DataSecretNotAvailableReason, err.Error())
		return err
	}
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.config.Namespace, Name: s.config.Name,
			Labels:          map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.config, bootstrapv1.GroupVersion.WithKind("KubexmConfig"))},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": data, "format": []byte(s.config.Spec.Format.Contract())},
	}
	if err := r.write(ctx, s, wanted); err != nil {
		setFalse(s.config, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DataSecretNotAvailableReason, err.Error())
		return err
	}
	s.config.Status.DataSecretName = wanted.Name
	s.config.Status.Initialization.DataSecretCreated = ptr.To(true)
	setTrue(s.config, bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DataSecretAvailableReason, "")
	return nil
}

// refuseFormat says that the infrastructure runs no bootstrap data in the format that is asked for: the host would be waited for in vain.
func refuseFormat(s *scope) error {
	if s.adapter == nil {
		return nil
	}
	if why := s.adapter.Refuses(s.config.Spec.Format); why != "" {
		return fmt.Errorf("spec.format: %s", why)
	}
	return nil
}

// write creates the Secret, or brings the one that is there up to date. One that is not this KubexmConfig's is left alone, whatever its
// type is: a Cluster's certificate authority may have the same name.
func (r *KubexmConfigReconciler) write(ctx context.Context, s *scope, wanted *corev1.Secret) error {
	found := &corev1.Secret{}
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(wanted), found)
	switch {
	case apierrors.IsNotFound(err):
		if err := r.Client.Create(ctx, wanted); err != nil {
			return fmt.Errorf("create the Secret %s: %w", wanted.Name, err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("get the Secret %s: %w", wanted.Name, err)
	case !metav1.IsControlledBy(found, s.config):
		return notOurs(wanted.Name, "the bootstrap data")
	case equality.Semantic.DeepEqual(found.Data, wanted.Data):
		return nil
	}
	before := found.DeepCopy()
	found.Labels, found.OwnerReferences, found.Data = wanted.Labels, wanted.OwnerReferences, wanted.Data
	if err := r.Client.Patch(ctx, found, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("update the Secret %s: %w", wanted.Name, err)
	}
	return nil
}

// unpublish deletes the bootstrap data.
func (r *KubexmConfigReconciler) unpublish(ctx context.Context, s *scope) error {
	found := &corev1.Secret{}
	err := r.Reader.Get(ctx, s.key, found)
	if err == nil && metav1.IsControlledBy(found, s.config) {
		err = r.Client.Delete(ctx, found, client.Preconditions{UID: &found.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the Secret %s: %w", s.key.Name, err)
	}
	return nil
}

// sentinel is the file by which infrastructure providers see that the bootstrap data was run (contract of bootstrap
// providers, "Sentinel file").
const sentinel = "mkdir -p /run/cluster-api && touch /run/cluster-api/bootstrap-success.complete"

// publicKey is the line of authorized_keys for the private key.
func publicKey(credentials map[string][]byte) (string, error) {
	line, err := ssh.AuthorizedKey(secret.New(credentials[infra.KeyPrivateKey]), secret.New(credentials[infra.KeyPassphrase]))
	if err != nil {
		return "", fmt.Errorf("%s: %w", infra.KeyPrivateKey, err)
	}
	return line, nil
}
