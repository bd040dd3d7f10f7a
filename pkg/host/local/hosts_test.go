// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/hosttest"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// onHost says, in the environment, that we are the test binary on a test host.
const onHost = "KUBEXM_TEST_ON_HOST"

// TestOnHost carries this test binary to a test host and runs the suite there, as root and as a user with sudo.
func TestOnHost(t *testing.T) {
	if os.Getenv(onHost) != "" {
		testWholeMachine(t)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
	defer cancel()
	pool, err := hosts.Start(ctx, hosts.Options{Name: fmt.Sprintf("hosttest-local-%d", os.Getpid()), Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := pool.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	machine := pool.Hosts[0]
	const binary = "/usr/local/bin/local.test"
	copying := machine.Command(ctx, "sh", "-c", "cat >"+binary+" && chmod 0755 "+binary)
	copying.Stdin = open(t)
	if out, err := copying.CombinedOutput(); err != nil {
		t.Fatalf("copy the test: %v: %s", err, out)
	}
	for _, user := range []string{hosts.Root, hosts.Ops} {
		t.Run(user, func(t *testing.T) {
			run := fmt.Sprintf("cd /tmp && env %s=%s %s -test.run '^TestOnHost$' -test.v -test.timeout 12m", onHost, user, binary)
			out, err := machine.Command(ctx, "su", user, "-c", run).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: TestOnHost") {
				t.Errorf("on the host: %v\n%s", err, out)
			}
		})
	}
}

func open(t *testing.T) io.Reader {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// testWholeMachine is the suite, on a machine that is ours. What belongs to a machine is cut by root at every third boundary
// (each cut takes seconds: units start and stop); files are at each, by TestConformance, and each kind now and then over SSH.
func testWholeMachine(t *testing.T) {
	helper := newHost(t, Config{})
	var cut atomic.Int64
	config := Config{cut: func() int { return int(cut.Load()) }}
	hosttest.Run(t, func(t *testing.T) hosttest.Fixture {
		const dir = "/srv/hosttest"
		f := hosttest.Shell(hosttest.Fixture{
			Dial: func(t *testing.T) host.Host { return newHost(t, config) },
			Dir:  dir, Owner: hosts.NoSudo, Group: hosts.NoSudo, Sysctl: "net.ipv4.ip_forward", Machine: true, CutSystemOnly: true,
		}, helper)
		if os.Getenv(onHost) == hosts.Root {
			f.CutEvery = 3
			f.CutAt = func(n int) { cut.Store(int64(n)) }
		}
		f.Remove(t, dir)
		f.Put(t, dir+"/x", "", 0o644)
		f.Remove(t, dir+"/x")
		return f
	})
}
