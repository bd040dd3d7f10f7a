// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package adoption says of a plan what it means on a host that somebody else has made a part of the cluster: which steps are made already
// because they are made but once, what of the host is Kubernetes' own, and what kubeadm would make of it. It knows steps as plans do, by
// what they consist of.
package adoption

import (
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// inherited ends the journal's name of an act that takes over what a step would have made, where the step itself is still to be decided.
const inherited = "/inherited"

// kubernetes are the modules whose files and units are Kubernetes' own: an undo removes them, whoever made them. What is changed of the
// rest of the host is undone as ever, to what it was when it was adopted.
var kubernetes = []string{"runtime", "cni", "etcd", "kubernetes"}

// programs is where a converge puts programs.
const programs = "/usr/local/bin"

// isKubernetes leaves out what goes to an etcd that is elsewhere: that is its owner's, and so is an etcdctl that is there.
func isKubernetes(n plan.Node) bool {
	return slices.Contains(kubernetes, n.Module) && n.Task != "etcd-client"
}

// Nodes are the steps of a plan on one host, in their order.
func Nodes(p *plan.Plan, on string) []plan.Node {
	var nodes []plan.Node
	g := p.Graph()
	for _, i := range g.Order() {
		if n := g.Node(i).Value; n.Host == on {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Once reports whether the step is made but once, when the host becomes a part of the cluster: claims, and kubeadm's init and join. Of a
// host that was adopted all of that is done, by others.
func Once(s step.Step) bool {
	sequence, is := s.(step.Sequence)
	return len(claims(s)) > 0 || is && sequence.Done != nil && sequence.Done.Journaled
}

func parts(s step.Step) []step.Step {
	if sequence, is := s.(step.Sequence); is {
		return sequence.Parts
	}
	return []step.Step{s}
}

func claims(s step.Step) []step.Claim {
	var all []step.Claim
	for _, p := range parts(s) {
		if c, is := p.(step.Claim); is {
			all = append(all, c)
		}
	}
	return all
}

// files are the paths of files that the step makes, below no claim.
func files(n plan.Node, claimed []string) []string {
	var all []string
	for _, f := range written(n) {
		if !slices.ContainsFunc(claimed, func(c string) bool { return strings.HasPrefix(f.Path, c+"/") }) {
			all = append(all, f.Path)
		}
	}
	return all
}

// units are those that the step has run.
func units(n plan.Node) []string {
	var all []string
	for _, p := range parts(n.Step) {
		if s, is := p.(step.Service); is && s.State != step.Stopped {
			all = append(all, s.Name)
		}
	}
	return all
}

// Claimed are the paths that are Kubernetes' as a whole on the host.
func Claimed(nodes []plan.Node) []string {
	var all []string
	for _, n := range nodes {
		for _, c := range claims(n.Step) {
			all = append(all, c.Paths...)
		}
	}
	return all
}

// Query is what must be seen of the host to say what Acts are.
func Query(nodes []plan.Node) host.Query {
	var q host.Query
	for _, p := range Claimed(nodes) {
		q.Paths = append(q.Paths, host.PathQuery{Path: path.Dir(p)})
	}
	for _, n := range nodes {
		if isKubernetes(n) {
			q.Units = append(q.Units, units(n)...)
			for _, p := range files(n, Claimed(nodes)) {
				q.Paths = append(q.Paths, host.PathQuery{Path: p})
			}
		}
		for _, f := range written(n) {
			if f.Where != "" {
				q.Paths = append(q.Paths, host.PathQuery{Path: f.Where}, host.PathQuery{Path: f.Path})
			}
		}
	}
	return q
}

// written are the files that the step makes.
func written(n plan.Node) []step.File {
	var all []step.File
	for _, p := range parts(n.Step) {
		if f, is := p.(step.File); is {
			all = append(all, f)
		}
	}
	return all
}

// Writes are the paths of the files that a converge of the host would write where they are not as they must be.
func Writes(nodes []plan.Node, seen *host.Facts) []string {
	var all []string
	for _, n := range nodes {
		for _, f := range written(n) {
			if f.Due(seen) {
				all = append(all, f.Path)
			}
		}
	}
	return all
}

// Text is the plain text that a converge writes to a path, "" if it does not write it.
func Text(nodes []plan.Node, at string) (string, error) {
	return text(nodes, func(p string) bool { return p == at })
}

func text(nodes []plan.Node, is func(string) bool) (string, error) {
	for _, n := range nodes {
		for _, f := range written(n) {
			if is(f.Path) {
				content, err := f.Content.Resolve(nil)
				return string(content.Reveal()), err
			}
		}
	}
	return "", nil
}

// Acts are what makes the host the cluster's own: with them done, the journal knows of the steps that are made but once, and an undo of
// everything removes what Kubernetes has put there. They are in the order in which the pipeline would have made the same things, for the
// undo goes backwards. What packages own of paths stays (Packaged). Those that the journal has are not among them. theirs are paths that no
// step names, and that are Kubernetes' own on this host as a whole; they go with the first that is claimed.
func Acts(nodes []plan.Node, seen *host.Facts, packaged map[string][]Owned, theirs ...string) []host.Act {
	claimed := Claimed(nodes)
	var acts []host.Act
	for _, n := range nodes {
		a := host.Act{Node: n.ID, Task: n.Task, Digest: n.Digest}
		var take host.Inherit
		for _, c := range claims(n.Step) {
			for _, p := range slices.Concat(c.Paths, theirs) {
				if owned := packaged[p]; len(owned) > 0 {
					a.Changes = append(a.Changes, leave(p, owned))
				} else {
					take.Paths = append(take.Paths, p)
				}
				if parent := path.Dir(p); !seen.Paths[parent].Exists {
					a.Changes = append(a.Changes, emptied(parent))
				}
			}
			theirs = nil
		}
		if isKubernetes(n) {
			for _, p := range files(n, claimed) {
				switch {
				case len(packaged[p]) > 0:
				case seen.Paths[p].Exists:
					take.Paths = append(take.Paths, p)
				case path.Dir(p) == programs:
					// Others' are elsewhere. What ours will have started can only be stopped by ours.
					take.Files = append(take.Files, p)
				}
			}
			for _, u := range units(n) {
				if seen.Units[u].Load == "loaded" {
					take.Units = append(take.Units, u)
				}
			}
		}
		once := Once(n.Step)
		taken := len(take.Paths)+len(take.Files)+len(take.Units) > 0
		if !once && !taken {
			continue
		}
		if !once {
			a.Node += inherited
		}
		if taken {
			a.Changes = append(a.Changes, take)
		}
		a.Changes = append(a.Changes, cleanups(n.Step)...)
		if _, done := seen.Journal[a.Node]; !done {
			acts = append(acts, a)
		}
	}
	return acts
}

// emptied is what removes a directory that was not there, once what we have claimed in it is gone: the undo of who makes it comes before
// that, and leaves it. As long as that is not undone it does nothing.
func emptied(directory string) host.Change {
	return host.Command{
		Title: "remove " + directory + " where nothing is left in it", Undo: []string{"/bin/sh", "-c", `rmdir -- "$1" 2>/dev/null || :`, "sh", directory},
	}
}

// cleanups are recorded to be run on undo, before paths are removed; the last is run first.
func cleanups(s step.Step) []host.Change {
	var changes []host.Change
	for _, c := range claims(s) {
		for _, cleanup := range slices.Backward(c.Cleanup) {
			changes = append(changes, host.Command{Title: cleanup.Title, Undo: cleanup.Argv})
		}
	}
	return changes
}

// Assume has a host that was seen say what it will when it is adopted: whose it is, and what is made but once.
func Assume(seen *host.Facts, owner host.Owner, nodes []plan.Node) {
	if seen.Owner == nil && seen.OwnerUnreadable == "" {
		seen.Owner = &owner
	}
	journal := map[string]host.JournalEntry{}
	for name, e := range seen.Journal {
		journal[name] = e
	}
	for _, n := range nodes {
		if _, done := journal[n.ID]; !done && Once(n.Step) {
			journal[n.ID] = host.JournalEntry{Run: "adoption", Digest: n.Digest}
		}
	}
	seen.Journal = journal
}
