// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
)

// steps are when steps ran, and when hosts were observed, as events tell.
type steps []span

// span is one of them. A step's name is "" for a look.
type span struct {
	step     string
	from, to time.Time
}

// Read takes an event of a run.
func (s *steps) Read(e event.Event) { s.add(e.Type, e.Step, e.Time, e.Duration) }

func (s *steps) add(t event.Type, step string, at time.Time, took time.Duration) {
	switch t {
	case event.Changed, event.Failed, event.HostObserved:
		*s = append(*s, span{step, at.Add(-took), at})
	}
}

// readSteps reads the log that the program writes.
func readSteps(log io.Reader) (steps, error) {
	var s steps
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Timestamp  time.Time  `json:"timestamp"`
			Step       string     `json:"step"`
			Event      event.Type `json:"event"`
			DurationMS int64      `json:"duration_ms"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("log of events: %w: %s", err, lines.Text())
		}
		s.add(line.Event, line.Step, line.Timestamp, time.Duration(line.DurationMS)*time.Millisecond)
	}
	return s, lines.Err()
}

// waits reports whether a step does nothing but wait for the cluster, or little else: kubeadm writes certificates and
// manifests in a second or two, and waits then for the kubelet, etcd and the API server.
func (s span) waits() bool {
	for _, gate := range []string{
		"gate/api", "gate/node-", "gate/network-", "gate/version", "node/drain", "kubernetes/ready", "kubeadm/control-plane", "kubeadm/join",
	} {
		if strings.HasPrefix(s.step, gate) {
			return true
		}
	}
	return false
}

// split says for how long something was done on a host or in the cluster, and for how long there was nothing but waiting.
func (s steps) split() (doing, waiting time.Duration) {
	doing = slices.DeleteFunc(slices.Clone(s), span.waits).covered()
	return doing, s.covered() - doing
}

// covered is how long at least one of them went on.
func (s steps) covered() time.Duration {
	var all time.Duration
	var to time.Time
	for _, one := range slices.SortedFunc(slices.Values(s), func(a, b span) int { return a.from.Compare(b.from) }) {
		from := one.from
		if from.Before(to) {
			from = to
		}
		if one.to.After(from) {
			all += one.to.Sub(from)
			to = one.to
		}
	}
	return all
}

// longest are the steps on which the most time went, on all hosts together.
func (s steps) longest() string {
	took := map[string]time.Duration{}
	for _, one := range s {
		took[cmp.Or(one.step, "look")] += one.to.Sub(one.from)
	}
	var names []string
	for name := range took {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(took[b], took[a]), cmp.Compare(a, b)) })
	var said []string
	for _, name := range names[:min(len(names), 10)] {
		said = append(said, fmt.Sprintf("%s %.1f s", name, took[name].Seconds()))
	}
	return strings.Join(said, ", ")
}
