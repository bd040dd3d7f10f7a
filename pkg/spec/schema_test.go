// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestBounds: each kind of bound that a marker can set is kept, and the error says what is allowed without showing what may be long.
func TestBounds(t *testing.T) {
	long := strings.Repeat("x", 10241)
	for name, c := range map[string]struct {
		node spec.Node
		want string
	}{
		"a word":      {spec.Node{DriftPolicy: "Ignore"}, `spec.driftPolicy: Unsupported value: "Ignore": supported values: "Repair", "Report"`},
		"no word":     {spec.Node{Hooks: []spec.Hook{{Name: "a", Task: "node", Commands: []string{"true"}}}}, `spec.hooks[0].when: Unsupported value: "": supported values: "Before", "After"`},
		"a number":    {spec.Node{Reset: spec.Reset{TimeoutSeconds: ptr.To[int32](86401)}}, "spec.reset.timeoutSeconds: Invalid value: 86401: use a number from 1 to 86400"},
		"zero":        {spec.Node{Reset: spec.Reset{TimeoutSeconds: ptr.To[int32](0)}}, "spec.reset.timeoutSeconds: Invalid value: 0: use a number from 1 to 86400"},
		"no number":   {spec.Node{Disruption: spec.Disruption{MaintenanceWindows: []spec.MaintenanceWindow{{Start: "0 22 * * *"}}}}, "spec.disruption.maintenanceWindows[0].durationMinutes: Required value: use a number from 1 to 10080"},
		"a long text": {spec.Node{PreCommands: []string{"true", long}}, "spec.preCommands[1]: Too long: use at most 10240 characters"},
		"a long list": {spec.Node{PreCommands: slices.Repeat([]string{"true"}, 101)}, "spec.preCommands: Too many: use at most 100 items"},
		"a map":       {spec.Node{NodeLabels: labels(65)}, "spec.nodeLabels: Too many: use at most 64 entries"},
	} {
		t.Run(name, func(t *testing.T) {
			c.node.Default()
			if diff := cmp.Diff([]string{c.want}, texts(c.node.Validate(field.NewPath("spec")))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRulesSayMoreThanBounds: what a rule refuses, with all that is in it, is not refused again.
func TestRulesSayMoreThanBounds(t *testing.T) {
	c := spec.Cluster{Network: spec.Network{Plugin: spec.NetworkCalico, Flannel: spec.Flannel{MTU: 1}}}
	c.Default()
	if got := texts(c.Validate(nil)); len(got) != 1 || !strings.HasPrefix(got[0], "network.flannel: Forbidden: ") {
		t.Errorf("got %q", got)
	}
}

func labels(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all["l"+strings.Repeat("x", i%50)+string(rune('a'+i/50))] = "v"
	}
	return all
}

func texts(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

// BenchmarkValidate is what a target's bounds and rules cost in each reconcile.
func BenchmarkValidate(b *testing.B) {
	var c spec.Cluster
	c.Default()
	for b.Loop() {
		if errs := c.Validate(nil); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}
