// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lab gives tests what most of them begin with: a directory that a failed test leaves behind, the program and the bundles that
// make builds, and hosts that end with the test and must be what they were once they are reset.
package lab

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// stopping is how long hosts may take to end.
const stopping = 2 * time.Minute

// Lab is hosts, and what they were before anything was done to them.
type Lab struct {
	*hosts.Pool
	// before are the hosts' snapshots, by name.
	before map[string]hosts.Snapshot
}

// Start makes hosts, which end with the test, and records what they are.
func Start(t testing.TB, o hosts.Options) *Lab {
	t.Helper()
	l := &Lab{Pool: Pool(t, o)}
	l.Baseline(t)
	return l
}

// Pool makes hosts, which end with the test. Those of a pool of the same name, which a run that was killed has left, are removed.
func Pool(t testing.TB, o hosts.Options) *hosts.Pool {
	t.Helper()
	must(t, hosts.Remove(t.Context(), o.Name))
	if o.Log == nil {
		o.Log = t.Logf
	}
	pool, err := hosts.Start(t.Context(), o)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopping)
		defer cancel()
		if err := pool.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return pool
}

// SSH is how a host is reached by its user ops, who has sudo.
func SSH(h *hosts.Host) ssh.Config {
	return ssh.Config{
		Name: h.Name, Address: h.Address, Port: int32(h.Port), User: hosts.Ops,
		Auth:    ssh.Auth{Signers: []cryptossh.Signer{h.Signer}},
		HostKey: ssh.HostKey{Pinned: []string{cryptossh.FingerprintSHA256(h.HostKey)}},
	}
}

// Baseline is what the hosts are now: what they must be again.
func (l *Lab) Baseline(t testing.TB) {
	t.Helper()
	before, err := hosts.Snapshots(t.Context(), l.Hosts)
	must(t, err)
	l.before = before
}

// WantReset wants hosts to be what they were; all of them, if none is given.
func (l *Lab) WantReset(t testing.TB, of ...*hosts.Host) {
	t.Helper()
	if len(of) == 0 {
		of = l.Hosts
	}
	now, err := hosts.Snapshots(t.Context(), of)
	must(t, err)
	for _, h := range of {
		differences := hosts.Diff(l.before[h.Name], now[h.Name])
		if len(differences) > 0 {
			// A snapshot of a host under load was seen to miss a line. What really is there is there the next time too.
			t.Logf("host %s is compared once more, because of %q", h.Name, differences)
			again, err := h.Snapshot(t.Context())
			must(t, err)
			differences = hosts.Diff(l.before[h.Name], again)
		}
		for _, d := range differences {
			t.Errorf("host %s is not as it was: %s", h.Name, d)
		}
	}
}

// Named are the hosts of these names.
func (l *Lab) Named(names ...string) []*hosts.Host {
	var of []*hosts.Host
	for _, h := range l.Hosts {
		if slices.Contains(names, h.Name) {
			of = append(of, h)
		}
	}
	return of
}

// Dir is a directory for state and logs, which is left behind when the test fails. It is none of t.TempDir's, which have the test's
// name in them: paths are given in flags and files where commas and slashes mean something.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubexm-lab-")
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("state and logs are left in %s", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Program is the path of kubexm: what the environment variable KUBEXM says, or the one that make builds, for a test that is two
// directories below the root.
func Program(t testing.TB) string {
	t.Helper()
	return absolute(t, cmp.Or(os.Getenv("KUBEXM"), filepath.Join("..", "..", "bin", "kubexm")))
}

// Bundle is the directory of a bundle: what the environment variable says, or the one of this name that make builds, for a test that is
// two directories below the root.
func Bundle(t testing.TB, variable, name string) string {
	t.Helper()
	return absolute(t, cmp.Or(os.Getenv(variable), filepath.Join("..", "..", "build", name)))
}

// Subnet is the one that the environment variable says, or none: hosts then get one that is free.
func Subnet(t testing.TB, variable string) netip.Prefix {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return netip.Prefix{}
	}
	subnet, err := netip.ParsePrefix(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return subnet
}

func absolute(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	must(t, err)
	return path
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
