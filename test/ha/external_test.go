// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// externalEtcd runs an etcd that is none of the cluster's own: on this machine, which hosts reach at the first address of their
// network. Its authority's certificate, and a client's, are ca.crt, client.crt and client.key in the cluster's directory.
func (c *cluster) externalEtcd(t *testing.T) (url string) {
	t.Helper()
	network, err := netip.ParseAddr(c.lab.Hosts[0].Address)
	if err != nil {
		t.Fatal(err)
	}
	prefix, err := network.Prefix(24)
	if err != nil {
		t.Fatal(err)
	}
	address := prefix.Masked().Addr().Next()
	ca, err := pki.NewCA(pki.CARequest{CommonName: "others-etcd", Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	c.put(t, "ca.crt", ca.Cert)
	for name, request := range map[string]pki.LeafRequest{
		"server": {CommonName: "etcd", IPs: []netip.Addr{address}, Usages: []pki.Usage{pki.Server, pki.Client}},
		"client": {CommonName: "kubernetes", Usages: []pki.Usage{pki.Client}},
	} {
		pair, err := ca.Sign(request)
		if err != nil {
			t.Fatal(err)
		}
		c.put(t, name+".crt", pair.Cert)
		c.put(t, name+".key", pair.Key.Reveal())
	}
	bundle, err := artifact.Open(t.Context(), c.Bundle, nil)
	if err != nil {
		t.Fatal(err)
	}
	program, err := bundle.Binary("etcd", "", runtime.GOARCH, "etcd")
	if err != nil {
		t.Fatal(err)
	}
	url = "https://" + address.String() + ":2379"
	// It ends after all else, so not by the test's own context.
	cmd := exec.CommandContext(context.Background(), program.Path, "--data-dir", filepath.Join(c.Dir, "etcd"),
		"--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", "http://127.0.0.1:0", "--client-cert-auth", "--trusted-ca-file", filepath.Join(c.Dir, "ca.crt"),
		"--cert-file", filepath.Join(c.Dir, "server.crt"), "--key-file", filepath.Join(c.Dir, "server.key"))
	log, err := os.Create(filepath.Join(c.Dir, "etcd.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended if that fails
		_ = cmd.Wait()
		_ = log.Close()
	})
	return url
}

func (c *cluster) put(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.Dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}
