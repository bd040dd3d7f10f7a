// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func node() *spec.Node {
	return &spec.Node{
		Kubelet:    spec.Kubelet{MaxPods: 110},
		NodeLabels: map[string]string{"disk": "ssd"},
		NodeTaints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}},
		System: spec.System{
			Packages: spec.Packages{Debs: []string{"nfs-common=1.2"}, RPMs: []string{"nfs-utils=1.2-1"}},
			Sysctls:  []spec.Sysctl{{Name: "vm.swappiness", Value: "0"}},
			Modules:  []string{"dummy"}, Swap: spec.PolicyOff, EtcHosts: []spec.HostEntry{{Address: "10.0.0.1", Hostnames: []string{"a"}}},
		},
		Files:       []spec.File{{Path: "/etc/a", Content: "a"}, {Path: "/etc/b", Content: "b"}},
		PreCommands: []string{"true"}, PostCommands: []string{"true", "false"},
		Hooks: []spec.Hook{{Name: "a", Task: "containerd", When: spec.HookAfter, Commands: []string{"true"}}},
	}
}

func TestValidateNodeUpdate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*spec.Node)
		// refused are the fields of the errors, in order.
		refused []string
	}{
		"nothing": {change: func(*spec.Node) {}},
		"what is changed": {change: func(n *spec.Node) {
			n.Kubelet = spec.Kubelet{PodPidsLimit: 100}
			n.System.Packages.Debs, n.System.Sysctls[0].Value = []string{"nfs-common=1.3"}, "10"
			n.System.EtcHosts = nil // the lines are ours alone, and are written anew
			n.Files[1].Content, n.Hooks[0].Commands = "c", []string{"false"}
			n.Limits = []spec.Limit{{Step: "node/drain", TimeoutSeconds: 60}}
		}},
		"what is added": {change: func(n *spec.Node) {
			n.System.Firewall = spec.FirewallOff
			n.System.Modules = append(n.System.Modules, "br_netfilter")
			n.Files = slices.Insert(n.Files, 0, spec.File{Path: "/etc/c", Content: "c"})
			n.PreCommands = append(n.PreCommands, "uname")
		}},
		"labels and taints, which the Node follows": {change: func(n *spec.Node) {
			n.NodeLabels = map[string]string{"disk": "hdd"}
			n.NodeTaints = nil
		}},
		"what is appended from now on": {change: func(n *spec.Node) { n.Files[1].Append = spec.AppendEnabled }, refused: []string{"spec.files[1].append"}},
		"what is taken away": {change: func(n *spec.Node) {
			n.System = spec.System{Swap: spec.PolicyKeep}
			n.Files = n.Files[:1]
			n.PreCommands, n.PostCommands, n.Hooks = nil, []string{"true", "uname"}, nil
		}, refused: []string{
			"spec.system.swap", "spec.system.packages.debs[0]", "spec.system.packages.rpms[0]", "spec.system.sysctls[0]", "spec.system.modules[0]", "spec.files[1]",
			"spec.preCommands[0]", "spec.postCommands[1]", "spec.hooks[0]",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			updated := node()
			test.change(updated)
			var refused []string
			for _, err := range spec.ValidateNodeUpdate(node(), updated, field.NewPath("spec")) {
				refused = append(refused, err.Field)
			}
			if !slices.Equal(refused, test.refused) {
				t.Errorf("refused are %v, not %v", refused, test.refused)
			}
		})
	}
}

// A host follows where nothing of what was done to its firewall would stay without being asked for.
func TestValidateFirewallUpdate(t *testing.T) {
	const unset, open, keep, off = spec.FirewallPolicy(""), spec.FirewallOpen, spec.FirewallKeep, spec.FirewallOff
	follows := map[[2]spec.FirewallPolicy]bool{
		{keep, open}: true, {keep, unset}: true, // the cluster's may be any
		{keep, off}: true, {open, off}: true, {unset, off}: true,
	}
	policies := []spec.FirewallPolicy{unset, open, keep, off}
	for _, was := range policies {
		for _, is := range policies {
			errs := spec.ValidateSystemUpdate(&spec.System{Firewall: was}, &spec.System{Firewall: is}, field.NewPath("spec", "system"))
			if ok := was == is || follows[[2]spec.FirewallPolicy{was, is}]; ok != (len(errs) == 0) {
				t.Errorf("from %q to %q: %v", was, is, errs)
			}
		}
	}
}
