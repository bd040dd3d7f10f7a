// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package step_test

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

var pool *hosts.Pool

func TestMain(m *testing.M) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var err error
	pool, err = hosts.Start(ctx, hosts.Options{Name: fmt.Sprintf("steps-%d", os.Getpid()), Count: 1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := pool.Stop(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func TestStepsOnHost(t *testing.T) {
	h := pool.Hosts[0]
	testSteps(t, &rig{
		dial: func(ctx context.Context) (host.Host, error) {
			return ssh.Dial(ctx, lab.SSH(h))
		},
		put: func(t *testing.T, name, content string) {
			t.Helper()
			cmd := h.Command(t.Context(), "sh", "-ec", `mkdir -p "$1"; umask 022; rm -f "$2"; cat >"$2"`, "sh", path.Dir(name), name)
			cmd.Stdin = strings.NewReader(content)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("put %s: %v: %s", name, err, out)
			}
		},
		real: true,
	})
}
