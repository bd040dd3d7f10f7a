// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	// childTimeout is more than any child takes that is not stuck.
	childTimeout = 10 * time.Minute
	// randomRounds follow the visit of every boundary.
	randomRounds = 5
	// sampleChance is how likely a boundary is visited in a random round.
	sampleChance = 0.2
)

// A process that dies at any boundary of any step, or within it, is followed by one that takes up where the hosts stand. One
// cluster is created, and deleted, by as many processes as there are boundaries: each dies at the first that none
// before it has died at.
//
// With a budget, random rounds alone are made, as many as fit into their share of it.
func TestKill(t *testing.T) {
	if chosen.budget == 0 {
		t.Run("EveryBoundary", func(t *testing.T) { killRound(t, subject, chosen.seed, 1) })
		t.Run("EveryBoundaryOfOwnHosts", func(t *testing.T) { killRound(t, ownHosts(), chosen.seed, 1) })
	}
	seeds := rand.New(rand.NewPCG(chosen.seed, 0))
	start := time.Now()
	for round := 1; ; round++ {
		began := time.Now()
		t.Run(fmt.Sprintf("Random%d", round), func(t *testing.T) { killRound(t, subject, seeds.Uint64(), sampleChance) })
		spent, last := time.Since(start), time.Since(began)
		if t.Failed() || chosen.budget == 0 && round == randomRounds || chosen.budget > 0 && spent+last > chosen.share() {
			return
		}
	}
}

// ownHosts is a cluster in which etcd and the load balancer have hosts of their own.
func ownHosts() *cluster {
	names := all.names()
	first := all.hosts[0].Address
	return all.of(spec.Cluster{
		Etcd:                 spec.Etcd{Type: spec.EtcdKubexm, Hosts: spec.Hosts{Names: names[1:2]}},
		ControlPlaneEndpoint: spec.ControlPlaneEndpoint{Address: first[:strings.LastIndex(first, ".")] + ".250"},
		LoadBalancer: spec.LoadBalancer{
			Type: spec.LoadBalancerKeepalived, Keepalived: spec.Keepalived{Hosts: spec.Hosts{Names: names[2:3]}},
		},
	}, spec.RoleControlPlane, spec.RoleEtcd, spec.RoleLoadBalancer)
}

// killRound creates a cluster and resets it, being killed on the way.
func killRound(t *testing.T, c *cluster, seed uint64, chance float64) {
	tr := newTrialOf(t, c)
	p := tr.plan(len(c.hosts))
	if err := c.writePlan(p); err != nil {
		t.Fatal(err)
	}
	visited := tr.dieAndGoOn(order{Verb: create, Seed: seed, Chance: chance}, nil)
	if chance == 1 {
		// Where steps begin, before, within and after: fewer would mean that somebody was not killed who should have been.
		if nodes := p.Graph().Len(); len(visited) < nodes {
			t.Errorf("only %d children died, for %d steps", len(visited), nodes)
		}
	}
	tr.demandConverged(p)
	tr.dieAndGoOn(order{Verb: reset, Hosts: c.names(), Seed: seed, Chance: chance}, nil)
	tr.demandReset()
}

// dieAndGoOn has children do what is ordered until one comes to its end, and returns where the others died. What holds at every
// boundary, between checks, if it is not nil.
func (tr *trial) dieAndGoOn(o order, between func()) (visited []string) {
	tr.Helper()
	o.Dir, o.Bundle = tr.cluster.dir, tr.cluster.bundle.Dir()
	start := time.Now()
	for {
		began := time.Now()
		o.Visited = visited
		where, err := runChild(tr.Context(), o)
		if err != nil {
			tr.Fatalf("%s, after %d kills, the last at %q: %v", o.Verb, len(visited), last(visited), err)
		}
		if where == "" {
			tr.Logf("%s: %d kills, %s", o.Verb, len(visited), time.Since(start).Round(time.Second))
			return visited
		}
		tr.Logf("%s: killed %s, %s", o.Verb, where, time.Since(began).Round(10*time.Millisecond))
		visited = append(visited, where)
		if between != nil {
			between()
		}
	}
}

func last(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// runChild runs a child and returns where it killed itself; "" when it came to its end. The error of one that failed has the
// end of its log.
func runChild(ctx context.Context, o order) (where string, err error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	input, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, childTimeout)
	defer cancel()
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &log
	out, err := cmd.Output()
	where = strings.TrimSpace(string(out))
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case ctx.Err() == nil && where != "" && errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
		return where, nil
	}
	return "", fmt.Errorf("%w\n%s", errors.Join(err, ctx.Err()), tail(log.String(), 40))
}

func tail(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}
