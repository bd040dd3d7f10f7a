// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// behind is a host that is reached through a jump host, each with a Secret of its own.
func behind() infra.Host {
	a := someAccess()
	a.ProxyJump.Credentials.SecretRef.Name, a.ProxyJump.HostKeys.Pinned = "jump-ssh", []string{otherKey}
	return infra.Host{Host: spec.Host{Name: "w1", Address: "10.1.0.2"}, Access: a}
}

func withSecrets(t *testing.T, names ...string) *KubexmConfigReconciler {
	t.Helper()
	b := fake.NewClientBuilder()
	for _, name := range names {
		b = b.WithObjects(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}, Type: corev1.SecretTypeSSHAuth,
			Data: map[string][]byte{infra.KeyPrivateKey: []byte("the key of " + name)},
		})
	}
	return &KubexmConfigReconciler{Reader: b.Build()}
}

// TestJumpHostHasItsOwnLogin: neither the host's credentials nor its keys are the jump host's.
func TestJumpHostHasItsOwnLogin(t *testing.T) {
	c, err := withSecrets(t, "ssh", "jump-ssh").access(t.Context(), "fleet", "w1", behind())
	if err != nil {
		t.Fatal(err)
	}
	if c.Jump == nil || c.Jump.Name != "bastion.example.org" || c.Jump.Address != "bastion.example.org" || c.Jump.Port != 2022 || c.Jump.User != "jump" {
		t.Fatalf("the jump host is %+v", c.Jump)
	}
	if key := string(c.Jump.Auth.PrivateKeys[0].Reveal()); key != "the key of jump-ssh" {
		t.Errorf("the jump host is given %q", key)
	}
	if key := string(c.Auth.PrivateKeys[0].Reveal()); key != "the key of ssh" || c.Address != "10.1.0.2" || c.User != "ops" || c.Port != 2222 {
		t.Errorf("the host %s@%s:%d is given %q", c.User, c.Address, c.Port, key)
	}
	if !slices.Equal(c.Jump.HostKey.Pinned, []string{otherKey}) || !slices.Equal(c.HostKey.Pinned, []string{someKey, otherKey}) {
		t.Errorf("the jump host is known by %v, the host by %v", c.Jump.HostKey.Pinned, c.HostKey.Pinned)
	}
	direct := behind()
	direct.Access.ProxyJump = spec.ProxyJump{}
	if c, err := withSecrets(t, "ssh").access(t.Context(), "fleet", "w1", direct); err != nil || c.Jump != nil {
		t.Errorf("without a jump host: %+v, %v", c.Jump, err)
	}
}

