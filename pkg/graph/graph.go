// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package graph is a directed acyclic graph of work, in two types: a Builder that is written to and a Graph, made by
// Compile, that never changes again. What runs the graph is a third (package engine).
//
// Edges come from two places: a node is added after others that exist already, so such a cycle cannot be written; and a
// node that takes an output (Output) comes after the one node that makes it. A missing or a second producer, or a
// cycle through outputs, is an error of Compile, before anything runs.
package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Output is a handle on a value of type T that one node makes and others take. Its name is unique in a graph.
type Output[T any] struct {
	Name string `json:"name"`
}

// Node is what the builder is given.
type Node[N any] struct {
	// ID is unique and readable: it stands in plans, journals and errors.
	ID string
	// After are the IDs of nodes, added before, that must have ended well before this one starts.
	After []string
	// Takes and Makes are names of outputs.
	Takes, Makes []string
	// Value is the work.
	Value N
}

// Builder collects nodes. The zero value is ready to use.
type Builder[N any] struct {
	nodes []Node[N]
	index map[string]int
	errs  []error
}

// Add adds n and returns its ID for later nodes to come after. A duplicate or empty ID, or one in After that was not
// added before, is reported by Compile.
func (b *Builder[N]) Add(n Node[N]) string {
	if b.index == nil {
		b.index = make(map[string]int)
	}
	if n.ID == "" {
		b.errs = append(b.errs, fmt.Errorf("node %d has no ID", len(b.nodes)))
		return ""
	}
	if _, dup := b.index[n.ID]; dup {
		b.errs = append(b.errs, fmt.Errorf("node %s is there twice", n.ID))
		return n.ID
	}
	for _, a := range n.After {
		if _, ok := b.index[a]; !ok {
			b.errs = append(b.errs, fmt.Errorf("node %s comes after %q, which does not exist before it", n.ID, a))
		}
	}
	b.index[n.ID] = len(b.nodes)
	b.nodes = append(b.nodes, n)
	return n.ID
}

// Has reports whether a node with this ID was added.
func (b *Builder[N]) Has(id string) bool {
	_, ok := b.index[id]
	return ok
}

// Each calls f with every node that was added, in order. f may change what a node takes.
func (b *Builder[N]) Each(f func(n *Node[N])) {
	for i := range b.nodes {
		f(&b.nodes[i])
	}
}

// Compile checks the graph and freezes it. All errors are reported at once.
func (b *Builder[N]) Compile() (*Graph[N], error) {
	errs := slices.Clone(b.errs)
	makers := make(map[string]int)
	for i, n := range b.nodes {
		for _, o := range n.Makes {
			if first, dup := makers[o]; dup {
				errs = append(errs, fmt.Errorf("output %s is made twice, by %s and by %s", o, b.nodes[first].ID, n.ID))
				continue
			}
			makers[o] = i
		}
	}
	g := &Graph[N]{
		nodes:      slices.Clone(b.nodes),
		index:      make(map[string]int, len(b.nodes)),
		upstream:   make([][]int, len(b.nodes)),
		downstream: make([][]int, len(b.nodes)),
	}
	for i, n := range g.nodes {
		g.index[n.ID] = i
		up := make(map[int]bool)
		for _, a := range n.After {
			if j, ok := b.index[a]; ok {
				up[j] = true
			}
		}
		for _, o := range n.Takes {
			j, ok := makers[o]
			switch {
			case !ok:
				errs = append(errs, fmt.Errorf("node %s takes output %s, which nothing makes", n.ID, o))
			case j == i:
				errs = append(errs, fmt.Errorf("node %s takes its own output %s", n.ID, o))
			default:
				up[j] = true
			}
		}
		for j := range up {
			g.upstream[i] = append(g.upstream[i], j)
		}
		slices.Sort(g.upstream[i])
		for _, j := range g.upstream[i] {
			g.downstream[j] = append(g.downstream[j], i)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if left := g.sort(); len(left) > 0 {
		ids := make([]string, len(left))
		for k, i := range left {
			ids[k] = g.nodes[i].ID
		}
		return nil, fmt.Errorf("nodes wait for each other in a circle: %s", strings.Join(ids, ", "))
	}
	return g, nil
}

// Graph is a checked graph. It is safe for concurrent use.
type Graph[N any] struct {
	nodes                []Node[N]
	index                map[string]int
	upstream, downstream [][]int
	order                []int
}

// sort fills order, keeping to the order of addition where the edges leave a choice, and returns the nodes on or
// behind a cycle.
func (g *Graph[N]) sort() []int {
	waits := make([]int, len(g.nodes))
	var ready []int
	for i := range g.nodes {
		waits[i] = len(g.upstream[i])
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		i := ready[0]
		ready = ready[1:]
		g.order = append(g.order, i)
		for _, j := range g.downstream[i] {
			if waits[j]--; waits[j] == 0 {
				at, _ := slices.BinarySearch(ready, j)
				ready = slices.Insert(ready, at, j)
			}
		}
	}
	var left []int
	for i, w := range waits {
		if w > 0 {
			left = append(left, i)
		}
	}
	return left
}

// Len is the number of nodes. Nodes are numbered from 0 in the order of addition.
func (g *Graph[N]) Len() int { return len(g.nodes) }

// Node returns node i.
func (g *Graph[N]) Node(i int) Node[N] { return g.nodes[i] }

// Index returns the number of the node with this ID.
func (g *Graph[N]) Index(id string) (int, bool) {
	i, ok := g.index[id]
	return i, ok
}

// Upstream returns the nodes that i waits for; Downstream those that wait for i. Neither may be modified.
func (g *Graph[N]) Upstream(i int) []int { return g.upstream[i] }

// Downstream is described at Upstream.
func (g *Graph[N]) Downstream(i int) []int { return g.downstream[i] }

// Order is a topological order, stable under the order of addition. It may not be modified.
func (g *Graph[N]) Order() []int { return g.order }
