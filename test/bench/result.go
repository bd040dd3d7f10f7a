// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// result is what a measurement came to, as the file has it. What was not measured is null.
type result struct {
	Name      string   `json:"name"`
	Ours      *float64 `json:"ours"`
	Reference *float64 `json:"reference"`
	// Ratio is Ours divided by Reference.
	Ratio *float64 `json:"ratio"`
	// Goal is "ratio <= n", "ours <= n", "ours >= n", or empty.
	Goal string `json:"goal"`
	Unit string `json:"unit"`
	// Load is the load average of the machine when the measurement began. More than 1 says that it was not at rest.
	Load float64 `json:"load"`
}

// result is the median of each side, of a measurement that began with this load average.
func (m measurement) result(values map[side][]float64, load float64) result {
	r := result{
		Name: m.name, Goal: m.goal.String(), Unit: m.unit, Load: load,
		Ours: median(values[ours]), Reference: median(values[reference]),
	}
	if r.Ours != nil && r.Reference != nil && *r.Reference != 0 {
		ratio := *r.Ours / *r.Reference
		r.Ratio = &ratio
	}
	return r
}

// median is nil for no values, and the mean of the two in the middle for an even number.
func median(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	m := sorted[half]
	if len(sorted)%2 == 0 {
		m = (sorted[half-1] + m) / 2
	}
	return &m
}

func printTable(w io.Writer, lines []measurement, results []result) {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(columns, "NAME\tOURS\tREFERENCE\tRATIO\tGOAL\tUNIT\tLOAD\tMET\n")
	for i, r := range results {
		word := "-"
		if met, known := lines[i].goal.met(r); known {
			word = map[bool]string{true: "yes", false: "NO"}[met]
		}
		if r.Load > restful {
			word += " (busy)"
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.Name, figure(r.Ours), figure(r.Reference), figure(r.Ratio), orDash(r.Goal), r.Unit, figure(&r.Load), word)
	}
	_ = columns.Flush() // to the terminal
	if slices.ContainsFunc(results, func(r result) bool { return r.Load > restful }) {
		fmt.Fprintf(w, "busy: the load average was more than %.0f when it began, so the figure says little\n", restful)
	}
}

func printList(w io.Writer) {
	for _, e := range experiments() {
		for _, m := range e.measurements {
			fmt.Fprintf(w, "%s (%s, goal: %s)\n\t%s\n", m.name, m.unit, orDash(m.goal.String()), m.about)
		}
	}
}

// figure has three digits that count.
func figure(v *float64) string {
	switch {
	case v == nil:
		return "-"
	case *v >= 100:
		return fmt.Sprintf("%.0f", *v)
	case *v >= 10:
		return fmt.Sprintf("%.1f", *v)
	}
	return fmt.Sprintf("%.2f", *v)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// asBenchmarks has each value as go test -bench writes one, a line a round, so that benchstat compares two files.
func asBenchmarks(lines []measurement, values map[string]map[side][]float64) []byte {
	var text []byte
	for _, m := range lines {
		for _, of := range []side{ours, reference} {
			for _, value := range values[m.name][of] {
				text = fmt.Appendf(text, "Benchmark/%s/of=%s 1 %g %s\n", m.name, of, value, m.unit)
			}
		}
	}
	return text
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
