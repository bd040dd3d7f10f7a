// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package certs_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/certs"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// disk is a host that answers the files below /etc/kubernetes/pki that it is asked for.
type disk struct {
	host.Host
	files map[string][]byte
	argv  []string
}

func (d *disk) Name() string { return "node1" }

func (d *disk) Exec(_ context.Context, c host.Command) (*host.Result, error) {
	d.argv = c.Argv
	var out strings.Builder
	for _, name := range c.Argv[4:] {
		if content, found := d.files[name]; found {
			fmt.Fprintf(&out, "%s %s\n", name, base64.StdEncoding.EncodeToString(content))
		}
	}
	return &host.Result{Stdout: []byte(out.String())}, nil
}

// controlPlaneDisk has what a control plane host has.
func controlPlaneDisk(t *testing.T, a pki.Authorities) *disk {
	t.Helper()
	d := &disk{files: map[string][]byte{
		"ca.crt": a.Cluster.Cert, "ca.key": a.Cluster.Key.Reveal(), "etcd/ca.crt": a.Etcd.Cert, "etcd/ca.key": a.Etcd.Key.Reveal(),
		"front-proxy-ca.crt": a.FrontProxy.Cert, "front-proxy-ca.key": a.FrontProxy.Key.Reveal(),
		"sa.pub": a.ServiceAccount.Cert, "sa.key": a.ServiceAccount.Key.Reveal(),
	}}
	for file, by := range map[string]pki.KeyPair{
		"apiserver.crt": a.Cluster, "apiserver-kubelet-client.crt": a.Cluster, "apiserver-etcd-client.crt": a.Etcd, "front-proxy-client.crt": a.FrontProxy,
	} {
		leaf, err := by.Sign(pki.LeafRequest{CommonName: "x", Usages: []pki.Usage{pki.Client}})
		if err != nil {
			t.Fatal(err)
		}
		d.files[file] = leaf.Cert
	}
	return d
}

func newAuthorities(t *testing.T) pki.Authorities {
	t.Helper()
	a, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRecover(t *testing.T) {
	own, other := newAuthorities(t), newAuthorities(t)
	for name, tc := range map[string]struct {
		change func(*disk)
		want   string
	}{
		"all is there":         {func(*disk) {}, ""},
		"no key":               {func(d *disk) { delete(d.files, "etcd/ca.key") }, "key pair etcd: there is no /etc/kubernetes/pki/etcd/ca.key"},
		"no certificate":       {func(d *disk) { delete(d.files, "ca.crt") }, "key pair ca: there is no /etc/kubernetes/pki/ca.crt"},
		"another's key":        {func(d *disk) { d.files["ca.key"] = other.Cluster.Key.Reveal() }, "does not belong"},
		"another's public key": {func(d *disk) { d.files["sa.pub"] = other.ServiceAccount.Cert }, "does not belong"},
		"a certificate of another's": {func(d *disk) {
			d.files["apiserver.crt"] = controlPlaneDisk(t, other).files["apiserver.crt"]
		}, "/etc/kubernetes/pki/apiserver.crt, which the host uses, is not signed by /etc/kubernetes/pki/ca.crt"},
		"nothing that it has signed": {func(d *disk) { delete(d.files, "front-proxy-client.crt") }, "there is no /etc/kubernetes/pki/front-proxy-client.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			d := controlPlaneDisk(t, own)
			tc.change(d)
			found, err := certs.Recover(t.Context(), d, pki.Names())
			if text := fmt.Sprintf("%v %+v %v", found, found, err) + strings.Join(d.argv, " "); strings.Contains(text, "PRIVATE") {
				t.Errorf("a key is shown: %s", text)
			}
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "node1") {
					t.Errorf("got %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range pki.Names() {
				want, _ := own.Get(name)
				if got, _ := found.Get(name); string(got.Cert) != string(want.Cert) || !got.Key.Equal(want.Key) {
					t.Errorf("%s is another", name)
				}
			}
		})
	}
}
