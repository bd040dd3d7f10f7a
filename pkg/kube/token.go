// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// joiners is the group to which kubeadm's RBAC rules let a joining kubelet ask for its certificate.
const joiners = "system:bootstrappers:kubeadm:default-node-token"

// ours are the labels of the objects that this package makes by itself.
func ours() labels.Set { return labels.Set{"app.kubernetes.io/managed-by": manager} }

// Token returns a bootstrap token (https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/) that is
// ours and valid for at least ttl/2 more. If there is none it makes one that is valid for ttl. Expired ones of ours are
// deleted; nobody else's are read. Joins need no cluster-info ConfigMap: they find the cluster by a discovery
// kubeconfig that holds the CA and this token.
func (c *Cluster) Token(ctx context.Context, ttl time.Duration) (secret.Value, error) {
	if ttl <= 0 {
		return secret.Value{}, errors.New("a bootstrap token needs a time to live of more than 0")
	}
	found, err := c.findToken(ctx, ttl/2)
	if err != nil {
		return secret.Value{}, c.fail(err, "bootstrap tokens")
	}
	if !found.IsZero() {
		return found, nil
	}
	made, err := c.makeToken(ctx, ttl)
	if err != nil {
		return secret.Value{}, c.fail(err, "making a bootstrap token")
	}
	return made, nil
}

// findToken returns that of our tokens which is valid longest, if it is for least, and deletes the expired ones.
func (c *Cluster) findToken(ctx context.Context, least time.Duration) (secret.Value, error) {
	secrets := c.typed.CoreV1().Secrets(metav1.NamespaceSystem)
	list, err := secrets.List(ctx, metav1.ListOptions{
		LabelSelector: ours().String(),
		FieldSelector: fields.OneTermEqualSelector("type", string(bootstrapapi.SecretTypeBootstrapToken)).String(),
	})
	if err != nil {
		return secret.Value{}, err
	}
	now := time.Now()
	var best secret.Value
	until := now.Add(least)
	for i := range list.Items {
		s := &list.Items[i]
		expires, err := time.Parse(time.RFC3339, string(s.Data[bootstrapapi.BootstrapTokenExpirationKey]))
		switch {
		case err != nil:
			// A token without an end is not one that we made; anyone who changed it keeps it.
		case expires.Before(now):
			err := secrets.Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return secret.Value{}, err
			}
		case !expires.Before(until) && joins(s):
			best, until = token(s), expires
		}
	}
	return best, nil
}

// joins reports whether a kubelet can join with the token in s: somebody may have changed it.
func joins(s *corev1.Secret) bool {
	id, word := string(s.Data[bootstrapapi.BootstrapTokenIDKey]), string(s.Data[bootstrapapi.BootstrapTokenSecretKey])
	return bootstraputil.IsValidBootstrapToken(bootstraputil.TokenFromIDAndSecret(id, word)) &&
		s.Name == bootstraputil.BootstrapTokenSecretName(id) &&
		string(s.Data[bootstrapapi.BootstrapTokenUsageAuthentication]) == "true" &&
		slices.Contains(strings.Split(string(s.Data[bootstrapapi.BootstrapTokenExtraGroupsKey]), ","), joiners)
}

func token(s *corev1.Secret) secret.Value {
	return secret.New(bootstraputil.TokenFromIDAndSecret(
		string(s.Data[bootstrapapi.BootstrapTokenIDKey]), string(s.Data[bootstrapapi.BootstrapTokenSecretKey])))
}

func (c *Cluster) makeToken(ctx context.Context, ttl time.Duration) (secret.Value, error) {
	made, err := bootstraputil.GenerateBootstrapToken() // by crypto/rand
	if err != nil {
		return secret.Value{}, err
	}
	id, word, _ := strings.Cut(made, ".")
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(id), Labels: ours(),
		},
		Type: bootstrapapi.SecretTypeBootstrapToken,
		StringData: map[string]string{
			bootstrapapi.BootstrapTokenIDKey:               id,
			bootstrapapi.BootstrapTokenSecretKey:           word,
			bootstrapapi.BootstrapTokenExpirationKey:       time.Now().Add(ttl).UTC().Format(time.RFC3339),
			bootstrapapi.BootstrapTokenUsageAuthentication: "true",
			bootstrapapi.BootstrapTokenUsageSigningKey:     "true",
			bootstrapapi.BootstrapTokenExtraGroupsKey:      joiners,
			bootstrapapi.BootstrapTokenDescriptionKey:      "Made by kubexm for hosts that join.",
		},
	}
	if _, err := c.typed.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, s, metav1.CreateOptions{FieldManager: manager}); err != nil {
		return secret.Value{}, err
	}
	return secret.New(made), nil
}
