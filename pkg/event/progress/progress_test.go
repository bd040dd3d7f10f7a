// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/progress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

// story is a run on two hosts, one second per event: one comes to its end, the other fails.
func story() []event.Event {
	events := []event.Event{
		{Type: event.RunStarted, Message: "CreateCluster", Total: 7},
		{Type: event.HostObserved, Host: "node4", Done: 1, Total: 4},
		{Type: event.HostObserved, Host: "node7", Total: 3},
		{Type: event.Skipped, Host: "node4", Step: "sysctl/set"},
		{Type: event.Started, Host: "node4", Step: "containerd/config"},
		{Type: event.Changed, Host: "node4", Step: "containerd/config"},
		{Type: event.Started, Host: "node7", Step: "kubelet/start", Attempt: 1, Attempts: 3},
		{Type: event.Retrying, Host: "node7", Step: "kubelet/start", Attempt: 1, Attempts: 3, Delay: time.Second, Message: "exited 1"},
		{Type: event.Started, Host: "node7", Step: "kubelet/start", Attempt: 2, Attempts: 3},
		{Type: event.Waiting, Step: "await", Message: "api: connection refused"},
		{Type: event.Started, Host: "node4", Step: "images/import"},
		{Type: event.Progress, Host: "node4", Step: "images/import", Done: 50, Total: 200},
		{Type: event.Failed, Host: "node7", Step: "kubelet/start", Message: "swap is on", Err: errors.New("swap is on")},
		{Type: event.Blocked, Host: "node7", Step: "node/labels", Message: "not attempted"},
		{Type: event.Changed, Host: "node4", Step: "images/import"},
		{Type: event.Changed, Host: "node4", Step: "kubelet/start"},
		{Type: event.RunEnded, Message: "2 hosts, 4 of 7 steps as desired", Duration: 17 * time.Second},
	}
	for i := range events {
		events[i].Time = start.Add(time.Duration(i) * time.Second)
		events[i].Pipeline, events[i].Intent = "p1", "CreateCluster"
	}
	return events
}

func tell(o progress.Options) string {
	var b bytes.Buffer
	c := clocktesting.NewFakePassiveClock(start)
	o.Clock = c
	p := progress.New(&b, o)
	for _, e := range story() {
		c.SetTime(e.Time)
		p.Read(e)
	}
	p.Close()
	return b.String()
}

func TestLines(t *testing.T) {
	want := `03:04:01  node4                0/4  observed
03:04:02  node7                0/3  observed
03:04:03  node4                1/4  observed
03:04:05  node4                2/4  containerd/config
03:04:06  node7                0/3  kubelet/start
03:04:07  node7                0/3  again in 1s: exited 1
03:04:08  node7                0/3  kubelet/start, attempt 2 of 3
03:04:09  controller                waiting: api: connection refused
03:04:10  node4                2/4  images/import
03:04:12  node7                0/3  kubelet/start failed: swap is on
03:04:14  node4                3/4  images/import 25 %
03:04:15  node4                4/4  done in 14s
03:04:16  CreateCluster             2 hosts, 4 of 7 steps as desired (17s)
`
	if diff := cmp.Diff(want, tell(progress.Options{})); diff != "" {
		t.Error(diff)
	}
}

func TestLinesAreRare(t *testing.T) {
	got := tell(progress.Options{Every: time.Minute})
	if n := strings.Count(got, "node4"); n != 3 { // observed, one on the way, done
		t.Errorf("node4 has %d lines, want 3:\n%s", n, got)
	}
	if !strings.Contains(got, "swap is on") {
		t.Errorf("the failure is missing:\n%s", got)
	}
}

func TestQuiet(t *testing.T) {
	want := "03:04:12  node7                0/3  kubelet/start failed: swap is on\n"
	if diff := cmp.Diff(want, tell(progress.Options{Mode: progress.Quiet})); diff != "" {
		t.Error(diff)
	}
}

func TestBars(t *testing.T) {
	about := map[string]string{"node4": "control plane", "node7": "worker"}
	got := tell(progress.Options{Mode: progress.Bars, About: func(h string) string { return about[h] }})
	lines := strings.Split(strings.TrimRight(got, "\n"), "\n")
	if len(lines) < 3 {
		t.Fatalf("drew %q", got)
	}
	last := strings.Join(lines[len(lines)-3:], "\n")
	for _, want := range []string{
		"control plane", "████  4/4", "done in 14s", "worker", "0/3", "swap is on", "controller",
	} {
		if !strings.Contains(last, want) {
			t.Errorf("%q is not in what was drawn last:\n%s", want, last)
		}
	}
}

// TestAgain: a host that failed is run again by another run, and its count starts anew.
func TestAgain(t *testing.T) {
	var b bytes.Buffer
	p := progress.New(&b, progress.Options{})
	for _, e := range story() {
		p.Read(e)
	}
	b.Reset()
	p.Read(event.Event{Type: event.HostObserved, Host: "node7", Pipeline: "p2", Done: 0, Total: 1, Time: start})
	p.Read(event.Event{Type: event.Changed, Host: "node7", Pipeline: "p2", Step: "kubelet/start", Time: start.Add(time.Second)})
	p.Close()
	want := "03:04:00  node7                0/1  observed\n03:04:01  node7                1/1  done in 1s\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
