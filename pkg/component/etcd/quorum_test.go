// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package etcd_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/quorum"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// view is what etcd says of its members when its host is observed.
func (p *process) view() (quorum.View, error) {
	p.t.Helper()
	q := quorum.Query(p.settings.Name, p.address).Commands[0]
	var stdout, stderr bytes.Buffer
	cmd := p.command(p.t.Context(), q.Argv)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	return quorum.In(&host.Facts{Commands: map[string]host.Result{
		q.ID: {ExitCode: cmd.ProcessState.ExitCode(), Stdout: stdout.Bytes(), Stderr: stderr.Bytes()},
	}})
}

// TestLookAtMembers: each member tells of all, of a learner that has never started and of an alarm; and nothing where it does not run,
// or has no quorum.
func TestLookAtMembers(t *testing.T) {
	t.Parallel()
	all := processes(t, 2, spec.Etcd{QuotaBackendBytes: 16 << 20})
	n1, n2 := all[0], all[1]
	if _, err := n1.view(); err == nil || !strings.Contains(err.Error(), "nothing listens") {
		t.Errorf("before it runs: %v", err)
	}
	for _, p := range all {
		p.must(p.member(), firstRun)
	}
	began := time.Now()
	seen, err := n2.view()
	if err != nil || len(seen.Members) != 2 || len(seen.Alarms) != 0 || seen.Own != n2.record()[2] || seen.Cluster != n2.record()[1] {
		t.Fatalf("n2 sees %+v: %v", seen, err)
	}
	if seen.At.Before(began.Add(-time.Second)) || seen.At.After(time.Now()) {
		t.Errorf("it was asked at %s, and it is %s", seen.At, began)
	}
	for i, m := range seen.Members {
		if p := all[i]; m.Name != p.settings.Name && m.Name != all[1-i].settings.Name || m.Learner {
			t.Errorf("a member is %+v", m)
		}
	}
	for full := false; !full; {
		said, err := n1.put1MiB()
		full = err != nil && strings.Contains(said, "database space exceeded")
	}
	for added := false; !added; { // etcd wants its members connected for some seconds before
		said, err := n1.tryCtl("member", "add", "n9", "--learner", "--peer-urls=https://127.77.255.1:2380")
		if added = err == nil; !added && !strings.Contains(said, "unhealthy cluster") {
			t.Fatal(said)
		}
	}
	if seen, err = n1.view(); err != nil || len(seen.Members) != 3 || len(seen.Alarms) == 0 || seen.Alarms[0].Type != "NOSPACE" {
		t.Fatalf("full, with a learner, n1 sees %+v: %v", seen, err)
	}
	learners := 0
	for _, m := range seen.Members {
		if m.Learner && m.Name == "" && quorum.Address(m.PeerURL) == "127.77.255.1" {
			learners++
		}
	}
	if learners != 1 {
		t.Errorf("the learner is not among %+v", seen.Members)
	}
	n1.stop()
	if seen, err := n2.view(); err == nil || !strings.Contains(err.Error(), "no quorum") || len(seen.Members) != 0 {
		t.Errorf("without quorum n2 sees %+v: %v", seen, err)
	}
}
