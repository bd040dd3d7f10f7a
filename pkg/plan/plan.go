// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan is the work to be done as data: which step on which host, in which task of which module, after what. A
// plan is made by a pipeline (package pipeline) from a specification and facts, without touching anything; it is
// printed, compared, written to a file, read back and run (package engine).
//
// It also holds the words that pipeline, module and task share: a Task is named steps, a Builder lays tasks on hosts.
package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Version of the plan's JSON form.
const Version = "kubexm.mensylisir.io/plan/v1"

// Controller is the host name of nodes that run where the engine runs.
const Controller = ""

// Plan is the whole work of one intent.
type Plan struct {
	// Intent is the pipeline's name: CreateCluster, JoinWorker, …
	Intent string
	// Cluster is the name of the cluster that it is about.
	Cluster string
	// Hosts names the hosts in the order in which a person expects them; what a Node says of its Host is one of them.
	Hosts []string
	graph *graph.Graph[Node]
}

// Node is one step on one host.
type Node struct {
	// ID is unique in the plan: host/module/task/step; for the controller "controller/…". It does not depend on the
	// position in the plan, so the journal knows it again in a later plan.
	ID string
	// Host is a name of Plan.Hosts, or Controller.
	Host               string
	Module, Task, Name string
	Step               step.Step
	// Digest of the step's JSON form, "sha256:…": the input digest of the journal.
	Digest string
	// Limits are what is not left to the step. They are no part of Digest: with other limits the same is done.
	Limits Limits
}

// Limits are how a step is bounded where that is not left to it. Zero values leave it to the step.
type Limits struct {
	// Timeout of one attempt.
	Timeout step.Duration `json:"timeout,omitempty"`
	// Attempts in all.
	Attempts int `json:"attempts,omitempty"`
	// Concurrency is on how many hosts at once steps of one Group may run.
	Concurrency int    `json:"concurrency,omitempty"`
	Group       string `json:"group,omitempty"`
}

// Meta is what the step says of itself, within the limits.
func (n Node) Meta() step.Meta {
	m := n.Step.Meta()
	m.Timeout = cmp.Or(n.Limits.Timeout, m.Timeout)
	m.Retry.Attempts = cmp.Or(n.Limits.Attempts, m.Retry.Attempts)
	return m
}

// Graph returns the compiled graph of p.
func (p *Plan) Graph() *graph.Graph[Node] { return p.graph }

// Savepoint says of a host that was seen whether what p replaces behind a savepoint is in use there, and whether one is open.
func (p *Plan) Savepoint(hostName string, seen *host.Facts) (inUse, open bool) {
	for i := range p.graph.Len() {
		if n := p.graph.Node(i).Value; n.Host == hostName && seen != nil {
			if s, _ := step.SavepointOf(n.Step); s != nil {
				inUse, open = inUse || seen.Paths[s.InUse].Exists, open || s.Open(seen)
			}
		}
	}
	return inUse, open
}

