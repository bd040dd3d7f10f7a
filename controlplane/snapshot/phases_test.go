// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"os"
	"strings"
	"testing"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestPhasesAreDocumented: what people read of how a host joins and leaves is what the table says.
func TestPhasesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range memberPhases {
		row := fmt.Sprintf("  | %s | %s | %s | %s |\n", p.phase, p.begins, p.others, p.own)
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/architecture.md has no row\n%s", row)
		}
	}
}

// TestPhases: a phase only goes on, unless the deletion of the host was lost.
func TestPhases(t *testing.T) {
	const joining, serving = bootstrapv1.MemberJoining, bootstrapv1.MemberServing
	const draining, removed = bootstrapv1.MemberDraining, bootstrapv1.MemberRemoved
	machine := host{role: spec.RoleControlPlane, etcd: true, hasNode: true}
	stays := machine
	stays.stays = true
	drained := machine
	drained.drained = true
	none := machine
	none.hasNode = false
	own := host{role: spec.RoleEtcd, etcd: true}
	for name, tc := range map[string]struct {
		of   memberState
		want bootstrapv1.MemberPhase
	}{
		"a new host joins":                             {memberState{host: stays, was: joining}, joining},
		"one with a version serves":                    {memberState{host: stays, was: joining, versioned: true}, serving},
		"one that serves serves without its status":    {memberState{host: stays, was: serving}, serving},
		"one that is deleted is drained":               {memberState{host: machine, was: serving, versioned: true, missed: true}, draining},
		"it is drained until its API server has ended": {memberState{host: drained, was: draining, versioned: true, missed: true}, draining},
		"then its member is removed":                   {memberState{host: drained, was: draining, versioned: true, missed: true, stopped: true}, removed},
		"which a lost status does not undo":            {memberState{host: drained, was: removed}, removed},
		"nobody removes the last member":               {memberState{host: drained, was: draining, versioned: true, stopped: true}, draining},
		"a host that never served has no API server":   {memberState{host: none, was: joining, missed: true}, removed},
		"one of etcd's own has none either":            {memberState{host: own, was: serving, missed: true}, removed},
		"a lost deletion begins anew":                  {memberState{host: stays, was: draining, versioned: true}, joining},
		"a lost deletion begins anew after removal":    {memberState{host: stays, was: removed, versioned: true}, joining},
	} {
		t.Run(name, func(t *testing.T) {
			got := joining
			for _, p := range memberPhases {
				if p.holds(tc.of) {
					got = p.phase
				}
			}
			if got != tc.want {
				t.Errorf("it is %s, want %s", got, tc.want)
			}
		})
	}
}
