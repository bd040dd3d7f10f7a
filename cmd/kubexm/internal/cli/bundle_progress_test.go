// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
)

// TestMakingIsNeverSilent: while something compiles for minutes, a line every ten seconds says what.
func TestMakingIsNeverSilent(t *testing.T) {
	began := time.Unix(0, 0)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	var lines []string
	m := newMaking(began, func(line string) { lines = append(lines, line) })
	m.beat(at(30)) // nothing is under way
	etcd := artifact.Event{Component: "etcd", Version: "v3", Arch: "amd64", Phase: "compiling", M: 200, Total: 2}
	runc := artifact.Event{Component: "runc", Version: "v1", Arch: "amd64", Phase: "fetching modules", Total: 2}
	m.event(etcd, at(31))
	m.event(runc, at(32))
	etcd.N = 50
	m.event(etcd, at(40))
	m.beat(at(41))
	m.beat(at(42))
	m.beat(at(51))
	m.beat(at(52))
	runc.Phase, runc.Elapsed, runc.Finished, etcd.Finished = artifact.PhaseDone, 21*time.Second, 1, 1
	m.event(runc, at(53))
	etcd.N = 190
	m.event(etcd, at(55))
	m.beat(at(63))
	etcd.Phase, etcd.Finished = artifact.PhaseCached, 2
	m.event(etcd, at(64))
	m.beat(at(90))
	want := `
 31.0 s   0/2  etcd v3 amd64                      compiling
 32.0 s   0/2  runc v1 amd64                      fetching modules
 42.0 s   0/2  etcd v3 amd64 compiling 25 %, runc v1 amd64 fetching modules
 52.0 s   0/2  etcd v3 amd64 compiling 25 %, runc v1 amd64 fetching modules
 53.0 s   1/2  runc v1 amd64                      done in 21.0 s
  1m03s   1/2  etcd v3 amd64 compiling 95 %
  1m04s   2/2  etcd v3 amd64                      cached
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), strings.Join(lines, "\n")+"\n"); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
