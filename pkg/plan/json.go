// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
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
	d := p.head()
	for n, err := range p.documentNodes() {
		if err != nil {
			return document{}, err
		}
		d.Nodes = append(d.Nodes, n)
	}
	return d, nil
}

// head is the document of p without digest and nodes.
func (p *Plan) head() document {
	return document{Version: Version, Intent: p.Intent, Cluster: p.Cluster, Hosts: p.Hosts}
}

// documentNodes yields p's nodes as they are written, up to one that cannot be.
func (p *Plan) documentNodes() iter.Seq2[documentNode, error] {
	return func(yield func(documentNode, error) bool) {
		for i := range p.graph.Len() {
			n, err := documentNodeOf(p.graph.Node(i))
			if !yield(n, err) || err != nil {
				return
			}
		}
	}
}

func documentNodeOf(gn graph.Node[Node]) (documentNode, error) {
	n := gn.Value
	raw, err := step.Marshal(n.Step)
	if err != nil {
		return documentNode{}, fmt.Errorf("node %s: %w", n.ID, err)
	}
	own := n.Step.Meta().Takes
	beside := slices.DeleteFunc(slices.Clone(gn.Takes), func(output string) bool { return slices.Contains(own, output) })
	return documentNode{
		ID: n.ID, Host: n.Host, Module: n.Module, Task: n.Task, Name: n.Name,
		After: gn.After, Takes: beside, Limits: n.Limits, Digest: n.Digest, Step: raw,
	}, nil
}

// digest of d without the one that is written in it.
func (d document) digest() (string, error) {
	return documentDigest(d, func(yield func(documentNode, error) bool) {
		for _, n := range d.Nodes {
			if !yield(n, nil) {
				return
			}
		}
	})
}

// documentDigest is the digest of what json.Marshal makes of d with these nodes and no digest. One node after the other is made: all of
// them at once would be the most memory that a run on many hosts takes.
func documentDigest(d document, nodes iter.Seq2[documentNode, error]) (string, error) {
	d.Digest, d.Nodes = "", []documentNode{}
	head, err := json.Marshal(d)
	if err != nil {
		return "", err
	}
	const end = "]}" // of the nodes, which come last, and of the document
	hash := sha256.New()
	hash.Write(bytes.TrimSuffix(head, []byte(end)))
	between := ""
	for n, err := range nodes {
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal(n)
		if err != nil {
			return "", err
		}
		hash.Write([]byte(between))
		hash.Write(raw)
		between = ","
	}
	hash.Write([]byte(end))
	return digestPrefix + hex.EncodeToString(hash.Sum(nil)), nil
}

// Digest is "sha256:…" of all that p says. Two plans with one digest do the same.
func (p *Plan) Digest() (string, error) { return documentDigest(p.head(), p.documentNodes()) }

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
