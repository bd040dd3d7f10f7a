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
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/hosttest"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

const sudoPassword = "Tr0ub4dor&3 'x\""

// pool has three hosts: the one under test, one to jump over, and one more for an account of its own.
var pool *hosts.Pool

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "hosttest-ssh") // for OpenSSH, which wants files
	if err == nil {
		defer os.RemoveAll(dir)
		pool, err = hosts.Start(ctx, hosts.Options{Name: fmt.Sprintf("hosttest-ssh-%d", os.Getpid()), Count: 3, SudoPassword: sudoPassword, Dir: dir})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := pool.Stop(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// config is how user reaches the first host of the pool.
func config(user string) Config { return configOf(0, user) }

// configOf is how user reaches the host of the pool.
func configOf(i int, user string) Config {
	h := pool.Hosts[i]
	return Config{
		Name: h.Name, Address: h.Address, Port: int32(h.Port), User: user,
		Auth: Auth{Signers: []ssh.Signer{h.Signer}}, HostKey: HostKey{Pinned: []string{ssh.FingerprintSHA256(h.HostKey)}},
	}
}

func connect(t *testing.T, c Config) *Host {
	t.Helper()
	h, err := Dial(context.WithoutCancel(t.Context()), c) // cleanups dial, too
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func TestConformance(t *testing.T) {
	for i, account := range []struct {
		user, password string
		cuts           bool
	}{{hosts.Ops, "", true}, {hosts.Root, "", false}, {hosts.SudoPW, sudoPassword, false}} {
		t.Run(account.user, func(t *testing.T) {
			t.Parallel() // each has a host of its own
			helper := connect(t, configOf(i, hosts.Root))
			hosttest.Run(t, func(t *testing.T) hosttest.Fixture {
				var cut atomic.Int64
				c := configOf(i, account.user)
				c.SudoPassword = secret.New(account.password)
				c.cut = func() int { return int(cut.Load()) }
				const dir = "/srv/hosttest"
				f := hosttest.Shell(hosttest.Fixture{
					Dial: func(t *testing.T) host.Host { return connect(t, c) },
					Dir:  dir, Owner: hosts.NoSudo, Group: hosts.NoSudo, Sysctl: "net.ipv4.ip_forward", Machine: true,
				}, helper)
				if account.cuts {
					// The scripts are those of the local host, which is cut more often. Here a cut must come through sshd and sudo.
					f.CutEvery = 12
					f.CutAt = func(n int) { cut.Store(int64(n)) }
				}
				f.Remove(t, dir)
				f.Put(t, dir+"/x", "", 0o644)
				f.Remove(t, dir+"/x")
				return f
			})
		})
	}
}
