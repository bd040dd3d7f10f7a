// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// TestParse compares what a user sees of each file in testdata/parse with what the file says it should be. Its commands:
//
//	parse   a whole file
//	spec    the part of a file below spec, beside two hosts and their roles: line 7 is the first
//	hosts   the hosts and role groups of a file that has nothing else: line 6 is the first
//	asked   the part of a file below spec, as spec has it, of which the hooks and limits are shown
//	roles   the same with anything else, of which the hosts' roles, etcd and the endpoint are shown
func TestParse(t *testing.T) {
	const header = "apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster\nmetadata: {name: test}\nspec:\n"
	datadriven.Walk(t, "testdata/parse", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "parse":
				return parse(t, d.Input, func(c *config.Cluster) any { return c })
			case "hosts":
				return parse(t, header+"  kubernetes: {version: v1.36.3}\n"+indent(d.Input), func(c *config.Cluster) any { return c.Hosts })
			case "roles":
				return parse(t, header+"  kubernetes: {version: v1.36.3}\n"+indent(d.Input), roles)
			case "spec", "asked":
				const hosts = "  hosts: [{name: a, address: 172.16.0.2}, {name: b, address: 172.16.0.3}]\n  roleGroups: {master: [a], worker: [b]}\n"
				return parse(t, header+hosts+indent(d.Input), func(c *config.Cluster) any {
					if d.Cmd == "asked" {
						return map[string]any{"hooks": c.Spec.Hooks, "limits": c.Spec.Limits}
					}
					return c.Spec
				})
			}
			t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

// roles are what a file says of who does what.
func roles(c *config.Cluster) any {
	of := map[string]any{}
	for _, h := range c.Hosts {
		of[h.Name] = h.Spec().Role
	}
	return map[string]any{"roles": of, "etcd": c.Spec.Etcd, "etcdFiles": c.EtcdFiles, "controlPlaneEndpoint": c.Spec.ControlPlaneEndpoint}
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(s, "\n", "\n  ") + "\n"
}

// parse is the file as it was understood, or all that is wrong with it.
func parse(t *testing.T, input string, part func(*config.Cluster) any) string {
	t.Helper()
	cluster, warnings, err := config.Parse([]byte(input))
	var out strings.Builder
	for _, warning := range warnings {
		fmt.Fprintf(&out, "warning: %s\n", warning)
	}
	var refused *config.Error
	switch {
	case errors.As(err, &refused):
		fmt.Fprintln(&out, err)
	case err != nil:
		t.Fatalf("the error is not a *config.Error: %v", err)
	default:
		dump, err := yaml.Marshal(part(cluster))
		if err != nil {
			t.Fatal(err)
		}
		out.Write(dump)
	}
	return out.String()
}
