// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// document is a plan in JSON.
type document struct {
	Version string `json:"version"`
	Intent  string `json:"intent"`
	Cluster string `json:"cluster"`
	// Digest is Plan.Digest: it covers all that follows.
	Digest string         `json:"digest"`
	Hosts  []string       `json:"hosts"`
	Nodes  []documentNode `json:"nodes"`
}

// documentNode is a node in JSON. What it takes and makes is in its step.
type documentNode struct {
	ID     string   `json:"id"`
	Host   string   `json:"host,omitempty"`
	Module string   `json:"module"`
	Task   string   `json:"task"`
	Name   string   `json:"name"`
	After  []string `json:"after,omitempty"`
	// Takes is what it takes beside what is in its step.
	Takes  []string        `json:"takes,omitempty"`
	Limits Limits          `json:"limits,omitzero"`
	Digest string          `json:"digest"`
	Step   json.RawMessage `json:"step"`
}

// document is p as it is written, without its digest.
func (p *Plan) document() (document, error) {
	d := document{Version: Version, Intent: p.Intent, Cluster: p.Cluster, Hosts: p.Hosts}
	for i := range p.graph.Len() {
		gn := p.graph.Node(i)
		n := gn.Value
		raw, err := step.Marshal(n.Step)
		if err != nil {
			return document{}, fmt.Errorf("node %s: %w", n.ID, err)
		}
		own := n.Step.Meta().Takes
		beside := slices.DeleteFunc(slices.Clone(gn.Takes), func(output string) bool { return slices.Contains(own, output) })
		d.Nodes = append(d.Nodes, documentNode{
			ID: n.ID, Host: n.Host, Module: n.Module, Task: n.Task, Name: n.Name,
			After: gn.After, Takes: beside, Limits: n.Limits, Digest: n.Digest, Step: raw,
		})
	}
	return d, nil
}

// digest of d without the one that is written in it.
func (d document) digest() (string, error) {
	d.Digest = ""
	raw, err := json.Marshal(d)
	if err != nil {
		return "", err
	}
	return digest(raw), nil
}

// Digest is "sha256:…" of all that p says. Two plans with one digest do the same.
func (p *Plan) Digest() (string, error) {
	d, err := p.document()
	if err != nil {
		return "", err
	}
	return d.digest()
}

// Write writes p as JSON, with secrets and outputs as references. Read reads it back.
func (p *Plan) Write(w io.Writer) error {
	d, err := p.document()
	if err != nil {
		return err
	}
	if d.Digest, err = d.digest(); err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// Read reads a plan that Write wrote. It refuses what it does not understand completely: another version, an unknown
// field or step kind, a graph that does not hold together; and what was edited since: a step whose digest is another is
// named by its node.
func Read(r io.Reader) (*Plan, error) {
	p, err := read(r)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return p, nil
}

func read(r io.Reader) (*Plan, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	// The version comes first, so that a later form is named as such and not by its first unknown field.
	var head struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	if head.Version != Version {
		return nil, fmt.Errorf("version is %q; this program reads %q", head.Version, Version)
	}
	var d document
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the plan")
	}
	return d.plan()
}

// plan checks d and compiles it.
func (d document) plan() (*Plan, error) {
	var errs []error
	for i, h := range d.Hosts {
		if err := checkName(h); err != nil {
			errs = append(errs, err)
		}
		if slices.Contains(d.Hosts[:i], h) {
			errs = append(errs, fmt.Errorf("host %s is there twice", h))
		}
	}
	var b graph.Builder[Node]
	for i := range d.Nodes {
		gn, err := d.node(&d.Nodes[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", d.Nodes[i].ID, err))
			continue
		}
		b.Add(gn)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	g, err := b.Compile()
	if err != nil {
		return nil, err
	}
	if sum, err := d.digest(); err != nil || sum != d.Digest {
		return nil, errors.Join(err, fmt.Errorf("it was edited: its digest is %s, and %s is written in it", sum, d.Digest))
	}
	return &Plan{Intent: d.Intent, Cluster: d.Cluster, Hosts: d.Hosts, graph: g}, nil
}

// node checks n, and puts its step into the form that digests are made of.
func (d document) node(n *documentNode) (graph.Node[Node], error) {
	s, err := step.Unmarshal(n.Step)
	if err != nil {
		return graph.Node[Node]{}, err
	}
	if n.Step, err = step.Marshal(s); err != nil {
		return graph.Node[Node]{}, err
	}
	m := s.Meta()
	switch sum := digest(n.Step); {
	case sum != n.Digest:
		err = fmt.Errorf("it was edited: its step's digest is %s, and %s is written beside it", sum, n.Digest)
	case m.Name != n.Name || n.ID != nodeID(placeOf(n.Host), n.Module, n.Task, n.Name):
		err = errors.New("its ID does not say where it is")
	case n.Host != Controller && !slices.Contains(d.Hosts, n.Host):
		err = fmt.Errorf("host %s is not one of the plan's", n.Host)
	default:
		err = fits(s, n.Host)
	}
	return graph.Node[Node]{
		ID: n.ID, After: n.After, Takes: append(slices.Clip(m.Takes), n.Takes...), Makes: m.Makes,
		Value: Node{
			ID: n.ID, Host: n.Host, Module: n.Module, Task: n.Task, Name: n.Name, Step: s, Digest: n.Digest, Limits: n.Limits,
		},
	}, err
}
