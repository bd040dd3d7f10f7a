// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Render writes what running p would change, given what a look (engine's Check) found: for each host how many of its
// steps are so already, a line per difference, and in the end what it comes to.
func (p *Plan) Render(w io.Writer, checks []Check) error {
	b := bufio.NewWriter(w)
	found := make(map[string]Check, len(checks))
	for _, c := range checks {
		found[c.Node] = c
	}
	places := slices.Clone(p.Hosts)
	if p.has(Controller) {
		places = append(places, Controller)
	}
	sum := &sum{}
	for _, name := range places {
		p.renderPlace(b, name, found, sum)
	}
	fmt.Fprintln(b, sum)
	return b.Flush()
}

func (p *Plan) has(name string) bool {
	for i := range p.graph.Len() {
		if p.graph.Node(i).Value.Host == name {
			return true
		}
	}
	return false
}

func (p *Plan) renderPlace(w io.Writer, name string, found map[string]Check, sum *sum) {
	total, so := 0, 0
	var lines []string
	var unknown string // the reason of the last lines, and how many nodes have it
	alike := 0
	for _, i := range p.graph.Order() {
		n := p.graph.Node(i).Value
		if n.Host != name {
			continue
		}
		total++
		c, differs := found[n.ID]
		if !differs {
			so++
			continue
		}
		sum.unknown += one(c.Unknown != "")
		if c.Unknown != "" && c.Unknown == unknown {
			alike++
			lines[len(lines)-1] = fmt.Sprintf("  ?\t%d steps\t%s\t\t", alike, c.Unknown)
			continue
		}
		unknown, alike = c.Unknown, 1
		lines = append(lines, diffLines(n, c)...)
		if c.Unknown == "" {
			sum.change(name, n.Step.Meta().Disrupts)
		}
	}
	fmt.Fprintf(w, "%s  %s, %d already so\n", placeOf(name), count(total, "step"), so)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.TabIndent)
	for _, l := range lines {
		fmt.Fprintln(t, strings.TrimRight(l, "\t"))
	}
	_ = t.Flush() // writes to a bufio.Writer, whose Flush tells
	p.renderContent(w, name, found)
}

// renderContent writes in which lines content differs, as far as that is known.
func (p *Plan) renderContent(w io.Writer, name string, found map[string]Check) {
	for _, i := range p.graph.Order() {
		n := p.graph.Node(i).Value
		if n.Host != name {
			continue
		}
		lines := found[n.ID].Lines
		for _, subject := range slices.Sorted(maps.Keys(lines)) {
			fmt.Fprintf(w, "  %s:\n    %s\n", subject, strings.ReplaceAll(lines[subject], "\n", "\n    "))
		}
	}
}

// diffLines are the lines of one node: mark, step, subject, from → to, what it disrupts.
func diffLines(n Node, c Check) []string {
	disrupts := n.Step.Meta().Disrupts
	if c.Unknown != "" {
		return []string{fmt.Sprintf("  ?\t%s\t%s\t\t%s", n.Name, c.Unknown, disrupts)}
	}
	var lines []string
	label := n.Name
	for _, d := range c.Diff {
		mark, change := "~", d.From+" → "+d.To
		switch {
		case d.From == "absent":
			mark, change = "+", d.To
		case d.To == "absent":
			mark, change = "-", d.From
		case d.From == "":
			change = d.To
		}
		lines = append(lines, fmt.Sprintf("  %s\t%s\t%s\t%s\t%s", mark, label, d.Subject, change, disrupts))
		label, disrupts = "", ""
	}
	return lines
}

// sum is the last line.
type sum struct {
	changes, unknown int
	hosts            []string
	disruptions      []string
}

func (s *sum) change(hostName, disrupts string) {
	s.changes++
	if hostName != Controller && !slices.Contains(s.hosts, hostName) {
		s.hosts = append(s.hosts, hostName)
	}
	if disrupts != "" {
		s.disruptions = append(s.disruptions, fmt.Sprintf("%s on %s", disrupts, placeOf(hostName)))
	}
}

func (s *sum) String() string {
	text := "No changes."
	if s.changes > 0 {
		where := "through the cluster's API"
		if len(s.hosts) > 0 {
			where = "on " + count(len(s.hosts), "host")
		}
		text = fmt.Sprintf("%s %s.", count(s.changes, "change"), where)
	}
	if s.unknown > 0 {
		text += fmt.Sprintf(" %s to be decided when their turn comes.", count(s.unknown, "step"))
	}
	if len(s.disruptions) > 0 {
		text += " Disrupts: " + strings.Join(s.disruptions, "; ") + "."
	}
	return text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
