// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/inspect"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// turn is one host's in an upgrade.
type turn struct {
	Turn string
	Host string
	Role string
	From string
	To   string
	How  string
}

// showUpgrade observes the cluster and its hosts, stops at what is not fit, and shows in which order hosts are upgraded; for
// --plan with all that is changed on each.
func (a *app) showUpgrade(ctx context.Context, u *upgrade) error {
	nodes, err := inspect.Nodes(ctx, u.dir)
	switch {
	case err != nil && u.begun():
		a.warn(fmt.Sprintf("the cluster's API does not answer: %v", err))
	case err != nil:
		return fmt.Errorf("the cluster's API must answer before it is upgraded: %w", err)
	}
	facts, failure := a.examine(ctx, u.declared, u.tools())
	if failure != nil {
		return failure
	}
	u.systems = planner.Systems(facts)
	if u.plan {
		a.guard(u.dir, u.tools(), false).Warn(ctx, facts)
	}
	if problems := nodeProblems(nodes, u.targets, u.known.KubernetesVersion, u.KubernetesVersion); !u.begun() && len(problems) > 0 {
		return &unfit{problems: problems}
	}
	if err == nil {
		if err := a.checkAPIs(ctx, u); err != nil {
			return err
		}
	}
	turns := turns(u, nodes)
	if !u.plan {
		return a.noteTurns(turns)
	}
	if err := list(a.Out, newFormat(), turns, turnTable()); err != nil {
		return err
	}
	return a.showChanges(ctx, u)
}

// noteTurns says in which order hosts are upgraded.
func (a *app) noteTurns(turns []turn) error {
	switch {
	case a.quiet:
		return nil
	case a.logFormat != formatJSON:
		return list(a.Err, newFormat(), turns, turnTable())
	}
	for _, t := range turns {
		a.note(fmt.Sprintf("turn %s: %s (%s) from %s to %s: %s", t.Turn, t.Host, t.Role, t.From, t.To, t.How))
	}
	return nil
}

// showChanges shows what is changed on each host.
func (a *app) showChanges(ctx context.Context, u *upgrade) error {
	p, err := planner.Plan(u.targets, u.systems, u.bundle)
	if err != nil {
		return err
	}
	tools := u.tools()
	if tools.Trust, err = u.trust(false); err != nil {
		return err
	}
	report, err := tools.Engine().Check(ctx, p)
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	return a.showFound(p, report, err)
}

// nodeProblems are Nodes that an upgrade must not begin with.
func nodeProblems(nodes []inspect.Node, targets []spec.Target, from, to string) []preflight.Problem {
	var problems []preflight.Problem
	for _, t := range targets {
		if !t.Host.Role.IsNode() {
			continue
		}
		refuse := func(cause, remedy string) {
			problems = append(problems, preflight.Problem{
				Host: t.Host.Name, Check: "node", Severity: preflight.Error, Cause: cause, Remedy: remedy,
			})
		}
		at := slices.IndexFunc(nodes, func(n inspect.Node) bool { return n.Name == t.Host.Name })
		switch {
		case at < 0:
			refuse("it is no Node of the cluster", fmt.Sprintf("bring it in first, with spec.kubernetes.version: %s: kubexm create cluster", from))
		case nodes[at].Version != from && nodes[at].Version != to:
			refuse(fmt.Sprintf("its kubelet has %s, neither %s nor %s", nodes[at].Version, from, to), "see who has changed it")
		case !strings.HasPrefix(nodes[at].Status, "Ready"):
			refuse("its Node is "+nodes[at].Status+": "+nodes[at].Message, "make it Ready first")
		}
	}
	return problems
}

// checkAPIs stops at APIs in use that the new version does not serve, unless they are accepted or nothing is changed: then they are
// noted. The reconcilers look again before they begin.
func (a *app) checkAPIs(ctx context.Context, u *upgrade) error {
	found, err := inspect.RemovedAPIs(ctx, u.dir, u.KubernetesVersion)
	if err != nil {
		a.warn(fmt.Sprintf("it is not known whether APIs are in use that %s does not serve: %v", u.KubernetesVersion, err))
		return nil
	}
	if len(found) > 0 && !u.plan && !u.begun() && !u.acceptRemovedAPIs {
		return &removedAPIs{version: u.KubernetesVersion, inUse: found}
	}
	for _, api := range found {
		a.warn(fmt.Sprintf("in use: %s", api))
	}
	return nil
}

