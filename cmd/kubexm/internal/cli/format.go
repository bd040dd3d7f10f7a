// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// format is how a list is written: the value of -o.
type format struct{ name string }

func newFormat() *format { return &format{} }

func (f *format) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.name, "output", "o", "", "table, json, yaml or wide (default table)")
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		switch f.name {
		case "table":
			f.name = ""
		case "", "json", "yaml", "wide":
		default:
			return usage("--output: %q is none of table, json, yaml, wide", f.name)
		}
		if check != nil {
			return check(cmd, args)
		}
		return nil
	}
}

// structured reports whether a program is to read the output.
func (f *format) structured() bool { return f.name == "json" || f.name == "yaml" }

// encode writes a value as JSON or YAML.
func (f *format) encode(w io.Writer, value any) error {
	if f.name == "yaml" {
		content, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// table is a list's columns.
type table[T any] []column[T]

type column[T any] struct {
	name string
	// wide columns are shown by -o wide alone.
	wide  bool
	value func(T) string
}

// list writes rows in the format that was asked for.
func list[T any](w io.Writer, f *format, rows []T, t table[T]) error {
	if f.structured() {
		if rows == nil {
			rows = []T{}
		}
		return f.encode(w, rows)
	}
	out := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	var names []string
	for _, c := range t {
		if !c.wide || f.name == "wide" {
			names = append(names, c.name)
		}
	}
	fmt.Fprintln(out, strings.Join(names, "\t"))
	for _, row := range rows {
		var cells []string
		for _, c := range t {
			if !c.wide || f.name == "wide" {
				cells = append(cells, c.value(row))
			}
		}
		fmt.Fprintln(out, strings.Join(cells, "\t"))
	}
	return out.Flush()
}
