// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
)

type node = graph.Node[string]

func compile(nodes ...node) (*graph.Graph[string], error) {
	var b graph.Builder[string]
	for _, n := range nodes {
		b.Add(n)
	}
	return b.Compile()
}

func TestCompileRefuses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		nodes []node
		want  string
	}{
		{"no ID", []node{{}}, "node 0 has no ID"},
		{"one ID twice", []node{{ID: "a"}, {ID: "a"}}, "node a is there twice"},
		{"after nothing", []node{{ID: "a", After: []string{"b"}}, {ID: "b"}}, `node a comes after "b", which does not exist before it`},
		{"output of nobody", []node{{ID: "a", Takes: []string{"x"}}}, "node a takes output x, which nothing makes"},
		{"output of two", []node{{ID: "a", Makes: []string{"x"}}, {ID: "b", Makes: []string{"x"}}}, "output x is made twice, by a and by b"},
		{"own output", []node{{ID: "a", Takes: []string{"x"}, Makes: []string{"x"}}}, "node a takes its own output x"},
		{"circle through outputs", []node{
			{ID: "first"}, {ID: "a", Takes: []string{"x"}, Makes: []string{"y"}}, {ID: "b", Takes: []string{"y"}, Makes: []string{"x"}},
		}, "nodes wait for each other in a circle: a, b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := compile(tt.nodes...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestAllErrorsAtOnce(t *testing.T) {
	_, err := compile(node{ID: "a", Takes: []string{"x", "y"}}, node{ID: "a"})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v, want three errors", err)
	}
}

func TestOrderKeepsToAddition(t *testing.T) {
	g, err := compile(
		node{ID: "join", Takes: []string{"token"}}, node{ID: "a"}, node{ID: "b", After: []string{"a"}},
		node{ID: "token", Makes: []string{"token"}, After: []string{"b"}}, node{ID: "c"},
	)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, i := range g.Order() {
		order = append(order, g.Node(i).ID)
	}
	if want := []string{"a", "b", "token", "join", "c"}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
	join, _ := g.Index("join")
	token, _ := g.Index("token")
	if !slices.Equal(g.Upstream(join), []int{token}) || !slices.Equal(g.Downstream(token), []int{join}) {
		t.Errorf("join waits for %v, for token wait %v", g.Upstream(join), g.Downstream(token))
	}
}

// TestOrderIsTopological compiles random graphs.
func TestOrderIsTopological(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		var nodes []node
		for i := range 1 + r.IntN(40) {
			n := node{ID: fmt.Sprint(i), Makes: []string{fmt.Sprintf("out%d", i)}}
			for j := range i {
				switch r.IntN(8) {
				case 0:
					n.After = append(n.After, fmt.Sprint(j))
				case 1:
					n.Takes = append(n.Takes, fmt.Sprintf("out%d", j))
				}
			}
			nodes = append(nodes, n)
		}
		g, err := compile(nodes...)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		at := make(map[int]int)
		for k, i := range g.Order() {
			at[i] = k
		}
		if len(at) != g.Len() {
			t.Fatalf("seed %d: the order has %d of %d nodes", seed, len(at), g.Len())
		}
		for i := range g.Len() {
			for _, up := range g.Upstream(i) {
				if at[up] >= at[i] {
					t.Fatalf("seed %d: node %d comes before %d, which it waits for", seed, i, up)
				}
			}
		}
	}
}

// TestFrozen: what is added after Compile does not change the graph.
func TestFrozen(t *testing.T) {
	var b graph.Builder[string]
	b.Add(node{ID: "a"})
	g, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	b.Add(node{ID: "b"})
	if _, ok := g.Index("b"); ok || g.Len() != 1 {
		t.Error("the graph has grown")
	}
}
