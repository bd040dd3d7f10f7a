// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/desired"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

var purposes = []capisecret.Purpose{capisecret.ClusterCA, capisecret.EtcdCA, capisecret.FrontProxyCA, capisecret.ServiceAccount}

// purposesOf are those, and that of the encryption key where the cluster is to have one.
func purposesOf(s *scope) []capisecret.Purpose {
	if s.encrypts() {
		return append(slices.Clone(purposes), pki.EncryptionName)
	}
	return purposes
}

// encrypts reports whether the cluster is declared to encrypt at rest.
func (s *scope) encrypts() bool { return s.Object.Spec.Cluster.Kubernetes.EncryptionAtRest.IsOn() }

// reconcileAuthorities makes the certificate authorities and the encryption key that do not exist, as long as nothing of the cluster does
// (see begun), and records their fingerprints before they are used. From then on, a pair that is missing or another one is an error: it is
// for a person to restore it, or to request its recovery. Pairs that the user brings before that count, if they can do their work.
func (r *KubexmControlPlaneReconciler) reconcileAuthorities(ctx context.Context, s *scope) (err error) {
	defer func() { s.Certificates = err }()
	recorded, err := pki.ParseFingerprints(s.Object.Annotations[controlplanev1.AuthoritiesAnnotation])
	if err != nil {
		return fmt.Errorf("the annotation %s: %w", controlplanev1.AuthoritiesAnnotation, err)
	}
	if err := otherEncryption(s, recorded); err != nil {
		return err
	}
	known, err := r.pairs(ctx, s)
	if err != nil {
		return err
	}
	if err := r.mayComplete(ctx, s, &known, recorded); err != nil {
		return err
	}
	made, err := known.Complete(pki.CARequest{
		Key:      pki.Algorithm(s.Object.Spec.Cluster.Certificates.CAAlgorithm),
		Validity: s.Object.Spec.Cluster.Certificates.CAValidity(),
	})
	if err != nil {
		return err
	}
	if s.encrypts() && known.CompleteEncryption() {
		made = append(made, pki.EncryptionName)
	}
	if err := known.Check(time.Now()); err != nil {
		return fmt.Errorf("the Secrets %s-…: %w", s.Cluster.Name, err)
	}
	now, err := known.Fingerprints()
	if err != nil {
		return fmt.Errorf("the Secrets %s-…: %w", s.Cluster.Name, err)
	}
	// A rotation, where one is declared, would allow another one here.
	if err := differing(s, recorded, now); err != nil {
		return err
	}
	for _, name := range made {
		pair, _ := known.Get(name)
		if err := r.Client.Create(ctx, pairSecret(s, name, pair)); apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("the Secret %s was created by somebody else just now", capisecret.Name(s.Cluster.Name, capisecret.Purpose(name)))
		} else if err != nil {
			return fmt.Errorf("create the Secret %s: %w", capisecret.Name(s.Cluster.Name, capisecret.Purpose(name)), err)
		}
	}
	if err := r.record(ctx, s, now); err != nil {
		return err
	}
	return r.recovered(ctx, s)
}

// pairs reads all key pairs, and the encryption key; those are zero that have no Secret.
func (r *KubexmControlPlaneReconciler) pairs(ctx context.Context, s *scope) (known pki.Authorities, err error) {
	for _, p := range purposesOf(s) {
		pair, err := r.pair(ctx, s, p)
		if err != nil {
			return known, err
		}
		known.Set(string(p), pair)
	}
	return known, nil
}

// pair reads a key pair; it is zero where there is no Secret.
func (r *KubexmControlPlaneReconciler) pair(ctx context.Context, s *scope, p capisecret.Purpose) (pki.KeyPair, error) {
	found := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.Cluster.Namespace, Name: capisecret.Name(s.Cluster.Name, p)}
	if err := r.Reader.Get(ctx, key, found); apierrors.IsNotFound(err) {
		return pki.KeyPair{}, nil
	} else if err != nil {
		return pki.KeyPair{}, fmt.Errorf("get the Secret %s: %w", key.Name, err)
	}
	if p == pki.EncryptionName {
		return r.encryptionKey(ctx, s, found)
	}
	pair := pki.KeyPair{Cert: found.Data[capisecret.TLSCrtDataName], Key: secret.New(found.Data[capisecret.TLSKeyDataName])}
	if len(pair.Cert) == 0 || pair.Key.IsZero() {
		return pair, distrust(controlplanev1.AuthorityIncompleteReason, "the Secret %s has no %s or no %s: kubexm needs both. %s",
			key.Name, capisecret.TLSCrtDataName, capisecret.TLSKeyDataName, restore(s, deleteFirst))
	}
	return pair, nil
}

// encryptionKey is what a Secret has. clusterctl does not know by its name whose it is, so one that somebody has brought is asked to go
// along.
func (r *KubexmControlPlaneReconciler) encryptionKey(ctx context.Context, s *scope, found *corev1.Secret) (pki.KeyPair, error) {
	pair := pki.KeyPair{Key: secret.New(found.Data[pki.EncryptionKeyName])}
	if pair.Key.IsZero() {
		return pair, distrust(controlplanev1.AuthorityIncompleteReason,
			"the Secret %s has no %s, which is the key that Secrets are encrypted with. %s",
			found.Name, pki.EncryptionKeyName, restore(s, deleteFirst))
	}
	if _, moves := found.Labels[clusterctlv1.ClusterctlMoveLabel]; moves || metav1.GetControllerOf(found) != nil {
		return pair, nil
	}
	moving := found.DeepCopy()
	metav1.SetMetaDataLabel(&moving.ObjectMeta, clusterctlv1.ClusterctlMoveLabel, "")
	if err := r.Client.Patch(ctx, moving, client.MergeFrom(found)); err != nil {
		return pair, fmt.Errorf("label the Secret %s to be moved with the cluster: %w", found.Name, err)
	}
	return pair, nil
}

func pairSecret(s *scope, name string, pair pki.KeyPair) *corev1.Secret {
	data := map[string][]byte{capisecret.TLSCrtDataName: pair.Cert, capisecret.TLSKeyDataName: pair.Key.Reveal()}
	if name == pki.EncryptionName {
		data = map[string][]byte{pki.EncryptionKeyName: pair.Key.Reveal()}
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Cluster.Namespace, Name: capisecret.Name(s.Cluster.Name, capisecret.Purpose(name)),
			Labels:          map[string]string{clusterv1.ClusterNameLabel: s.Cluster.Name},
			OwnerReferences: []metav1.OwnerReference{desired.Owner(s.Object)},
		},
		Type: clusterv1.ClusterSecretType,
		Data: data,
	}
}