// paired refuses a savepoint that is not committed by a later node of its host, and a commit of none.
func paired(g *graph.Graph[Node]) error {
	var errs []error
	open := map[string]string{} // host:dir → ID of the node that opens it
	for _, i := range g.Order() {
		n := g.Node(i).Value
		opens, commits := step.SavepointOf(n.Step)
		if opens != nil {
			at := n.Host + ":" + opens.Dir
			if other, is := open[at]; is {
				errs = append(errs, fmt.Errorf("%s: %s has opened the savepoint %s before", n.ID, other, opens.Dir))
			}
			open[at] = n.ID
		}
		if at := n.Host + ":" + commits; commits != "" {
			if _, is := open[at]; !is {
				errs = append(errs, fmt.Errorf("%s: no step before it opens the savepoint %s", n.ID, commits))
			}
			delete(open, at)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(open)) {
		errs = append(errs, fmt.Errorf("%s: no step after it commits its savepoint", open[at]))
	}
	return errors.Join(errs...)
}

// Task is one component's one goal on one host: dedicated steps in order.
type Task struct {
	Name  string
	Steps []step.Step
	// Limits of steps by their names, where there are any.
	Limits map[string]Limits
	// Until, if not "", is an output that the last of Steps makes: who takes another of this host's task from elsewhere waits for
	// it, too.
	Until string
}

// Module is a strategic domain's part in a pipeline, on one host: tasks in order.
type Module struct {
	Name  string
	Tasks []Task
}

// Builder lays modules on hosts. Nodes of one host come one after the other in the order in which they are added;
// between hosts, and between a host and the controller, only outputs make an order. The zero value is not usable; see New.
type Builder struct {
	intent, cluster string
	hosts           []string
	last            map[string]string // host → ID of its last node
	gates           map[string]string // ID of a node on the controller → its digest
	writers, adders map[string]string // host:path → ID of the node that writes it, or adds to it
	held            map[string]held   // output → what who takes it waits for, too
	b               graph.Builder[Node]
	errs            []error
}

// New returns a Builder for a plan.
func New(intent, cluster string) *Builder {
	return &Builder{
		intent: intent, cluster: cluster,
		last: make(map[string]string), gates: make(map[string]string), writers: make(map[string]string), adders: make(map[string]string),
		held: make(map[string]held),
	}
}

// held is an output that its task's end makes, for those who are not on the task's host.
type held struct{ host, until string }

// Host lays modules on a host, after what was laid on it before.
func (b *Builder) Host(name string, modules ...Module) {
	if err := checkName(name); err != nil {
		b.errs = append(b.errs, err)
		return
	}
	if _, ok := b.last[name]; !ok {
		b.hosts = append(b.hosts, name)
		b.last[name] = ""
	}
	for _, m := range modules {
		for _, t := range m.Tasks {
			for _, s := range t.Steps {
				var after []string
				if l := b.last[name]; l != "" {
					after = []string{l}
				}
				b.last[name] = b.add(name, m.Name, t, s, after)
				for _, output := range s.Meta().Makes {
					if t.Until != "" && output != t.Until {
						b.held[output] = held{name, t.Until}
					}
				}
			}
		}
	}
}

// Gate lays modules on the controller. Steps of one task come one after the other; tasks wait for nothing but the
// outputs that they take. A gate that is there already is not added again: several hosts may ask for the same one. Two
// that have one name and differ are an error.
func (b *Builder) Gate(modules ...Module) {
	for _, m := range modules {
		for _, t := range m.Tasks {
			var after []string
			for _, s := range t.Steps {
				id := nodeID(controllerPlace, m.Name, t.Name, s.Meta().Name)
				if b.b.Has(id) {
					b.same(id, s)
				} else {
					b.add(Controller, m.Name, t, s, after)
				}
				after = []string{id}
			}
		}
	}
}

// same refuses a gate that differs from the one that was added with its ID.
func (b *Builder) same(id string, s step.Step) {
	raw, err := step.Marshal(s)
	if err == nil && digest(raw) != b.gates[id] {
		err = errors.New("it was added before with other content")
	}
	if err != nil {
		b.errs = append(b.errs, fmt.Errorf("%s: %w", id, err))
	}
}

func checkName(name string) error {
	switch {
	case name == Controller:
		return errors.New("a host has no name")
	case name == controllerPlace || strings.Contains(name, "/"):
		return fmt.Errorf("a host cannot be called %q", name)
	}
	return nil
}

func (b *Builder) add(hostName, module string, t Task, s step.Step, after []string) string {
	m := s.Meta()
	n := Node{
		ID: nodeID(placeOf(hostName), module, t.Name, m.Name), Host: hostName, Module: module, Task: t.Name, Name: m.Name, Step: s,
		Limits: t.Limits[m.Name],
	}
	raw, err := step.Marshal(s)
	if err == nil {
		err = fits(s, hostName)
	}
	if err != nil {
		b.errs = append(b.errs, fmt.Errorf("%s: %w", n.ID, err))
	}
	for _, path := range step.AddsTo(s) {
		at := hostName + ":" + path
		if other, taken := b.writers[at]; taken {
			b.errs = append(b.errs, fmt.Errorf("%s: %s writes %s, to which it adds: it would be lost there", n.ID, other, path))
		}
		b.adders[at] = n.ID
	}
	for _, path := range step.Writes(s) {
		at := hostName + ":" + path
		if other, adds := b.adders[at]; adds {
			b.errs = append(b.errs, fmt.Errorf("%s: %s adds to %s, which it writes: it would be lost there", n.ID, other, path))
		}
		if other, taken := b.writers[at]; taken {
			// Each would undo the other's work, run after run, and restart what reads the file.
			b.errs = append(b.errs, fmt.Errorf("%s: %s writes %s, too: leave it to one of them", n.ID, other, path))
		}
		b.writers[at] = n.ID
	}
	n.Digest = digest(raw)
	if hostName == Controller {
		b.gates[n.ID] = n.Digest
	}
	return b.b.Add(graph.Node[Node]{ID: n.ID, After: after, Takes: m.Takes, Makes: m.Makes, Value: n})
}

// fits refuses steps that cannot run where they were laid.
func fits(s step.Step, hostName string) error {
	if seq, ok := s.(step.Sequence); ok {
		for i, p := range seq.Parts {
			if err := fits(p, hostName); err != nil {
				return fmt.Errorf("part %d: %w", i, err)
			}
			if step.Waits(p) && len(seq.Parts) > 1 {
				return fmt.Errorf("part %d: it waits for its host, and must be the only part of its step", i)
			}
		}
		return nil
	}
	_, onController := s.(step.Prober)
	switch {
	case onController && hostName != Controller:
		return fmt.Errorf("a step of kind %s runs on the controller, not on a host", step.KindOf(s))
	case !onController && hostName == Controller:
		return fmt.Errorf("a step of kind %s runs on a host, not on the controller", step.KindOf(s))
	}
	return nil
}

// digestPrefix names what digests are made by.
const digestPrefix = "sha256:"

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// placeOf is how IDs name a host.
func placeOf(hostName string) string {
	if hostName == Controller {
		return controllerPlace
	}
	return hostName
}

// controllerPlace names the controller in IDs; no host may be called so.
const controllerPlace = "controller"

func nodeID(place, module, task, name string) string {
	return place + "/" + module + "/" + task + "/" + name
}

// Plan compiles what was laid.
func (b *Builder) Plan() (*Plan, error) {
	b.b.Each(func(n *graph.Node[Node]) {
		for _, output := range n.Takes {
			// On the task's own host nodes follow each other anyway.
			if h, ok := b.held[output]; ok && h.host != n.Value.Host && !slices.Contains(n.Takes, h.until) {
				n.Takes = append(slices.Clip(n.Takes), h.until)
			}
		}
	})
	g, err := b.b.Compile()
	if err == nil {
		err = paired(g)
	}
	if err := errors.Join(append(b.errs, err)...); err != nil {
		return nil, fmt.Errorf("plan %s of cluster %s: %w", b.intent, b.cluster, err)
	}
	return &Plan{Intent: b.intent, Cluster: b.cluster, Hosts: b.hosts, graph: g}, nil
}
