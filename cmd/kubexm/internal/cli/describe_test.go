// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/inspect"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestDescribeDrift shows what differs as "kubexm plan" does, and as data.
func TestDescribeDrift(t *testing.T) {
	b := plan.New("CreateCluster", "prod")
	b.Host("node1", plan.Module{Name: "os", Tasks: []plan.Task{{Name: "system", Steps: []step.Step{
		step.New(step.Meta{Name: "system/modules"}, step.File{Path: "/etc/modules-load.d/kubexm.conf", Mode: 0o644, Content: step.Literal("a\n")}),
		step.New(step.Meta{Name: "system/sysctls"}, step.Sysctl{Name: "vm.swappiness", Value: "1"}),
		step.New(step.Meta{Name: "kubelet/unit", Disrupts: "restarts the kubelet"}, step.Service{Name: "kubelet.service"}),
	}}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	const file = "file /etc/modules-load.d/kubexm.conf"
	checks := []plan.Check{
		{
			Node:  "node1/os/system/system/modules",
			Diff:  step.Diff{{Subject: file, From: "sha256:1111", To: "sha256:2222"}, {Subject: file, From: "mode 0600", To: "mode 0644"}},
			Lines: map[string]string{file: "@@ -1 +1 @@\n-b\n+a"},
		},
		{Node: "node1/os/system/system/sysctls", Diff: step.Diff{{Subject: "sysctl vm.swappiness", From: "60", To: "1"}}},
		{Node: "node1/os/system/kubelet/unit", Unknown: "output join-token: not known yet"},
	}
	d := &description{
		Cluster: inspect.Cluster{Name: "prod", KubernetesVersion: "v1.36.3", Status: "Ready", Server: "https://172.16.0.2:6443", Bundle: "/bundle"},
		Nodes:   []inspect.Node{},
		Hosts:   []inspect.Host{{Cluster: "prod", Name: "node1", Role: spec.RoleWorker, Address: "172.16.0.3", User: "ops", Status: "Reachable"}},
	}
	if err := d.drifted(p, checks); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	a := &app{Streams: Streams{Out: &text}}
	if err := a.showDescription(d, &format{}); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(&text, "===== -o yaml")
	if err := (&format{name: "yaml"}).encode(&text, d); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(&text, "===== it is not known")
	if err := a.showDescription(&description{Cluster: d.Cluster, DriftMessage: "the bundle is gone"}, &format{}); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/describe.golden", text.String())
}
