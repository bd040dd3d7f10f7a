// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// publish writes the bootstrap data: at once, because the infrastructure waits for it, and we wait for the
// infrastructure. Its name is always that of the KubexmConfig, so that a lost status is found again.
func (r *Config) publish(ctx context.Context, s *scope) error {
	data, err := r.bootstrapData(ctx, s)
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
		Data: map[string][]byte{"value": data, "format": []byte("cloud-config")},
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

// write creates the Secret, or brings the one that is there up to date. One that is not this KubexmConfig's is left alone, whatever its
// type is: a Cluster's certificate authority may have the same name.
func (r *Config) write(ctx context.Context, s *scope, wanted *corev1.Secret) error {
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
		return fmt.Errorf("the Secret %s, which is to have the bootstrap data, exists and is not this KubexmConfig's, so that it is left as it is: "+
			"give the KubexmConfig (or its Machine) another name, or delete the Secret if nobody needs what it has", wanted.Name)
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
func (r *Config) unpublish(ctx context.Context, s *scope) error {
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

// bootstrapData is what the host runs when it starts, in the part of cloud-config that every infrastructure provider
// understands: lines of shell. It may be run any number of times.
func (r *Config) bootstrapData(ctx context.Context, s *scope) ([]byte, error) {
	var lines []string
	if door := s.adapter.Door(s.subject()); door != nil {
		credentials, err := r.credentials(ctx, client.ObjectKey{Namespace: s.config.Namespace, Name: door.Credentials})
		if err != nil {
			return nil, fmt.Errorf("spec.ssh.credentialsRef: %w", err)
		}
		opening, err := openDoor(door.User, credentials)
		if err != nil {
			return nil, fmt.Errorf("spec.ssh.credentialsRef: the Secret %s: %w", door.Credentials, err)
		}
		lines = append(lines, opening...)
	}
	body, err := yaml.Marshal(map[string][]string{"runcmd": append(lines, sentinel)})
	if err != nil {
		return nil, err
	}
	return append([]byte("#cloud-config\n"), body...), nil
}

// openDoor makes the user, authorises the key and, unless sudo has a password, lets them become root. A user's name has
// no characters that a shell would take for something else: see spec.ValidateUser.
func openDoor(user string, credentials map[string][]byte) ([]string, error) {
	var lines []string
	if user != "root" {
		lines = append(lines, fmt.Sprintf("id -u '%[1]s' >/dev/null 2>&1 || useradd --create-home --shell /bin/bash '%[1]s'", user))
	}
	if len(credentials[infra.KeyPrivateKey]) > 0 {
		key, err := publicKey(credentials)
		if err != nil {
			return nil, err
		}
		lines = append(lines, strings.Join([]string{
			fmt.Sprintf("home=$(getent passwd '%s' | cut -d: -f6)", user),
			fmt.Sprintf("install -d -m 0700 -o '%[1]s' -g \"$(id -gn '%[1]s')\" \"$home/.ssh\"", user),
			"keys=\"$home/.ssh/authorized_keys\"",
			fmt.Sprintf("{ grep -qxF '%[1]s' \"$keys\" 2>/dev/null || echo '%[1]s' >> \"$keys\"; }", key),
			fmt.Sprintf("chmod 0600 \"$keys\" && chown '%[1]s:' \"$keys\"", user),
		}, " && "))
	}
	if user != "root" && len(credentials[infra.KeySudoPassword]) == 0 {
		lines = append(lines, fmt.Sprintf(
			"mkdir -p /etc/sudoers.d && (umask 0227 && printf '%%s\\n' '%s ALL=(ALL) NOPASSWD:ALL' > /etc/sudoers.d/90-kubexm)", user))
	}
	return lines, nil
}

// publicKey is the line of authorized_keys for the private key.
func publicKey(credentials map[string][]byte) (string, error) {
	line, err := ssh.AuthorizedKey(secret.New(credentials[infra.KeyPrivateKey]), secret.New(credentials[infra.KeyPassphrase]))
	if err != nil {
		return "", fmt.Errorf("%s: %w", infra.KeyPrivateKey, err)
	}
	return line, nil
}
