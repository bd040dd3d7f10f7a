// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package ssh

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/hosttest"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// TestPackagesSimulatedRPM installs and removes packages by dnf and rpm, cut at each boundary, on a host of the Red Hat family that
// programs of Debian simulate.
func TestPackagesSimulatedRPM(t *testing.T) {
	pool, err := hosts.Start(t.Context(), hosts.Options{
		Name: fmt.Sprintf("hosttest-rpm-%d", os.Getpid()), Count: 1, System: hosts.SimulatedRPM, Log: t.Logf,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	h := pool.Hosts[0]
	c := Config{
		Name: h.Name, Address: h.Address, Port: int32(h.Port), User: hosts.Ops,
		Auth: Auth{Signers: []ssh.Signer{h.Signer}}, HostKey: HostKey{Pinned: []string{ssh.FingerprintSHA256(h.HostKey)}},
	}
	root := c
	root.User = hosts.Root
	helper := connect(t, root)
	var cut atomic.Int64
	c.cut = func() int { return int(cut.Load()) }
	hosttest.RunPackages(t, func(t *testing.T) hosttest.Fixture {
		f := hosttest.Shell(hosttest.Fixture{
			Dial: func(t *testing.T) host.Host { return connect(t, c) },
			Dir:  "/srv/hosttest", Packages: []string{"jq", "libjq", "oniguruma"},
			CutAt: func(n int) { cut.Store(int64(n)) },
		}, helper)
		return f
	})
}