// Where hosts trust an authority, each login has a key and a certificate of its own, the host's not good for the jump host's forwarding.
func TestLoginByCertificate(t *testing.T) {
	of := behind()
	a := accessOf("dual-stack", true)
	a.Credentials.UserCA.Principal, a.Credentials.UserCA.ValiditySeconds = "", 0
	of.Access = a
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := cryptossh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	authority := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "users"}, Type: corev1.SecretTypeSSHAuth,
		Data: map[string][]byte{infra.KeyPrivateKey: pem.EncodeToMemory(block)},
	}
	r := &KubexmConfigReconciler{Holder: "test", Reader: fake.NewClientBuilder().WithObjects(authority).Build()}
	certificate := func(c *ssh.Config) *cryptossh.Certificate {
		t.Helper()
		if len(c.Auth.Signers) != 1 || len(c.Auth.PrivateKeys) > 0 || !c.Auth.Password.IsZero() {
			t.Fatalf("it logs in with %+v", c.Auth)
		}
		return c.Auth.Signers[0].PublicKey().(*cryptossh.Certificate)
	}
	one, err := r.access(t.Context(), "fleet", "w1", of)
	if err != nil {
		t.Fatal(err)
	}
	two, err := r.access(t.Context(), "fleet", "w1", of)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(certificate(&one).Key.Marshal(), certificate(&two).Key.Marshal()) {
		t.Error("two logins have one key")
	}
	const forwarding = string(ssh.PermitPortForwarding)
	for who, want := range map[*ssh.Config]struct {
		principal string
		valid     time.Duration
		forwards  bool
	}{
		&one:     {"ops", spec.UserCAValidity, false},
		one.Jump: {"kubexm", time.Minute, true},
	} {
		c := certificate(who)
		_, forwards := c.Extensions[forwarding]
		valid := time.Until(time.Unix(int64(c.ValidBefore), 0))
		if !slices.Equal(c.ValidPrincipals, []string{want.principal}) || valid > want.valid ||
			valid < want.valid-10*time.Second || forwards != want.forwards {
			t.Errorf("for %q, %s, forwarding %t; want %+v", c.ValidPrincipals, valid, forwards, want)
		}
		if !slices.Equal(who.HostKey.Authorities, []string{someAuthority}) || len(who.HostKey.Pinned) > 0 {
			t.Errorf("the host is known by %+v", who.HostKey)
		}
	}
	authority.Data[infra.KeyPrivateKey] = []byte("no key")
	r.Reader = fake.NewClientBuilder().WithObjects(authority).Build()
	if _, err := r.access(t.Context(), "fleet", "w1", of); err == nil || !strings.Contains(err.Error(), "there is no certificate to log in with: the private key of the user CA") {
		t.Errorf("error %v", err)
	}
}

// TestMissingCredentials: the condition says whose Secret is missing.
func TestMissingCredentials(t *testing.T) {
	_, err := withSecrets(t, "ssh").access(t.Context(), "fleet", "w1", behind())
	if reason := unreachable(err); reason != bootstrapv1.CredentialsNotAvailableReason {
		t.Errorf("the reason is %q: %v", reason, err)
	}
	for _, want := range []string{"jump host bastion.example.org", "the Secret jump-ssh does not exist"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	_, err = withSecrets(t, "jump-ssh").access(t.Context(), "fleet", "w1", behind())
	if err == nil || strings.Contains(err.Error(), "bastion") || !strings.Contains(err.Error(), "the Secret ssh does not exist") {
		t.Errorf("of the host's own Secret: %v", err)
	}
}

// TestAgentOfTheCommand: a Secret that names what the command logs in with is no credential to a manager, which says so, whether it is the
// host's or the jump host's. Beside the command it leaves the login to Dial.
func TestAgentOfTheCommand(t *testing.T) {
	for _, name := range []string{"ssh", "jump-ssh"} {
		b := fake.NewClientBuilder()
		for _, secret := range []string{"ssh", "jump-ssh"} {
			data := map[string][]byte{infra.KeyPrivateKey: []byte("the key of " + secret)}
			if secret == name {
				data = map[string][]byte{infra.KeyAgent: []byte("the agent of a user")}
			}
			b = b.WithObjects(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "fleet", Name: secret, Labels: map[string]string{bootstrapv1.ForHostsLabel: bootstrapv1.ForHostsCredentials},
				},
				Type: corev1.SecretTypeOpaque, Data: data,
			})
		}
		r := &KubexmConfigReconciler{Reader: b.Build()}
		_, err := r.access(t.Context(), "fleet", "w1", behind())
		if unreachable(err) != bootstrapv1.CredentialsNotAvailableReason ||
			!strings.Contains(err.Error(), "the Secret "+name+" has neither ssh-privatekey nor password: the kubexm command, which made it, logs in with") {
			t.Errorf("of %s: %v", name, err)
		}
		r.Agent = true
		c, err := r.access(t.Context(), "fleet", "w1", behind())
		if err != nil || c.Auth.IsZero() != (name == "ssh") || c.Jump.Auth.IsZero() != (name == "jump-ssh") {
			t.Errorf("of %s: the logins are %+v and %+v, %v", name, c.Auth, c.Jump, err)
		}
	}
}
