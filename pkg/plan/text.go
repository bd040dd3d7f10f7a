// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Text writes all of p for people and golden files: for each host, in order, a line per node and below it a line per
// part. Content is shown by its size and digest, secrets and outputs as references.
func (p *Plan) Text(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s of %s: %s on %s and the controller\n", p.Intent, p.Cluster, count(p.graph.Len(), "node"), count(len(p.Hosts), "host"))
	byHost := make(map[string][]int)
	for _, i := range p.graph.Order() {
		name := p.graph.Node(i).Value.Host
		byHost[name] = append(byHost[name], i)
	}
	for _, name := range append([]string{Controller}, p.Hosts...) {
		if name == Controller && len(byHost[name]) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n%s: %s\n", placeOf(name), count(len(byHost[name]), "node"))
		for _, i := range byHost[name] {
			p.text(b, i)
		}
	}
	return b.Flush()
}

func (p *Plan) text(w io.Writer, i int) {
	gn := p.graph.Node(i)
	n, m := gn.Value, gn.Value.Meta()
	fmt.Fprintf(w, "  %s/%s %s", n.Module, n.Task, n.Name)
	// A host's nodes follow each other anyway; only what else they wait for is news.
	if n.Host == Controller && len(gn.After) > 0 {
		fmt.Fprintf(w, "  after %s", strings.Join(gn.After, ", "))
	}
	if len(gn.Takes) > 0 {
		fmt.Fprintf(w, "  takes %s", strings.Join(gn.Takes, ", "))
	}
	if len(gn.Makes) > 0 {
		fmt.Fprintf(w, "  makes %s", strings.Join(gn.Makes, ", "))
	}
	if m.Timeout > 0 {
		fmt.Fprintf(w, "  within %s", time.Duration(m.Timeout))
	}
	if m.Retry.Attempts > 1 {
		fmt.Fprintf(w, "  up to %d times", m.Retry.Attempts)
	}
	if n.Limits.Concurrency > 0 {
		fmt.Fprintf(w, "  on at most %s at once (%s)", count(n.Limits.Concurrency, "host"), n.Limits.Group)
	}
	if m.Disrupts != "" {
		fmt.Fprintf(w, "  ! %s", m.Disrupts)
	}
	fmt.Fprintln(w)
	for _, line := range describe(n.Step) {
		fmt.Fprintf(w, "      %s\n", line)
	}
}

// describe is a line per part of s.
func describe(s step.Step) []string {
	switch s := s.(type) {
	case step.Sequence:
		var lines []string
		if s.Done != nil {
			lines = append(lines, "until "+done(*s.Done))
		}
		for _, p := range s.Parts {
			lines = append(lines, describe(p)...)
		}
		return lines
	case step.Import:
		var lines []string
		for _, m := range s.Images {
			line := fmt.Sprintf("image %s %s", m.Ref, short(m.Digest))
			if m.As != "" {
				line += " as " + m.As
			}
			lines = append(lines, line)
		}
		return lines
	case step.Savepoint:
		lines := []string{fmt.Sprintf("savepoint %s before %s, when one of these is in use and differs:", s.Dir, s.About)}
		if s.Turn != "" {
			lines = append(lines, "  in its turn, one host at a time: "+s.Turn)
		}
		if until := done(s.Settled); until != "" {
			lines = append(lines, "  rolled back until "+until)
		}
		if s.InUse != "" {
			lines = append(lines, "  in use once "+s.InUse+" exists")
		}
		for _, c := range s.Replaces {
			lines = append(lines, fmt.Sprintf("  file %s %s", c.Path, short(c.Digest)))
		}
		if len(s.Keeps) > 0 {
			lines = append(lines, words("  a copy of", s.Keeps...))
		}
		for _, b := range s.Before {
			lines = append(lines, fmt.Sprintf("  before that, command %s: %s", b.Title, command(b.Argv)))
		}
		return lines
	case step.Claim:
		lines := []string{words("claim", s.Paths...)}
		for _, c := range s.Cleanup {
			lines = append(lines, fmt.Sprintf("on undo %s: %s", c.Title, command(c.Argv)))
		}
		return lines
	case step.Command:
		lines := []string{fmt.Sprintf("command %s: %s", s.Title, command(s.Argv))}
		if len(s.Env) > 0 {
			lines = append(lines, words("  env", s.Env...))
		}
		if len(s.Stdin) > 0 {
			lines = append(lines, "  stdin "+content(s.Stdin))
		}
		if len(s.Undo) > 0 {
			lines = append(lines, "  on undo "+command(s.Undo))
		}
		if until := done(s.Done); until != "" {
			lines = append(lines, "  until "+until)
		}
		return lines
	}
	return []string{line(s)}
}

