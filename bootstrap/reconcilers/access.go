// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Dial connects to a host.
type Dial func(context.Context, ssh.Config) (host.Host, error)

// DialSSH is the Dial of everything but tests.
func DialSSH(ctx context.Context, c ssh.Config) (host.Host, error) {
	h, err := ssh.Dial(ctx, c)
	if err != nil {
		return nil, err // not a nil *ssh.Host in an interface
	}
	return h, nil
}

// noCredentials says that the Secret with a host's credentials is missing or of no use.
type noCredentials struct{ message string }

func (n *noCredentials) Error() string { return n.message }

// dialer dials a host with the credentials that its Secret has at that time.
func (r *Config) dialer(namespace string, h infra.Host) func(context.Context, string) (host.Host, error) {
	return func(ctx context.Context, name string) (host.Host, error) {
		access, err := r.access(ctx, namespace, name, h)
		if err != nil {
			return nil, err
		}
		return r.Dial(ctx, access)
	}
}

func (r *Config) access(ctx context.Context, namespace, name string, h infra.Host) (ssh.Config, error) {
	credentials, err := r.credentials(ctx, client.ObjectKey{Namespace: namespace, Name: h.Credentials})
	if err != nil {
		return ssh.Config{}, &host.Error{
			Kind: host.KindAuth, Host: name, Message: "there are no credentials to log in with", Err: err,
			Remedy: fmt.Sprintf("have a Secret %s with %s or %s, of type %s or with the label %s=%s",
				h.Credentials, infra.KeyPrivateKey, infra.KeyPassword, corev1.SecretTypeSSHAuth, bootstrapv1.ForHostsLabel, bootstrapv1.ForHostsCredentials),
		}
	}
	c := ssh.Config{
		Name: name, Address: h.Address, Port: h.Port, User: h.User,
		SudoPassword: secret.New(credentials[infra.KeySudoPassword]),
		Auth:         ssh.Auth{Password: secret.New(credentials[infra.KeyPassword]), Passphrase: secret.New(credentials[infra.KeyPassphrase])},
		HostKey:      ssh.HostKey{Pinned: h.HostKeys},
	}
	if key := credentials[infra.KeyPrivateKey]; len(key) > 0 {
		c.Auth.PrivateKeys = []secret.Value{secret.New(key)}
	}
	return c, nil
}

// credentials reads a Secret that has a private key or a password.
func (r *Config) credentials(ctx context.Context, key client.ObjectKey) (map[string][]byte, error) {
	s := &corev1.Secret{}
	if err := r.Reader.Get(ctx, key, s); apierrors.IsNotFound(err) {
		return nil, &noCredentials{message: fmt.Sprintf("the Secret %s does not exist", key.Name)}
	} else if err != nil {
		return nil, fmt.Errorf("get the Secret %s: %w", key.Name, err)
	}
	if err := mayLogIn(s); err != nil {
		return nil, &noCredentials{message: "credentialsRef: " + err.Error()}
	}
	if len(s.Data[infra.KeyPrivateKey])+len(s.Data[infra.KeyPassword]) == 0 {
		return nil, &noCredentials{message: fmt.Sprintf("the Secret %s has neither %s nor %s", key.Name, infra.KeyPrivateKey, infra.KeyPassword)}
	}
	return s.Data, nil
}
