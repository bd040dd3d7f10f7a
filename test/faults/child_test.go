// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event/jsonlog"
)

// childVariable makes the test binary a child.
const childVariable = "FAULTS_CHILD"

// order is what a child does, as JSON on its standard input. It logs to standard error.
type order struct {
	Dir, Bundle string
	// Verb is create, for the plan in Dir, or reset, for Hosts.
	Verb  string
	Hosts []string
	// Visited are the boundaries at which an earlier child has ended; this one ends at another.
	Visited []string
	// Seed and Chance decide at which of the others; with a chance of 1, at the first.
	Seed   uint64
	Chance float64
}

// child does what it is ordered to and kills itself on the way. Where, is the line on its standard output.
func child() int {
	if err := obey(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func obey() error {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return err
	}
	ctx := context.Background()
	c, err := openCluster(ctx, o.Dir, o.Bundle)
	if err != nil {
		return err
	}
	reader := event.Readers(jsonlog.New(os.Stderr), &killer{order: o, out: os.Stdout, timers: map[string]*time.Timer{}})
	switch o.Verb {
	case create:
		p, err := c.readPlan()
		if err != nil {
			return err
		}
		_, err = engine.New(c.options(reader)).Run(ctx, p)
		return err
	case reset:
		_, err = c.resetHosts(ctx, reader, o.Hosts)
		return err
	}
	return fmt.Errorf("unknown verb %q", o.Verb)
}

const (
	create = "create"
	reset  = "reset"
)

// killer ends its process at boundaries of the run, as its order says.
type killer struct {
	order
	out    io.Writer
	mu     sync.Mutex
	timers map[string]*time.Timer // of what is under way: a node, or the undo of a host
}

// Read dies, or sets the time to.
func (k *killer) Read(ev event.Event) {
	switch ev.Type {
	case event.RunStarted:
		k.at("start")
	case event.HostObserved:
		k.at("seen " + ev.Host)
		if k.Verb == reset && ev.Total > 0 {
			k.within("undo of " + ev.Host)
		}
	case event.Started:
		if ev.Attempt == 1 {
			k.at("before " + ev.Node)
			k.within(ev.Node)
		}
	case event.Changed, event.Failed:
		k.through(ev.Node)
		if ev.Type == event.Changed {
			k.at("after " + ev.Node)
		}
	case event.Undone:
		k.at("undone " + ev.Host + " " + ev.Message)
	case event.RunEnded:
		if ev.Err == nil {
			k.at("end")
		}
	}
}

// at is a boundary.
func (k *killer) at(boundary string) {
	if r := k.random(boundary); k.wants(boundary, r) {
		k.die(boundary)
	}
}

// within has the process die while something is under way, sooner or later: after 1 ms to 10 s, each order of magnitude
// being as likely as the others.
func (k *killer) within(what string) {
	boundary := "within " + what
	r := k.random(boundary)
	if !k.wants(boundary, r) {
		return
	}
	delay := time.Duration(float64(time.Millisecond) * math.Pow(10, 4*r.Float64()))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timers[what] = time.AfterFunc(delay, func() { k.die(boundary) })
}

func (k *killer) through(what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.timers[what]; t != nil {
		t.Stop()
	}
}

// random decides about a boundary. It depends on the seed and the boundary alone, not on what happened before.
func (k *killer) random(boundary string) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, boundary)
	return rand.New(rand.NewPCG(k.Seed, h.Sum64()))
}

func (k *killer) wants(boundary string, r *rand.Rand) bool {
	return r.Float64() < k.Chance && !slices.Contains(k.Visited, boundary)
}

// die does not return. Nothing is closed, flushed or said to anybody.
func (k *killer) die(boundary string) {
	k.mu.Lock() // for good: only one can be the last boundary
	_, _ = fmt.Fprintln(k.out, boundary)
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {}
}