// line describes a step that one line can hold.
func line(s step.Step) string {
	switch s := s.(type) {
	case step.File:
		from := content(s.Content)
		if s.From != nil {
			from = artifact(*s.From)
		}
		text := fmt.Sprintf("file %s %s %s", s.Path, access(s.Mode, s.Owner, s.Group), from)
		if len(s.ReadBy) > 0 {
			text += words(" read by", s.ReadBy...)
		}
		if s.Where != "" {
			text += " where there is " + s.Where
		}
		return text
	case step.Certificate:
		return certificate(s)
	case step.Etcd:
		text := words("await etcd", s.Endpoints...)
		if s.Secret != "" {
			text += " <secret " + s.Secret + ">"
		}
		return text
	case step.Directory:
		return fmt.Sprintf("directory %s %s", s.Path, access(s.Mode, s.Owner, s.Group))
	case step.Absent:
		return "absent " + s.Path
	case step.Block:
		return fmt.Sprintf("block %s of %s %s", s.Name, s.Path, content(step.Literal(s.Content)))
	case step.Service:
		text := fmt.Sprintf("service %s %s", s.Name, cmp.Or(s.State, step.Running))
		if s.Settle > 0 {
			text += fmt.Sprintf(", up for %s", time.Duration(s.Settle))
		}
		if len(s.Watches) > 0 {
			again := ", restarted after"
			if s.Reload {
				again = ", reloaded after"
			}
			text += words(again, s.Watches...)
		}
		return text
	case step.Sysctl:
		return fmt.Sprintf("sysctl %s = %s", s.Name, s.Value)
	case step.Module:
		return "module " + s.Name
	case step.SwapOff:
		return "swap off"
	case step.Package:
		return words("packages", s.Names...)
	case step.Await:
		return strings.TrimSpace(fmt.Sprintf("await %s %s", s.For, s.Name))
	case step.Commit:
		return "commit " + s.Dir
	case step.Steady:
		text := words(fmt.Sprintf("up for %s:", time.Duration(s.For)), s.Units...)
		if s.While != "" {
			text += ", while " + s.While + " exists"
		}
		return text
	case step.Drain:
		return "drain node " + s.Node
	case step.Uncordon:
		text := "uncordon node " + s.Node
		if len(s.DaemonSets) > 0 {
			text += words(", with new pods of", s.DaemonSets...)
		}
		return text
	case step.NodeMetadata:
		var labels, taints []string
		for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
			labels = append(labels, key+"="+s.Labels[key])
		}
		for _, taint := range s.Taints {
			taints = append(taints, taint.ToString())
		}
		text := words("node "+s.Node+" labels", labels...)
		if len(taints) > 0 {
			text += words(", taints", taints...)
		}
		return text
	case step.Token:
		return fmt.Sprintf("bootstrap token for %s", time.Duration(s.TTL))
	case step.Apply:
		return fmt.Sprintf("apply %s %s", s.Title, content(s.Manifest))
	case step.PruneAddons:
		return words("helm releases of addons: no others than", s.Keep...)
	case step.Release:
		if len(s.Manifest) > 0 {
			return fmt.Sprintf("helm release %s/%s of manifest %s", s.Namespace, s.Name, content(s.Manifest))
		}
		return fmt.Sprintf("helm release %s/%s %s values %s", s.Namespace, s.Name, artifact(s.Chart), content(s.Values))
	}
	raw, err := step.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// certificate tells for whom it is, and who vouches for it.
func certificate(c step.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, a := range c.Addresses {
		names = append(names, a.String())
	}
	subject := strings.Join(append([]string{c.CommonName}, c.Organizations...), "/")
	text := fmt.Sprintf("certificate %s for %s", c.Path, words(subject, names...))
	for _, u := range c.Usages {
		text += ", " + string(u)
	}
	text += fmt.Sprintf(" by <secret %s>", c.Authority)
	if c.RenewBefore > 0 {
		const day = 24 * time.Hour
		text += fmt.Sprintf(", renewed %d days before its end", time.Duration(c.RenewBefore)/day)
	}
	return text
}

// command is an argument vector in one line: a script is known by its length and digest.
func command(argv []string) string {
	shown := make([]string, len(argv))
	for i, a := range argv {
		if n := strings.Count(strings.TrimSuffix(a, "\n"), "\n") + 1; n > 1 {
			a = fmt.Sprintf("<script of %d lines %s>", n, short(digest([]byte(a))))
		}
		shown[i] = a
	}
	return strings.Join(shown, " ")
}

func words(first string, rest ...string) string {
	return strings.Join(append([]string{first}, rest...), " ")
}

func access(m step.Mode, owner, group string) string {
	text := fmt.Sprintf("%04o", uint32(m))
	if owner+group != "" {
		text += " " + cmp.Or(owner, "root") + ":" + cmp.Or(group, "root")
	}
	return text
}

// content tells known text by size and digest, and other text by its references.
func content(t step.Text) string {
	if t.Known() {
		text := t.String()
		return fmt.Sprintf("%d B %s", len(text), short(digest([]byte(text))))
	}
	var refs []string
	literal := 0
	for _, s := range t {
		if s.Secret == nil && s.Output == "" {
			literal += len(s.Literal)
			continue
		}
		refs = append(refs, step.Text{s}.String())
	}
	text := strings.Join(refs, " ")
	if literal > 0 {
		text += fmt.Sprintf(" in %d B %s", literal, short(digest([]byte(t.String()))))
	}
	return text
}

func artifact(a step.Artifact) string {
	return fmt.Sprintf("from %s %d B %s", a.Path, a.Size, short(a.Digest))
}

func done(d step.Done) string {
	var parts []string
	for _, p := range d.Paths {
		parts = append(parts, p+" exists")
	}
	for _, u := range d.Units {
		parts = append(parts, u+" is active")
	}
	if len(d.Check) > 0 {
		parts = append(parts, "its check succeeds")
	}
	switch {
	case d.SameInput:
		parts = append(parts, "done with this input")
	case d.Journaled:
		parts = append(parts, "done once")
	}
	return strings.Join(parts, ", ")
}

// short is a digest as people compare it.
func short(digest string) string {
	const n = len("sha256:") + 12
	if len(digest) > n {
		return digest[:n]
	}
	return digest
}
