// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
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
func (r *KubexmConfigReconciler) dialer(namespace string, h infra.Host) func(context.Context, string) (host.Host, error) {
	return func(ctx context.Context, name string) (host.Host, error) {
		access, err := r.access(ctx, namespace, name, h)
		if err != nil {
			return nil, err
		}
		return r.Dial(ctx, access)
	}
}

// access is how the host called name is dialled: directly, or through its jump host.
func (r *KubexmConfigReconciler) access(ctx context.Context, namespace, name string, h infra.Host) (ssh.Config, error) {
	a := &h.Access
	c, err := r.login(ctx, namespace, name, a.User, a.Credentials)
	if err != nil {
		return ssh.Config{}, err
	}
	c.Candidates = h.Candidates
	if h.CallsHome != "" {
		if r.CallHome == nil {
			return ssh.Config{}, &host.Error{Kind: host.KindUnreachable, Host: name, Message: noCallHome, Remedy: startCallHome}
		}
		c.Candidates, c.Accept = nil, func(ctx context.Context) (net.Conn, error) { return r.CallHome.Accept(ctx, h.CallsHome) }
	}
	c.Address, c.Port, c.User = h.Address, a.Port, a.User
	c.HostKey = ssh.HostKey{Pinned: a.HostKeys.Pinned, Authorities: a.HostKeys.Authorities}
	if j := &a.ProxyJump; !j.IsZero() {
		jump, err := r.login(ctx, namespace, name, j.User, j.Credentials, ssh.PermitPortForwarding)
		if err != nil {
			return ssh.Config{}, ssh.JumpError(err, j.Host)
		}
		// Its certificate is for its own name: one for the host's would have the host take its place.
		jump.Name, jump.Address, jump.Port, jump.User = j.Host, j.Host, j.Port, j.User
		jump.HostKey = ssh.HostKey{Pinned: j.HostKeys.Pinned, Authorities: j.HostKeys.Authorities}
		c.Jump = &jump
	}
	return c, nil
}

// noCallHome is why hosts cannot connect to this manager, and startCallHome what to do.
const (
	noCallHome    = "the host is to connect to the manager, and this manager takes no connections of hosts"
	startCallHome = "start the manager with --call-home-address=HOST:PORT, where hosts reach it"
)

// refuseConnection says that the host cannot be had connect to the manager as it is asked for: it would be waited for in vain.
func (r *KubexmConfigReconciler) refuseConnection(s *scope) error {
	if s.config.Spec.Access.Connection != spec.ConnectionCallHome || s.adapter == nil {
		return nil
	}
	switch {
	case !s.adapter.HasDoor():
		return errors.New("spec.access.connection: CallHome: no bootstrap data has this host connect to anybody, as it is dialled by what its " +
			"KubexmHost says: remove it")
	case r.CallHome == nil:
		return errors.New("spec.access.connection: CallHome: " + noCallHome + ": " + startCallHome)
	}
	return nil
}

// login is the part of an ssh.Config that comes of a user's credentials. Permits are for certificates.
func (r *KubexmConfigReconciler) login(
	ctx context.Context, namespace, name, user string, from spec.Credentials, permits ...ssh.Permit,
) (ssh.Config, error) {
	ref := from.Secret()
	credentials, err := r.credentials(ctx, client.ObjectKey{Namespace: namespace, Name: ref})
	if err != nil {
		return ssh.Config{}, &host.Error{
			Kind: host.KindAuth, Host: name, Message: "there are no credentials to log in with", Err: err,
			Remedy: fmt.Sprintf("have a Secret %s with %s or %s, of type %s or with the label %s=%s",
				ref, infra.KeyPrivateKey, infra.KeyPassword, corev1.SecretTypeSSHAuth,
				bootstrapv1.ForHostsLabel, bootstrapv1.ForHostsCredentials),
		}
	}
	if from.UserCA != (spec.UserCA{}) {
		return r.certified(name, user, from.UserCA, credentials, permits)
	}
	c := ssh.Config{
		Name: name, SudoPassword: secret.New(credentials[infra.KeySudoPassword]),
		Auth: ssh.Auth{Password: secret.New(credentials[infra.KeyPassword]), Passphrase: secret.New(credentials[infra.KeyPassphrase])},
	}
	if key := credentials[infra.KeyPrivateKey]; len(key) > 0 {
		c.Auth.PrivateKeys = []secret.Value{secret.New(key)}
	}
	return c, nil
}

// certified is a login with a key that is made for it, signed by the authority that a Secret has.
func (r *KubexmConfigReconciler) certified(
	name, user string, from spec.UserCA, credentials map[string][]byte, permits []ssh.Permit,
) (ssh.Config, error) {
	fail := func(err error) (ssh.Config, error) {
		return ssh.Config{}, &host.Error{
			Kind: host.KindAuth, Host: name, Message: "there is no certificate to log in with", Err: err,
			Remedy: fmt.Sprintf("have the Secret %s hold the authority's private key, not encrypted, as %s", from.SecretRef.Name, infra.KeyPrivateKey),
		}
	}
	ca, err := ssh.NewUserCA(secret.New(credentials[infra.KeyPrivateKey]))
	if err != nil {
		return fail(err)
	}
	validity := cmp.Or(time.Duration(from.ValiditySeconds)*time.Second, spec.UserCAValidity)
	auth, err := ssh.NewLogin(ca, cmp.Or(from.Principal, user), validity, time.Now(), host.Word("kubexm "+r.Holder+" "+name, 200), permits...)
	if err != nil {
		return fail(err)
	}
	return ssh.Config{Name: name, SudoPassword: secret.New(credentials[infra.KeySudoPassword]), Auth: auth}, nil
}

// credentials reads a Secret that has a private key or a password, or says that Dial has something to log in with.
func (r *KubexmConfigReconciler) credentials(ctx context.Context, key client.ObjectKey) (map[string][]byte, error) {
	s, err := r.secret(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := mayLogIn(s); err != nil {
		return nil, &noCredentials{message: "credentials.secretRef: " + err.Error()}
	}
	switch {
	case len(s.Data[infra.KeyPrivateKey])+len(s.Data[infra.KeyPassword]) > 0:
	case s.Data[infra.KeyAgent] != nil && r.Agent:
	case s.Data[infra.KeyAgent] != nil:
		return nil, &noCredentials{message: fmt.Sprintf("the Secret %s has neither %s nor %s: the kubexm command, which made it, logs in with the SSH agent "+
			"or the keys of the user who runs it, and a manager has neither", key.Name, infra.KeyPrivateKey, infra.KeyPassword)}
	default:
		return nil, &noCredentials{message: fmt.Sprintf("the Secret %s has neither %s nor %s", key.Name, infra.KeyPrivateKey, infra.KeyPassword)}
	}
	return s.Data, nil
}

// secret reads a Secret with credentials, without a cache. One that does not exist is a *noCredentials.
func (r *KubexmConfigReconciler) secret(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	if err := r.Reader.Get(ctx, key, s); apierrors.IsNotFound(err) {
		return nil, &noCredentials{message: fmt.Sprintf("the Secret %s does not exist", key.Name)}
	} else if err != nil {
		return nil, fmt.Errorf("get the Secret %s: %w", key.Name, err)
	}
	return s, nil
}
