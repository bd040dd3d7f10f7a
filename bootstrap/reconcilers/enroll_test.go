// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// located is an infrastructure that has said where a host is.
type located struct {
	adapter
	host infra.Host
}

func (l *located) Host(context.Context, infra.Subject) (*infra.Host, error) {
	h := l.host
	return &h, nil
}

func (*located) HasDoor() bool { return true }

// TestDeclaredNetworksDecide which of a host's addresses is the one for the others, whatever the infrastructure knows of.
func TestDeclaredNetworksDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		networks, observed []string
		want               string
	}{
		"none is declared":                         {observed: []string{"10.0.0.5", "172.16.0.5"}, want: "10.0.0.5"},
		"one that the infrastructure knows":        {[]string{"172.16.0.0/24"}, []string{"10.0.0.5", "172.16.0.5"}, "172.16.0.5"},
		"one that it does not know":                {[]string{"10.8.0.0/16"}, []string{"10.0.0.5", "10.8.0.5"}, "10.8.0.5"},
		"the first of two":                         {[]string{"10.8.0.0/16", "10.0.0.0/24"}, []string{"10.0.0.5", "10.8.0.5"}, "10.8.0.5"},
		"one that the host is not in":              {[]string{"192.0.2.0/24"}, []string{"10.0.0.5"}, ""},
		"one in which it is believed, and is not":  {[]string{"172.16.0.0/24"}, []string{"10.0.0.5"}, ""},
		"one in which it is believed, not yet met": {[]string{"172.16.0.0/24"}, nil, "172.16.0.5"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForeigner(t)
			s := f.scope()
			s.adapter = &located{host: infra.Host{Host: spec.Host{
				Name: "w1", Address: "10.0.0.5", InternalAddresses: []string{"10.0.0.5", "172.16.0.5"},
			}}}
			s.clusterConfig = &bootstrapv1.KubexmClusterConfig{}
			s.clusterConfig.Spec.Cluster.Network.HostCIDRs = tc.networks
			s.config.Status.Host.ObservedAddresses = tc.observed
			if err := f.r.locate(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if got := s.config.Status.Host.InternalAddress; got != tc.want {
				t.Errorf("it is %q, want %q", got, tc.want)
			}
		})
	}
}

