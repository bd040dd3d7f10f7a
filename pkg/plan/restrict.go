// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
)

// Restrict returns the part of p that has the nodes which keep accepts, and those that make what these take, and so on. The nodes of
// one host come in the order that they have in p. IDs and digests are those of p, so that the journal knows the nodes. The error
// is of a plan that nothing is left of.
func (p *Plan) Restrict(keep func(Node) bool) (*Plan, error) {
	makers := map[string]int{}
	for i := range p.graph.Len() {
		for _, output := range p.graph.Node(i).Makes {
			makers[output] = i
		}
	}
	kept := map[int]bool{}
	var take func(i int)
	take = func(i int) {
		if kept[i] {
			return
		}
		kept[i] = true
		for _, output := range p.graph.Node(i).Takes {
			take(makers[output])
		}
	}
	for i := range p.graph.Len() {
		if keep(p.graph.Node(i).Value) {
			take(i)
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("plan %s of cluster %s: nothing is left of it", p.Intent, p.Cluster)
	}
	var b graph.Builder[Node]
	var hosts []string
	for i := range p.graph.Len() {
		if !kept[i] {
			continue
		}
		n := p.graph.Node(i)
		n.After = p.keptBefore(i, kept)
		b.Add(n)
		if host := n.Value.Host; host != Controller && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	g, err := b.Compile()
	if err != nil {
		return nil, fmt.Errorf("plan %s of cluster %s, restricted: %w", p.Intent, p.Cluster, err)
	}
	return &Plan{Intent: p.Intent, Cluster: p.Cluster, Hosts: hosts, graph: g}, nil
}

// keptBefore are the IDs of the nodes that are left after which a node comes, directly or by nodes that are not left. What a node
// takes is not among them unless it comes after it as well.
func (p *Plan) keptBefore(i int, kept map[int]bool) []string {
	var before []string
	seen := map[string]bool{}
	var walk func(i int)
	walk = func(i int) {
		for _, id := range p.graph.Node(i).After {
			if seen[id] {
				continue
			}
			seen[id] = true
			if j, _ := p.graph.Index(id); kept[j] {
				before = append(before, id)
			} else {
				walk(j)
			}
		}
	}
	walk(i)
	return before
}
