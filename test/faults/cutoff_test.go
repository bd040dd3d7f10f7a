// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// Of three control plane hosts the second is cut off when etcd expects it and has not seen it. Anyone who would join meanwhile is
// told whom etcd waits for and what to do if they stay away, etcd keeps its quorum, and both join when the line is back.
func (m *members) secondJoinsWhileFirstIsCutOff() {
	m.bring(1)
	nodes := m.nodes(3)
	first, second, third := m.hosts[0], m.hosts[1], m.hosts[2]
	const member = "etcd/etcd/etcd/member"

	// The third is prepared, so that the second need not be away for long.
	later := m.join(nodes[2])
	m.runUntilOn(third, m.cluster.options(nil), later, "etcd/etcd/etcd/certificates")

	let := m.holdEtcd(second)
	cutOff := engine.New(m.cluster.options(nil)).Start(m.Context(), m.join(nodes[1]))
	m.await(cutOff, func(ev event.Event) bool { return ev.Node == second.Name+"/"+member && ev.Type == event.Started })
	learner := second.Address + "*"
	m.eventually(func() error {
		now, err := m.etcdMembers()
		if err == nil && !slices.Contains(now, learner) {
			err = fmt.Errorf("the members of etcd are %v, and %s is not among them", now, learner)
		}
		return err
	})
	m.Cleanup(func() {
		if err := second.Connect(context.WithoutCancel(m.Context())); err != nil {
			m.Error(err)
		}
	})
	if err := second.Disconnect(m.Context()); err != nil {
		m.Fatal(err)
	}
	let()
	m.await(cutOff, func(ev event.Event) bool { return ev.Host == second.Name && ev.Type == event.Retrying })

	joins := engine.New(m.cluster.options(nil)).Start(m.Context(), later)
	told := m.await(joins, func(ev event.Event) bool {
		return ev.Node == third.Name+"/"+member && ev.Type != event.Started && ev.Type != event.Progress
	})
	var refused *host.Error
	if told.Type != event.Retrying || !errors.As(told.Err, &refused) {
		m.Fatalf("%s is not refused for now: %s", third.Name, told)
	}
	m.Log(refused.Output)
	for _, want := range []string{second.Name, "bring it back", "take its host out of the cluster"} {
		if !strings.Contains(refused.Output, want) {
			m.Errorf("%s is not told %q", third.Name, want)
		}
	}
	m.demandQuorum()
	m.demandMembers(first.Name, learner)

	if err := second.Connect(m.Context()); err != nil {
		m.Fatal(err)
	}
	for name, run := range map[string]*engine.Run{second.Name: cutOff, third.Name: joins} {
		if _, err := run.Wait(); err != nil {
			m.Errorf("%s has not joined: %v", name, err)
		}
	}
	m.count = 3
	m.demandWhole()
}

// await is the first event that is so. It fails the test if the run ends without one.
func (m *members) await(run *engine.Run, is func(event.Event) bool) event.Event {
	m.Helper()
	for ev := range run.Events() {
		if is(ev) {
			return ev
		}
	}
	_, err := run.Wait()
	m.Fatalf("the run ended before it came to that: %v", err)
	return event.Event{}
}

// holdEtcd keeps etcd on a host from being started until let is called.
func (m *members) holdEtcd(h *hosts.Host) (let func()) {
	m.Helper()
	const dropIn, flag = "/run/systemd/system/etcd.service.d", "/run/faults-hold"
	m.exec(h, "sh", "-euc", `mkdir -p "$0"
touch "$1"
cat >"$0/hold.conf" <<END
[Service]
ExecStartPre=/bin/sh -c 'while [ -e $1 ]; do sleep 0.1; done'
END`, dropIn, flag)
	let = func() { m.exec(h, "sh", "-euc", `rm -rf "$0" "$1"; systemctl daemon-reload`, dropIn, flag) }
	m.Cleanup(let)
	return let
}
