// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// targetsOf are what the nodes must be, as the command line knows it.
func targetsOf(nodes []pipeline.Node) []spec.Target {
	targets, all := make([]spec.Target, len(nodes)), make([]*spec.Target, len(nodes))
	for i, n := range nodes {
		targets[i], all[i] = n.Target, &targets[i]
	}
	spec.Arrange(all)
	return targets
}

var asked = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestRenewCertificates keeps, for each way to run Kubernetes with each etcd, which certificates are renewed and how.
func TestRenewCertificates(t *testing.T) {
	var text strings.Builder
	for _, way := range ways {
		for _, etcd := range etcds {
			targets := targetsOf(members(t, way, etcd.set, endpoints[0].set))
			fmt.Fprintf(&text, "===== %s with etcd %s\n", config.Word(way), etcd.name)
			renewals, err := pipeline.Renewals(targets, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range renewals {
				fmt.Fprintln(&text, strings.TrimSpace(fmt.Sprintf("%-4s %-26s %-55s %s", r.Host, r.Name, r.Path, r.Restarts)))
			}
			p, err := pipeline.RenewCertificates("prod", targets, []string{"all"}, asked)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "\n%s\n", outline(p))
			roundTrip(t, p)
		}
	}
	golden.File(t, "testdata/renew.golden", text.String())
}

// TestRenewalsAreAllThatPlansMake: whose a certificate on a host is is known by what is renewed there, so none may be made that is not.
func TestRenewalsAreAllThatPlansMake(t *testing.T) {
	b := bundle(t)
	for _, way := range ways {
		for _, etcd := range etcds {
			nodes := members(t, way, etcd.set, endpoints[0].set)
			p, err := pipeline.CreateCluster("prod", nodes, b)
			if err != nil {
				t.Fatal(err)
			}
			made := map[string]bool{}
			for i := range p.Graph().Len() {
				n := p.Graph().Node(i).Value
				for _, c := range step.Certificates(n.Step) {
					made[n.Host+" "+c.Path] = true
				}
			}
			renewals, err := pipeline.Renewals(targetsOf(nodes), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range renewals {
				if key := r.Host + " " + r.Path; !made[key] && way != spec.KubernetesKubeadm {
					t.Errorf("%s with etcd %s: %s is renewed, and nothing makes it", way, etcd.name, key)
				} else {
					delete(made, key)
				}
			}
			if len(made) > 0 {
				t.Errorf("%s with etcd %s: nothing renews %v", way, etcd.name, slices.Sorted(maps.Keys(made)))
			}
		}
	}
}

func TestRenewSomeCertificates(t *testing.T) {
	targets := targetsOf(members(t, spec.KubernetesKubexm, etcds[2].set, endpoints[0].set))
	p, err := pipeline.RenewCertificates("prod", targets, []string{"etcd-member", "kubelet"}, asked)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := p.Text(&text); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/renew-some.golden", text.String())

	again, err := pipeline.RenewCertificates("prod", targets, []string{"etcd-member", "kubelet"}, asked.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	first, _ := p.Digest()
	if second, _ := again.Digest(); first == second {
		t.Error("asked for at another time it is the same plan: the journal would say that it was done")
	}
}

func TestRenewRefuses(t *testing.T) {
	targets := targetsOf(members(t, spec.KubernetesKubeadm, etcds[0].set, endpoints[0].set))
	_, err := pipeline.RenewCertificates("prod", targets, []string{"apiserver", "kubelet-client"}, asked)
	const want = "cluster prod: no host has a certificate kubelet-client that can be renewed; there are admin.conf, apiserver, " +
		"apiserver-etcd-client, apiserver-kubelet-client, controller-manager.conf, etcd-admin, etcd-healthcheck-client, etcd-member, " +
		"etcd-peer, etcd-server, front-proxy-client, kubelet, scheduler.conf, super-admin.conf, and all"
	if err == nil || err.Error() != want {
		t.Errorf("the error is\n%v, want\n%s", err, want)
	}
}

// TestRenewalRuns: what is asked for is made anew, and what is not is left alone; the same plan does so once.
func TestRenewalRuns(t *testing.T) {
	targets := targetsOf(members(t, spec.KubernetesKubexm, etcds[1].set, endpoints[0].set))
	authorities, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	machines := map[string]*fake.Machine{}
	for _, target := range targets {
		m := fake.New(target.Host.Name)
		m.OnCommand = func(m *fake.Machine, c host.Command) host.Result {
			if c.Argv[0] == "touch" {
				for _, cert := range c.Argv[4:] {
					// Older than its key it is also when the key is new.
					key := strings.NewReplacer(".crt", ".key", ".pem", "-key.pem").Replace(cert)
					if f := look(t, m, key)[key]; f.Exists {
						m.Put(key, string(f.Content), 0o600)
					}
				}
			}
			return host.Result{}
		}
		machines[target.Host.Name] = m
	}
	e := engine.New(engine.Options{
		Holder: "test",
		Dial:   func(_ context.Context, name string) (host.Host, error) { return machines[name].Connect(), nil },
		Secrets: func(ref step.SecretRef) ([]byte, error) {
			pair, _ := authorities.Get(ref.Name)
			if ref.Key == "tls.crt" {
				return pair.Cert, nil
			}
			return pair.Key.Reveal(), nil
		},
	})
	renewals, err := pipeline.Renewals(targets, nil)
	if err != nil {
		t.Fatal(err)
	}
	// run returns the certificates that are others afterwards.
	run := func(asked time.Time, names ...string) []string {
		t.Helper()
		p, err := pipeline.RenewCertificates("prod", targets, names, asked)
		if err != nil {
			t.Fatal(err)
		}
		before := map[pipeline.Renewal]string{}
		content := func(r pipeline.Renewal) string { return string(look(t, machines[r.Host], r.Path)[r.Path].Content) }
		for _, r := range renewals {
			before[r] = content(r)
		}
		if _, err := e.Run(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		others := map[string]bool{}
		for _, r := range renewals {
			if now := content(r); now != before[r] {
				others[r.Name] = true
			}
		}
		return slices.Sorted(maps.Keys(others))
	}
	if made := run(asked); len(made) != 12 {
		t.Errorf("at first %v were made", made)
	}
	want := []string{"apiserver", "etcd-member", "kube-proxy"}
	if made := run(asked.Add(time.Hour), want...); !slices.Equal(made, want) {
		t.Errorf("%v were made, want %v", made, want)
	}
	if made := run(asked.Add(time.Hour), want...); made != nil {
		t.Errorf("the same plan has made %v again", made)
	}
}

func look(t *testing.T, m *fake.Machine, path string) map[string]host.Path {
	t.Helper()
	c := m.Connect()
	defer func() { _ = c.Close() }()
	f, err := c.Observe(t.Context(), host.Query{Paths: []host.PathQuery{{Path: path, Content: true}}})
	if err != nil {
		t.Fatal(err)
	}
	return f.Paths
}
