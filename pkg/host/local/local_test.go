// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"sync/atomic"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/hosttest"
)

// TestConformance makes changes to files, in a directory of this machine, with a state directory of its own. What needs a
// machine to itself runs on a test host (see hosts_test.go). It must run as root, because files belong to root.
func TestConformance(t *testing.T) {
	hosttest.Run(t, func(t *testing.T) hosttest.Fixture {
		state, work := t.TempDir()+"/state", t.TempDir()
		var cut atomic.Int64
		config := Config{Name: "here", stateDir: state, cut: func() int { return int(cut.Load()) }}
		return hosttest.Shell(hosttest.Fixture{
			Dial:  func(t *testing.T) host.Host { return newHost(t, config) },
			CutAt: func(n int) { cut.Store(int64(n)) },
			Dir:   work, StateDir: state, Owner: "nobody", Group: "nogroup", FilesOnly: true, Parallel: true,
		}, newHost(t, Config{Name: "here"}))
	})
}

func newHost(t *testing.T, c Config) host.Host {
	t.Helper()
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}
