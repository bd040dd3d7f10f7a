// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
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
	if c.Jump == nil || c.Jump.Address != "bastion.example.org" || c.Jump.Port != 2022 || c.Jump.User != "jump" {
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
