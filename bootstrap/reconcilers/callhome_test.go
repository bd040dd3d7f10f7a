// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/callhome"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func callsHome(c *bootstrapv1.KubexmConfig) { c.Spec.Access.Connection = spec.ConnectionCallHome }

// TestCallHomeIsBootstrapData has the host connect to the manager, as the one whose door it is, and the manager wait for that.
func TestCallHomeIsBootstrapData(t *testing.T) {
	f := newForeigner(t)
	f.r.CallHome = callhome.NewServer("", "capi.example.org:4334")
	s := f.scope(callsHome)
	if data := f.publish(s); !strings.Contains(data, "to='capi.example.org/4334'") || !strings.Contains(data, nonceOf(s)) {
		t.Errorf("the bootstrap data is\n%s", data)
	}
	s.host = &infra.Host{Host: spec.Host{Name: "w1", Address: "192.0.2.1"}, Candidates: []string{"192.0.2.1", "192.0.2.2"}}
	if err := f.r.place(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var dialled ssh.Config
	f.r.Dial = func(_ context.Context, c ssh.Config) (host.Host, error) {
		dialled = c
		return nil, errors.New("nobody")
	}
	if _, err := f.r.dialer("fleet", *s.host)(t.Context(), "w1"); err == nil || err.Error() != "nobody" {
		t.Fatal(err)
	}
	if dialled.Accept == nil || len(dialled.Candidates) > 0 || dialled.Address != "192.0.2.1" {
		t.Errorf("it is dialled at %s and %v", dialled.Address, dialled.Candidates)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := dialled.Accept(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a host that has not connected: %v", err)
	}
}

// TestCallHomeIsRefused: nobody waits in vain for a host that has not been had connect to the manager.
func TestCallHomeIsRefused(t *testing.T) {
	manager := callhome.NewServer("", "capi.example.org:4334")
	for name, test := range map[string]struct {
		manager *callhome.Server
		change  func(*testing.T, *foreigner, *scope)
		says    string
	}{
		"a manager that takes no connections": {nil, nil, "start the manager with --call-home-address"},
		"a host of the inventory": {manager, func(_ *testing.T, f *foreigner, s *scope) {
			s.adapter = infra.Inventory(f.Client, f.Client)
		}, "dialled by what its KubexmHost says"},
		"an image that lets us in by a password": {manager, func(t *testing.T, f *foreigner, s *scope) {
			s.config.Spec.Access.HostKeys.Pinned = []string{someKey}
			s.config.Spec.Access.Credentials.SecretRef.Name = "ours"
			if err := f.Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "fleet", Name: "ours", Labels: map[string]string{bootstrapv1.ForHostsLabel: bootstrapv1.ForHostsCredentials},
				},
				Data: map[string][]byte{infra.KeyPassword: []byte("x")},
			}); err != nil {
				t.Fatal(err)
			}
		}, "it has no ssh-privatekey"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForeigner(t)
			f.r.CallHome = test.manager
			s := f.scope(callsHome)
			if test.change != nil {
				test.change(t, f, s)
			}
			err := f.r.publish(t.Context(), s)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("it is %v, want %q", err, test.says)
			}
			if !strings.Contains(conditions.GetMessage(s.config, bootstrapv1.DataSecretAvailableCondition), test.says) {
				t.Errorf("the condition does not say so: %v", s.config.Status.Conditions)
			}
		})
	}
}
