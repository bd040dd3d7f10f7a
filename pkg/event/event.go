// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package event is the one stream in which everything that happens in a run is reported. The CLI's progress, conditions and
// events of objects, the JSON log, Prometheus metrics and tests are its readers; each is a Reader in a file or package of
// its own, and none of them is known to the engine.
package event

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Type says what happened.
type Type string

// The types, in the order in which a node meets them.
const (
	// RunStarted opens the stream; Message is the plan's intent.
	RunStarted Type = "RunStarted"
	// HostObserved: a host answered; Total is how many nodes it has, Done how many are so already. Duration is the exchange.
	HostObserved Type = "HostObserved"
	// Started: an attempt at a node begins.
	Started Type = "Started"
	// Progress: within a node; Done of Total (bytes or items).
	Progress Type = "Progress"
	// Waiting: a gate looked and its condition does not hold yet, or a step may be made on no host more at present; Message says
	// what is missing.
	Waiting Type = "Waiting"
	// Skipped: the desired state was met already.
	Skipped Type = "Skipped"
	// Changed: the node ran and was verified.
	Changed Type = "Changed"
	// Retrying: an attempt failed and another follows after Delay.
	Retrying Type = "Retrying"
	// Failed: the node failed for good. Err is the cause.
	Failed Type = "Failed"
	// Blocked: not attempted, because something upstream failed; Message names the root cause's node.
	Blocked Type = "Blocked"
	// Undone: one change of the node was undone.
	Undone Type = "Undone"
	// RunEnded closes the stream.
	RunEnded Type = "RunEnded"
)

// Event is one thing that happened. Its fields and their names are those of the JSON log.
type Event struct {
	Time time.Time
	Type Type
	// Pipeline is the run's id, Intent the pipeline's name ("CreateCluster").
	Pipeline, Intent string
	// Cluster is the cluster's name, Holder who runs the pipeline, as hosts name it to others ("kubexm 4711@laptop").
	Cluster, Holder string
	// Plan is the plan's digest ("sha256:…"), Hosts are its hosts: of RunStarted and RunEnded alone. A run without a plan has no digest.
	Plan  string
	Hosts []string
	// Module, Task and Step place a node; Node is its plan-wide ID.
	Module, Task, Step, Node string
	// Host is the host's name, "" for the controller.
	Host string
	// Message is one line for a person, without secrets.
	Message string
	// Duration of what ended: the exchange, the node, the run.
	Duration time.Duration
	// Attempt counts from 1; Attempts is the limit.
	Attempt, Attempts int
	// Delay before the next attempt.
	Delay time.Duration
	// Done of Total: for HostObserved nodes that are so of its nodes (in an undo, Total is how many changes are recorded);
	// for Progress bytes or items; for Started and Failed the node's position among its host's; for Undone changes
	// restored; for RunStarted (Total alone) and RunEnded nodes changed of nodes in all.
	Done, Total int64
	// Err is why, for Retrying, Failed, Undone and RunEnded; it is what errors.As works on.
	Err error
}

// String is the event in one line for a person: where, what, why.
func (e Event) String() string {
	var b strings.Builder
	b.WriteString(e.Place())
	b.WriteString(" " + string(e.Type))
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (attempt %d of %d)", e.Attempt, e.Attempts)
	}
	if e.Duration > 0 {
		fmt.Fprintf(&b, " %s", e.Duration.Round(time.Millisecond))
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	return b.String()
}

// Place says where the event happened: the run, or the host (or "controller") and the step.
func (e Event) Place() string {
	place := e.Host
	switch {
	case e.Host == "" && e.Step == "":
		return e.Intent
	case e.Host == "":
		place = "controller"
	}
	if e.Step != "" {
		place += " " + e.Task + " " + e.Step
	}
	return place
}

// Reader takes events, one after the other, in order. It must not block for long: the run waits for it.
type Reader interface{ Read(Event) }

// ReaderFunc is a function as a Reader.
type ReaderFunc func(Event)

// Read calls f.
func (f ReaderFunc) Read(e Event) { f(e) }

// Readers gives each event to each reader in turn. It passes over those that are nil.
func Readers(rs ...Reader) Reader {
	rs = slices.DeleteFunc(slices.Clone(rs), func(r Reader) bool { return r == nil })
	return ReaderFunc(func(e Event) {
		for _, r := range rs {
			r.Read(e)
		}
	})
}
