// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
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
			p, err := pipeline.RenewCertificates("prod", targets, nil, []string{"all"}, asked)
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
	p, err := pipeline.RenewCertificates("prod", targets, nil, []string{"etcd-member", "kubelet"}, asked)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := p.Text(&text); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/renew-some.golden", text.String())

	again, err := pipeline.RenewCertificates("prod", targets, nil, []string{"etcd-member", "kubelet"}, asked.Add(time.Second))
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
	_, err := pipeline.RenewCertificates("prod", targets, nil, []string{"apiserver", "kubelet-client"}, asked)
	const want = "cluster prod: no host has a certificate kubelet-client that can be renewed; there are admin.conf, apiserver, " +
		"apiserver-etcd-client, apiserver-kubelet-client, controller-manager.conf, etcd-admin, etcd-healthcheck-client, etcd-member, " +
		"etcd-peer, etcd-server, front-proxy-client, kubelet, scheduler.conf, super-admin.conf, and all"
	if err == nil || err.Error() != want {
		t.Errorf("the error is\n%v, want\n%s", err, want)
	}
}

// TestCertificateNames: those that objects and annotations may name are all that some cluster has, and on hosts whose role may have them.
func TestCertificateNames(t *testing.T) {
	names := map[spec.CertificateName]bool{}
	for _, way := range ways {
		for _, etcd := range etcds {
			for _, e := range endpoints {
				targets := targetsOf(members(t, way, etcd.set, e.set))
				renewals, err := pipeline.Renewals(targets, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range renewals {
					name := spec.CertificateName(r.Name)
					names[name] = true
					at := slices.IndexFunc(targets, func(t spec.Target) bool { return t.Host.Name == r.Host })
					if of := &targets[at]; !of.Cluster.MayHaveCertificate(name, of.Host.Role) {
						t.Errorf("%s with etcd %s: %s has %s, which no %s may have", way, etcd.name, r.Host, name, of.Host.Role)
					}
				}
			}
		}
	}
	if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, spec.CertificateNames) {
		t.Errorf("hosts have %v, and %v may be named", got, spec.CertificateNames)
	}
}

// TestRenewOn: a host that is asked for what a whole cluster has renews its part of it, in the way in which all hosts do.
func TestRenewOn(t *testing.T) {
	kubeadm := targetsOf(members(t, spec.KubernetesKubeadm, etcds[2].set, endpoints[1].set))
	kubexm := targetsOf(members(t, spec.KubernetesKubexm, etcds[1].set, endpoints[0].set))
	external := targetsOf(members(t, spec.KubernetesKubeadm, etcds[3].set, endpoints[0].set))
	for name, tc := range map[string]struct {
		targets []spec.Target
		host    string
		names   []string
		// want are the certificates, or the error.
		want, err string
	}{
		"all of a worker":  {kubexm, "w1", nil, "kubelet-client kubelet kube-proxy", ""},
		"all by its name":  {kubeadm, "w1", []string{"all"}, "kubelet", ""},
		"some":             {kubexm, "w1", []string{"apiserver", "kubelet"}, "kubelet", ""},
		"etcd's own host":  {kubeadm, "e1", []string{"apiserver", "etcd-member"}, "etcd-member", ""},
		"a control plane":  {kubeadm, "cp2", []string{"apiserver", "etcd-member"}, "apiserver", ""},
		"none that it has": {kubeadm, "cp2", []string{"etcd-member"}, "", "cp2 has none of these certificates to renew: etcd-member; it has apiserver-etcd-client, "},
		"none at all":      {kubeadm, "lb1", nil, "", "lb1 has none of these certificates to renew: all; it has none that can be renewed"},
		"none of its kind": {kubexm, "cp1", []string{"admin.conf"}, "", "cluster prod has no certificate admin.conf that can be renewed on its hosts; it has admin, "},
		"another's etcd":   {external, "cp1", []string{"etcd-member"}, "", "cluster prod has no certificate etcd-member"},
	} {
		at := slices.IndexFunc(tc.targets, func(t spec.Target) bool { return t.Host.Name == tc.host })
		p, renewals, err := pipeline.RenewOn(pipeline.Node{Target: tc.targets[at]}, tc.names, asked)
		var got []string
		for _, r := range renewals {
			got = append(got, r.Name)
		}
		if strings.Join(got, " ") != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if err != nil {
			continue
		}
		alone, err := pipeline.RenewCertificates("prod", tc.targets[at:at+1], nil, got, asked)
		if err != nil {
			t.Fatal(err)
		}
		is, _ := p.Digest()
		if want, _ := alone.Digest(); is != want {
			t.Errorf("%s: it is another plan than the command's on this host", name)
		}
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
		p, err := pipeline.RenewCertificates("prod", targets, nil, names, asked)
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

// TestRenewalNamesWhatWasFound: in a cluster of two families, a Node's second address may have been found on the host. The certificate that
// is made anew names it, as the one before does.
func TestRenewalNamesWhatWasFound(t *testing.T) {
	targets := targetsOf(members(t, spec.KubernetesKubexm, etcds[0].set, endpoints[0].set))
	const found = "fd00:1::9"
	systems := map[string]host.System{}
	for i := range targets {
		targets[i].Cluster.Network.PodCIDRs = []string{"10.244.0.0/16", "fd00:10::/56"}
		targets[i].Cluster.Network.ServiceCIDRs = []string{"10.96.0.0/16", "fd00:20::/112"}
		systems[targets[i].Host.Name] = host.System{DefaultIPv6: found}
	}
	kubelets, err := pipeline.Renewals(targets, []string{"kubelet"})
	if err != nil {
		t.Fatal(err)
	}
	for name, seen := range map[string]map[string]host.System{"seen": systems, "not seen": nil} {
		p, err := pipeline.RenewCertificates("prod", targets, seen, []string{"kubelet"}, asked)
		if err != nil {
			t.Fatal(err)
		}
		hosts := 0
		for i := range p.Graph().Len() {
			n := p.Graph().Node(i).Value
			for _, c := range step.Certificates(n.Step) {
				if !slices.ContainsFunc(kubelets, func(r pipeline.Renewal) bool { return r.Host == n.Host && r.Path == c.Path }) {
					continue
				}
				if hosts++; slices.Contains(c.Addresses, netip.MustParseAddr(found)) != (seen != nil) {
					t.Errorf("%s: on %s the certificate is for %v", name, n.Host, c.Addresses)
				}
			}
		}
		if hosts != len(targets) {
			t.Errorf("%s: %d certificates are made on %d hosts", name, hosts, len(targets))
		}
	}
}