// TestOthersAddressesAreNotTaken, whatever a host says of its own interfaces: a worker has neither the API's nor a member's.
func TestOthersAddressesAreNotTaken(t *testing.T) {
	member := func(name, address string, phase bootstrapv1.MemberPhase) bootstrapv1.ClusterMember {
		return bootstrapv1.ClusterMember{Name: name, Role: spec.RoleControlPlane, Address: address, Phase: phase}
	}
	for name, tc := range map[string]struct {
		change         func(*scope)
		said, observed []string
		want           []string
	}{
		"all are its own": {observed: []string{"172.16.0.13", "172.16.0.14"}, want: []string{"172.16.0.13", "172.16.0.14"}},
		"the endpoint's": {
			func(s *scope) { s.clusterConfig.Spec.ControlPlaneEndpoint.Host = "172.16.0.100" },
			nil, []string{"172.16.0.13", "172.16.0.100"}, []string{"172.16.0.13"},
		},
		"the endpoint's, of the Cluster": {
			func(s *scope) { s.cluster.Spec.ControlPlaneEndpoint.Host = "172.16.0.100" },
			nil, []string{"172.16.0.100", "172.16.0.13"}, []string{"172.16.0.13"},
		},
		"the endpoint's, of the specification": {
			func(s *scope) {
				s.clusterConfig.Spec.Cluster.ControlPlaneEndpoint.Address = "172.16.0.100"
				s.cluster.Spec.ControlPlaneEndpoint.Host = "172.16.0.101"
			},
			nil, []string{"172.16.0.101", "172.16.0.100", "172.16.0.13"}, []string{"172.16.0.13"},
		},
		"the endpoint's alone": {
			func(s *scope) { s.cluster.Spec.ControlPlaneEndpoint.Host = "172.16.0.100" }, nil, []string{"172.16.0.100"}, nil,
		},
		"the endpoint's, and the infrastructure says so too": {
			func(s *scope) { s.cluster.Spec.ControlPlaneEndpoint.Host = "172.16.0.100" },
			[]string{"172.16.0.100", "172.16.0.13"}, []string{"172.16.0.100", "172.16.0.13"}, []string{"172.16.0.13"},
		},
		"the endpoint's, and a host of the control plane": {
			func(s *scope) {
				s.cluster.Spec.ControlPlaneEndpoint.Host = "172.16.0.13"
				s.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
				s.clusterConfig.Spec.Members = []bootstrapv1.ClusterMember{member("w1", "172.16.0.13", bootstrapv1.MemberServing)}
				s.config.Status.Host.Name = "w1"
			},
			nil, []string{"172.16.0.13"}, []string{"172.16.0.13"},
		},
		"a Service's": {
			func(s *scope) { s.clusterConfig.Spec.Cluster.Network.ServiceCIDRs = []string{"172.16.0.96/28"} },
			nil, []string{"172.16.0.97", "172.16.0.13"}, []string{"172.16.0.13"},
		},
		"a member's": {
			func(s *scope) {
				s.clusterConfig.Spec.Members = []bootstrapv1.ClusterMember{
					member("cp1", "172.16.0.11", bootstrapv1.MemberServing), member("cp2", "", bootstrapv1.MemberJoining),
				}
			},
			nil, []string{"172.16.0.11", "172.16.0.13"}, []string{"172.16.0.13"},
		},
		"a member's, written otherwise": {
			func(s *scope) {
				s.clusterConfig.Spec.Members = []bootstrapv1.ClusterMember{member("cp1", "::ffff:172.16.0.11", bootstrapv1.MemberServing)}
			},
			nil, []string{"172.16.0.11", "172.16.0.13"}, []string{"172.16.0.13"},
		},
		"a member's that has the worker's name": {
			func(s *scope) {
				s.clusterConfig.Spec.Members = []bootstrapv1.ClusterMember{member("w1", "172.16.0.11", bootstrapv1.MemberServing)}
				s.config.Status.Host.Name = "w1"
			},
			nil, []string{"172.16.0.11", "172.16.0.13"}, []string{"172.16.0.13"},
		},
		"one that a removed member had": {
			func(s *scope) {
				s.clusterConfig.Spec.Members = []bootstrapv1.ClusterMember{member("cp1", "172.16.0.11", bootstrapv1.MemberRemoved)}
			},
			nil, []string{"172.16.0.11"}, []string{"172.16.0.11"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForeigner(t)
			s := f.scope()
			s.adapter = &located{host: infra.Host{Host: spec.Host{Name: "w1", Address: "10.0.0.5", InternalAddresses: tc.said}}}
			s.clusterConfig = &bootstrapv1.KubexmClusterConfig{}
			s.clusterConfig.Spec.Cluster.Network.HostCIDRs = []string{"172.16.0.0/24"}
			s.config.Status.Host.ObservedAddresses = tc.observed
			if tc.change != nil {
				tc.change(s)
			}
			if err := f.r.locate(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			own := s.shared().Host(s.host.Host, s.role())
			if got, want := own.Addresses(), append(tc.want, "10.0.0.5"); !slices.Equal(got, want) {
				t.Errorf("its Node has %q, want %q", got, want)
			}
			if got := s.config.Status.Host.ObservedAddresses; !slices.Equal(got, tc.observed) {
				t.Errorf("it was enrolled with %q, and now with %q", tc.observed, got)
			}
		})
	}
}

// dualStack are networks of both families, IPv6 first.
var dualStack = spec.Network{
	PodCIDRs: []string{"fd85:ee78:d8a6::/48", "10.233.64.0/18"}, ServiceCIDRs: []string{"fd85:ee78:d8a7::/108", "10.233.0.0/18"},
}

// TestEnteredByEitherFamily: at which of its addresses a host has answered first does not decide whether it can be a Node.
func TestEnteredByEitherFamily(t *testing.T) {
	v4, v6 := "10.0.0.5", "2001:db8::5"
	for name, tc := range map[string]struct {
		network              spec.Network
		candidates, internal []string // as the infrastructure says
		entered, want        string
	}{
		"both are internal":                   {spec.Network{}, []string{v4, v6}, []string{v4, v6}, v6, v4},
		"both are external":                   {spec.Network{}, []string{v4, v6}, nil, v6, v4},
		"both are external, by IPv4":          {spec.Network{}, []string{v4, v6}, nil, v4, v4},
		"IPv6 alone is known":                 {spec.Network{}, []string{v6}, []string{v6}, v6, v4},
		"IPv4 is translated":                  {spec.Network{}, []string{"203.0.113.5", v6}, nil, v6, v4},
		"IPv6 first, and both are internal":   {dualStack, []string{v4, v6}, []string{v4, v6}, v4, v6},
		"IPv6 first, and both are external":   {dualStack, []string{v4, v6}, nil, v4, v6},
		"IPv6 first, and IPv6 alone is known": {dualStack, []string{v6}, []string{v6}, v6, v6},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := newForeigner(t), testScope()
			s.key, s.host = client.ObjectKeyFromObject(s.config), nil
			s.adapter = &located{host: infra.Host{
				Host: spec.Host{Name: "w1", Address: tc.candidates[0], InternalAddresses: tc.internal}, Candidates: tc.candidates,
			}}
			s.clusterConfig.Spec.Cluster.Network = tc.network
			s.config.Status.Host = bootstrapv1.HostStatus{Address: tc.entered, ObservedAddresses: []string{v4, "172.17.0.1", v6}}
			if err := f.r.locate(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			target, err := targetOf(s)
			if err != nil {
				t.Fatal(err)
			}
			if h := target.Host; h.Address != tc.entered || h.NodeAddress() != tc.want || s.config.Status.Host.InternalAddress != tc.want {
				t.Errorf("the host is %+v, and its Node is to be at %s", h, tc.want)
			}
		})
	}
}