// removedAPIs are in use, and the new version does not serve them.
type removedAPIs struct {
	version string
	inUse   []kube.RemovedAPI
}

func (r *removedAPIs) Error() string {
	var lines []string
	for _, api := range r.inUse {
		lines = append(lines, "  "+api.String())
	}
	return fmt.Sprintf("preflight: APIs are in use that %s does not serve, nothing was changed:\n%s\n    Remedy: have who uses them use "+
		"another version; that somebody has asked is forgotten when the API servers are restarted. To go on all the same, give --accept-removed-apis",
		r.version, strings.Join(lines, "\n"))
}

// turns are the hosts in the order in which they are upgraded. Those that have the version are in it no more.
func turns(u *upgrade, nodes []inspect.Node) []turn {
	o := &order{upgrade: u, nodes: map[string]inspect.Node{}}
	for _, n := range nodes {
		o.nodes[n.Name] = n
	}
	if !u.workersOnly {
		for _, t := range u.targets {
			if !t.Host.Role.IsNode() {
				o.add(t.Host.Name, "")
			}
		}
		for _, name := range o.controlPlanes() {
			o.add(name, "")
		}
	}
	if u.controlPlaneOnly {
		return o.turns
	}
	for _, p := range objects.Pools(u.Cluster) {
		names := slices.Sorted(slices.Values(p.Hosts))
		if at := slices.Index(names, u.canary); at >= 0 {
			names = slices.Insert(slices.Delete(names, at, at+1), 0, u.canary)
		}
		for i, name := range names {
			switch {
			case name == u.canary:
				o.add(name, ", before the others of its pool")
			case u.concurrency > 1 && i > 0:
				o.add(name, fmt.Sprintf("; up to %d at once", u.concurrency))
			default:
				o.add(name, "")
			}
		}
	}
	return o.turns
}

// order makes turns.
type order struct {
	*upgrade
	nodes map[string]inspect.Node
	turns []turn
	count int
}

// add gives a host the next turn, if it does not have the version.
func (o *order) add(name, more string) {
	t := turn{Turn: "-", Host: name, Role: o.about(name), From: o.known.KubernetesVersion, To: o.KubernetesVersion, How: "upgraded with the control plane"}
	if n, seen := o.nodes[name]; seen {
		t.From = n.Version
	}
	if t.From == t.To {
		return
	}
	if slices.ContainsFunc(o.targets, func(t spec.Target) bool { return t.Host.Name == name && t.Host.Role.IsNode() }) {
		o.count++
		t.Turn, t.How = strconv.Itoa(o.count), o.how(name)+more
	}
	o.turns = append(o.turns, t)
}

// how is what becomes of a Node.
func (o *order) how(name string) string {
	if o.replace() {
		return "drained, reset, joins again"
	}
	for other, n := range o.nodes {
		if other != name && n.TakesPods {
			return "drained, upgraded in place"
		}
	}
	return "upgraded in place beneath its Pods, as no other Node takes them"
}

// controlPlanes are the control plane's hosts, those that joined first before the others.
func (o *order) controlPlanes() []string {
	var names []string
	for _, t := range o.targets {
		if t.Host.Role == spec.RoleControlPlane {
			names = append(names, t.Host.Name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return o.nodes[a].Since.Compare(o.nodes[b].Since) })
	return names
}

func turnTable() table[turn] {
	return table[turn]{
		{name: "TURN", value: func(t turn) string { return t.Turn }},
		{name: "HOST", value: func(t turn) string { return t.Host }},
		{name: "ROLE", value: func(t turn) string { return t.Role }},
		{name: "FROM", value: func(t turn) string { return t.From }},
		{name: "TO", value: func(t turn) string { return t.To }},
		{name: "HOW", value: func(t turn) string { return t.How }},
	}
}
