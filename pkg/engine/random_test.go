// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// beforeTurns is what random hosts have before a change for which they take turns.
var beforeTurns = map[string]string{"/c": "1", "/ok": ""}

// TestConvergesWhateverFails runs random plans, with gates between hosts, with changes for which hosts take turns, with limits on hosts at
// once and with faults of every kind at random places, until a run succeeds. Each run must end, account for every node, and release every
// lock; in the end every host must be as it would be had nothing failed.
func TestConvergesWhateverFails(t *testing.T) {
	policies := []engine.Policy{engine.Stop, engine.UndoTask, engine.UndoRun}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		text, names := randomPlan(r)
		p := mustPlan(t, text)
		hosts := memories(names...)
		for _, n := range names {
			hosts[n].faults = randomFaults(r, n)
			maps.Copy(hosts[n].files, beforeTurns)
		}
		o := options(hosts, &cluster{unhealthy: r.IntN(5)}, nil)
		o.HostsAtOnce = 1 + r.IntN(4)
		o.Policy = policies[r.IntN(len(policies))]
		runs := 0
		for {
			report, err := engine.New(o).Run(t.Context(), p)
			for _, n := range names {
				if hosts[n].holder != "" {
					t.Fatalf("seed %d: %s is still locked\n%s", seed, n, text)
				}
			}
			sum := report.Total()
			if got := sum.Changed + sum.Skipped + sum.Failed + sum.Blocked; got != p.Graph().Len() {
				t.Fatalf("seed %d: %d of %d nodes accounted for: %v\n%s", seed, got, p.Graph().Len(), err, text)
			}
			if err == nil {
				break
			}
			if runs++; runs > 60 {
				t.Fatalf("seed %d: does not converge: %v\n%s", seed, err, text)
			}
		}
		quiet := memories(names...)
		for _, n := range names {
			maps.Copy(quiet[n].files, beforeTurns)
		}
		o = options(quiet, &cluster{}, nil)
		if _, err := engine.New(o).Run(t.Context(), p); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		for _, n := range names {
			if !maps.Equal(hosts[n].files, quiet[n].files) {
				t.Fatalf("seed %d: %s is\n%vwant\n%v%s", seed, n, hosts[n], quiet[n], text)
			}
		}
	}
}

// randomPlan writes a plan in which outputs are taken only by what is written after their makers, so that there is no
// circle; hosts make some, gates make the others.
func randomPlan(r *rand.Rand) (text string, names []string) {
	var b strings.Builder
	var made []string
	take := func() string {
		if len(made) == 0 || r.IntN(3) > 0 {
			return ""
		}
		return "<" + made[r.IntN(len(made))]
	}
	for i := range 1 + r.IntN(5) {
		name := fmt.Sprintf("n%d", i)
		names = append(names, name)
		fmt.Fprintf(&b, "%s m/t:", name)
		if r.IntN(3) == 0 {
			b.WriteString(" change:/c=2 /c=2 changed")
		}
		var here []string
		for k := range 1 + r.IntN(5) {
			fmt.Fprintf(&b, " /f%d=x%s", k, take())
			if r.IntN(3) == 0 {
				here = append(here, fmt.Sprintf("h%d-%d", i, k))
				fmt.Fprintf(&b, ">%s", here[len(here)-1])
			}
			if r.IntN(3) == 0 {
				fmt.Fprintf(&b, "@%d", 1+r.IntN(2))
			}
		}
		b.WriteString("\n")
		made = append(made, here...)
		for k := range r.IntN(3) {
			switch out := fmt.Sprintf("g%d-%d", i, k); r.IntN(3) {
			case 0:
				fmt.Fprintf(&b, "gate c/%s: api%s>%s\n", out, take(), out)
				made = append(made, out)
			case 1:
				fmt.Fprintf(&b, "gate c/%s: token%s>%s\n", out, take(), out)
				made = append(made, out)
			case 2:
				fmt.Fprintf(&b, "gate c/%s: apply:%s%s\n", out, out, take())
			}
		}
	}
	return b.String(), names
}

func randomFaults(r *rand.Rand, name string) []fault {
	ops := []string{"dial", "observe", "begin", "do", "answer", "end", "undo", "file /f0", "file /f1", "file /f3", "undo /f1"}
	kinds := []host.Kind{
		host.KindUnreachable, host.KindUnreachable, host.KindCommand, host.KindTimeout, host.KindDiskFull, host.KindLocked, "",
	}
	var faults []fault
	for range r.IntN(6) {
		f := fault{op: ops[r.IntN(len(ops))], skip: r.IntN(4), times: 1 + r.IntN(4), err: errors.New("not the host's own error")}
		if kind := kinds[r.IntN(len(kinds))]; kind != "" {
			f.err = &host.Error{Kind: kind, Host: name, Message: "asked to fail"}
		}
		faults = append(faults, f)
	}
	return faults
}
