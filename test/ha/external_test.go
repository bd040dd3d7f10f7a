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
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
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
	lab.EtcdFiles(t, c.Dir, address)
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
	cmd := exec.CommandContext(context.Background(), program.Path, lab.EtcdFlags(url, filepath.Join(c.Dir, "etcd"), c.Dir)...)
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