// TestEnterTriesTwice: an sshd that takes its configuration in refuses for a moment, which is not waited for like a host that has not
// run its bootstrap data.
func TestEnterTriesTwice(t *testing.T) {
	failed := func(kind host.Kind) error { return &host.Error{Kind: kind, Host: "w1"} }
	for name, tc := range map[string]struct {
		answers []error
		ends    time.Duration // of the attempt, 0 if it does not
		want    error
		dials   int
		after   time.Duration
	}{
		"it lets us in":             {answers: []error{nil}, dials: 1},
		"it does so a moment later": {answers: []error{failed(host.KindAuth), nil}, dials: 2, after: secondTry},
		"it refuses again": {answers: []error{failed(host.KindHostKey), failed(host.KindUnreachable)},
			want: failed(host.KindUnreachable), dials: 2, after: secondTry},
		"something else is wrong":     {answers: []error{failed(host.KindPrivilege)}, want: failed(host.KindPrivilege), dials: 1},
		"the attempt ends meanwhile":  {answers: []error{failed(host.KindAuth)}, ends: time.Second, want: failed(host.KindAuth), dials: 1, after: time.Second},
		"it has no kind that we know": {answers: []error{errors.New("other")}, want: errors.New("other"), dials: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tc.ends > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.ends)
					defer cancel()
				}
				dials, began := 0, time.Now()
				j := &enrollment{withoutPlan: withoutPlan{host: "w1", dial: func(context.Context, string) (host.Host, error) {
					dials++
					return nil, tc.answers[dials-1]
				}}}
				_, err := j.enter(ctx)
				if dials != tc.dials || time.Since(began) != tc.after {
					t.Errorf("%d dials in %s", dials, time.Since(began))
				}
				if (err == nil) != (tc.want == nil) ||
					err != nil && (err.Error() != tc.want.Error() || host.KindOf(err) != host.KindOf(tc.want)) {
					t.Errorf("it ended with %v, want %v", err, tc.want)
				}
			})
		})
	}
}
