// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package certs_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate/recovery"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/binary"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/containerd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// trusts are the steps by which a control plane host gets all that is about trust, by the type of Kubernetes. kubeadm's own certificates
// are made here in its place.
func trusts(name string) map[string][]step.Step {
	t := spec.Target{
		ClusterName: "prod", KubernetesVersion: "v1.36.3", Host: spec.Host{Name: name, Role: spec.RoleControlPlane, Address: "192.168.0.11"},
	}
	t.Cluster.Kubernetes.Type = spec.KubernetesKubexm
	t.Cluster.ControlPlaneEndpoint.Address = "192.168.0.10"
	t.Cluster.Kubernetes.EncryptByDefault()
	t.Default()
	encryption := apiserver.Encryption(t.Cluster.Kubernetes)
	c := binary.Cluster{Name: t.ClusterName, Spec: t.Cluster}
	const pkiDir = "/etc/kubernetes/pki/"
	kubeadms := []step.Step{kubeadm.Authorities(true), encryption}
	for file, authority := range map[string][2]string{
		"apiserver": {"ca", "ca.crt"}, "apiserver-kubelet-client": {"ca", "ca.crt"},
		"front-proxy-client": {"proxy", "front-proxy-ca.crt"}, "apiserver-etcd-client": {"etcd", "etcd/ca.crt"},
	} {
		kubeadms = append(kubeadms, step.New(step.Meta{Name: "test/" + file}, step.Certificate{
			Path: pkiDir + file + ".crt", KeyPath: pkiDir + file + ".key", Authority: authority[0], Trusted: pkiDir + authority[1],
			CommonName: file, Usages: []pki.Usage{pki.Client},
		}))
	}
	return map[string][]step.Step{
		"kubexm": {
			binary.Authorities(), etcd.ClientCertificates(t.Cluster.Certificates, name),
			binary.Certificates(c, binary.NodeOf(&t, kubelet.NodeOf(&t, containerd.Runtime{}.Endpoint(), ""))),
			encryption,
		},
		"kubeadm": kubeadms,
	}
}

// TestRecoverOnHosts: what a real control plane host of either type has of the key pairs is read back, byte for byte; and the host refuses
// others, of which not one file is written.
func TestRecoverOnHosts(t *testing.T) {
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("recover-%d", os.Getpid()), Count: 2})
	for i, kind := range []string{"kubexm", "kubeadm"} {
		t.Run(kind, func(t *testing.T) {
			h := pool.Hosts[i]
			dial := func(ctx context.Context, _ string) (host.Host, error) {
				return ssh.Dial(ctx, lab.SSH(h))
			}
			b := plan.New("Test", "prod")
			first := step.New(step.Meta{Name: "test/first"}, step.File{Path: "/etc/first", Mode: 0o644, Content: step.Literal("first")})
			b.Host(h.Name, plan.Module{
				Name: "m", Tasks: []plan.Task{{Name: "t", Steps: slices.Concat([]step.Step{first}, trusts(h.Name)[kind])}},
			})
			p, err := b.Plan()
			if err != nil {
				t.Fatal(err)
			}
			with := func(a pki.Authorities) *engine.Engine {
				return engine.New(engine.Options{Dial: dial, Secrets: (&planner.Trust{Authorities: a}).Secret, Holder: "recover"})
			}
			own, other := newAuthorities(t), newAuthorities(t)
			if _, err := with(own).Run(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			again, err := with(own).Run(t.Context(), p)
			if err != nil || again.Total().Changed != 0 || again.Hosts[0].Exchanges != 1 {
				t.Fatalf("a converged host: %+v, %v", again.Hosts, err)
			}

			conn, err := dial(t.Context(), h.Name)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			found, err := recovery.Read(t.Context(), conn, pki.AllNames())
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range pki.AllNames() {
				want, _ := own.Get(name)
				if got, _ := found.Get(name); string(got.Cert) != string(want.Cert) || !got.Key.Equal(want.Key) {
					t.Errorf("%s is another", name)
				}
			}

			if out, err := h.Exec(t.Context(), "rm", "/etc/first"); err != nil {
				t.Fatal(err, out)
			}
			before, err := h.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := with(other).Run(t.Context(), p); host.KindOf(err) != host.KindOtherAuthority {
				t.Fatalf("got %v, want a refusal", err)
			}
			after, err := h.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, section := range []string{"file", "unit"} {
				if diff := hosts.Diff(hosts.Snapshot{section: before[section]}, hosts.Snapshot{section: after[section]}); len(diff) > 0 {
					t.Errorf("the host was changed: %q", diff)
				}
			}
		})
	}
}

func newAuthorities(t *testing.T) pki.Authorities {
	t.Helper()
	a, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	a.CompleteEncryption()
	return a
}
