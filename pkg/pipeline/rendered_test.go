// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// rendered is every text that a plan writes: files by their path, what is applied by its name. Secrets and outputs stand in
// them as references.
func rendered(p *plan.Plan) map[string]string {
	all := make(map[string]string)
	for i := range p.Graph().Len() {
		texts(p.Graph().Node(i).Value.Step, all)
	}
	return all
}

// reference is the secret that a text consists of, or "".
func reference(t step.Text) string {
	if len(t) == 1 && t[0].Secret != nil {
		return t[0].Secret.String()
	}
	return ""
}

func texts(s step.Step, into map[string]string) {
	switch s := s.(type) {
	case step.Sequence:
		for _, p := range s.Parts {
			texts(p, into)
		}
	case step.File:
		if s.From == nil && reference(s.Content) == "" {
			// A colon cannot stand in the name of a file of a Go module.
			into[strings.ReplaceAll(strings.TrimPrefix(s.Path, "/"), ":", "_")] = s.Content.String()
		}
	case step.Block:
		into[strings.TrimPrefix(s.Path, "/")+".block"] = s.Content
	case step.Apply:
		into["apply/"+strings.ReplaceAll(s.Title, " ", "-")+".yaml"] = s.Manifest.String()
	case step.Release:
		into["helm/"+s.Name+"-values.yaml"] = s.Values.String()
	}
}

// TestRendered keeps the texts of the first scenario, and of the others those that differ from it.
func TestRendered(t *testing.T) {
	var plain map[string]string
	for _, tt := range scenarios(bundle(t)) {
		if tt.name == "cluster" {
			continue // the same on more hosts
		}
		t.Run(tt.name, func(t *testing.T) {
			p, err := tt.make()
			if err != nil {
				t.Fatal(err)
			}
			all := rendered(p)
			maps.DeleteFunc(all, func(name, text string) bool { return plain[name] == text })
			if plain == nil {
				plain = all
			}
			golden.Tree(t, filepath.Join("testdata", "rendered", tt.name), all)
		})
	}
}

// TestForwardingStays: a host that knows no name server for pods leaves the cluster's Corefile as it is, unless the control plane begins
// there. One that knows some, and all where servers are declared, apply it.
func TestForwardingStays(t *testing.T) {
	b, blind := bundle(t), machine
	blind.Nameservers = []string{"127.0.0.53"}
	declared := func(t *spec.Target) { t.Cluster.DNS.CoreDNS.UpstreamServers = []string{"192.168.0.54"} }
	for _, tt := range []struct {
		name             string
		mode             spec.BootstrapMode
		sys              host.System
		change           []func(*spec.Target)
		corefile, onward bool
	}{
		{"cp1", spec.BootstrapInit, machine, nil, true, true},
		{"cp1", spec.BootstrapInit, blind, nil, true, false},
		{"cp2", spec.BootstrapJoin, machine, nil, true, true},
		{"cp2", spec.BootstrapJoin, blind, nil, false, false},
		{"cp2", spec.BootstrapJoin, blind, []func(*spec.Target){declared}, true, true},
	} {
		makes := pipeline.CreateControlPlane
		if tt.mode == spec.BootstrapJoin {
			makes = pipeline.JoinControlPlane
		}
		mode := func(t *spec.Target) { t.BootstrapMode = tt.mode }
		p, err := makes(node(tt.name, "192.168.0.11", spec.RoleControlPlane, tt.sys, append(tt.change, mode)...), b)
		if err != nil {
			t.Fatal(err)
		}
		applied := rendered(p)["apply/CoreDNS.yaml"]
		corefile, onward := strings.Contains(applied, "Corefile: |"), strings.Contains(applied, "forward . ")
		if corefile != tt.corefile || onward != tt.onward || !strings.Contains(applied, "kind: Deployment") {
			t.Errorf("%s, which asks %s: a Corefile %t, which forwards %t:\n%s", tt.name, tt.sys.Nameservers, corefile, onward, applied)
		}
	}
}
