// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/jsonlog"
)

// What is read from the program's log says what events say, and time that is spent twice counts once.
func TestSteps(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var told steps
	var log bytes.Buffer
	reader := event.Readers(&told, jsonlog.New(&log))
	for _, e := range []struct {
		kind     event.Type
		step     string
		from, to int
	}{
		{event.HostObserved, "", 0, 2},
		{event.Started, "containerd/images", 10, 10},
		{event.Changed, "gate/api", 1, 30}, // of it, 5 to 10 and 25 to 30 alone
		{event.Changed, "containerd/programs", 1, 5},
		{event.Changed, "containerd/images", 10, 20},
		{event.Changed, "gate/token", 20, 25},
		{event.Changed, "kubeadm/control-plane", 12, 18},
		{event.Skipped, "kubelet/unit", 26, 26},
		{event.Failed, "kubeadm/join", 40, 45},
		{event.Changed, "gate/node-n1", 44, 48},
	} {
		reader.Read(event.Event{
			Type: e.kind, Step: e.step, Time: began.Add(time.Duration(e.to) * time.Second),
			Duration: time.Duration(e.to-e.from) * time.Second,
		})
	}
	read, err := readSteps(&log)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]steps{"events": told, "log": read} {
		doing, waiting := s.split()
		if doing != 20*time.Second || waiting != 18*time.Second {
			t.Errorf("%s: %s of doing and %s of waiting", name, doing, waiting)
		}
	}
	want := "gate/api 29.0 s, containerd/images 10.0 s, kubeadm/control-plane 6.0 s, gate/token 5.0 s, kubeadm/join 5.0 s, " +
		"containerd/programs 4.0 s, gate/node-n1 4.0 s, look 2.0 s"
	if got := read.longest(); got != want {
		t.Errorf("longest: %s", got)
	}
}

// Each round is a line that benchstat reads.
func TestAsBenchmarks(t *testing.T) {
	got := string(asBenchmarks([]measurement{{name: "settings/first", unit: "s"}, {name: "send/delayed", unit: "MB/s"}}, map[string]map[side][]float64{
		"settings/first": {ours: {2.5, 2.75}, reference: {2.5}}, "send/delayed": {ours: {154}},
	}))
	want := "Benchmark/settings/first/of=ours 1 2.5 s\nBenchmark/settings/first/of=ours 1 2.75 s\n" +
		"Benchmark/settings/first/of=reference 1 2.5 s\nBenchmark/send/delayed/of=ours 1 154 MB/s\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
