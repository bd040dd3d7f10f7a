// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	corev1 "k8s.io/api/core/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// declare declares a cluster of one control plane host and two workers, whose state is in a directory of its own.
func declare(t *testing.T) *declared {
	t.Helper()
	c, _, err := config.Parse([]byte(`
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  hosts:
  - {name: cp1, address: 172.16.0.1}
  - {name: w1, address: 172.16.0.2}
  - {name: w2, address: 172.16.0.3}
  roleGroups: {master: [cp1], worker: [w1, w2]}
  kubernetes: {version: v1.36.3}
`))
	if err != nil {
		t.Fatal(err)
	}
	d := &declared{Cluster: c}
	if d.dir, err = clusterdir.Of(t.TempDir(), c.Name); err != nil {
		t.Fatal(err)
	}
	if d.desired, err = planner.Targets(c); err != nil {
		t.Fatal(err)
	}
	d.targets = d.desired
	return d
}

// TestForgetsNone: of a cluster that was recovered, no host is taken out before a management plane knows it.
func TestForgetsNone(t *testing.T) {
	hosts := []clusterdir.Host{{Name: "cp1", Role: spec.RoleControlPlane}, {Name: "w1", Role: spec.RoleWorker}}
	for name, tc := range map[string]struct {
		known   clusterdir.Inventory
		refused string
	}{
		"nothing is known": {},
		"a host more":      {known: clusterdir.Inventory{Recovered: time.Now(), Hosts: hosts}},
		"a host less": {clusterdir.Inventory{Recovered: time.Now(),
			Hosts: append(hosts, clusterdir.Host{Name: "w3", Role: spec.RoleWorker})}, "declare w3 as before"},
		"another role": {clusterdir.Inventory{
			Recovered: time.Now(), Hosts: []clusterdir.Host{{Name: "w2", Role: spec.RoleControlPlane}},
		}, "declare w2 as before"},
		"known by a plane":      {known: clusterdir.Inventory{Hosts: append(hosts, clusterdir.Host{Name: "w3", Role: spec.RoleWorker})}},
		"before it was managed": {known: clusterdir.Inventory{ReadyTime: time.Now(), Hosts: hosts[:1]}},
	} {
		t.Run(name, func(t *testing.T) {
			d := declare(t)
			if tc.known.Hosts != nil {
				if err := d.dir.WriteInventory(&tc.known); err != nil {
					t.Fatal(err)
				}
			}
			err := d.forgetsNone()
			if (err == nil) != (tc.refused == "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("got %v, want %q", err, tc.refused)
			}
			if exitCode(t.Context(), err) != map[bool]int{true: exitOK, false: exitUsage}[err == nil] {
				t.Errorf("the exit code of %v is %d", err, exitCode(t.Context(), err))
			}
		})
	}
}

// TestTargetsOfARecoveredCluster: hosts that a management plane has made are compared with what it makes, and those that are new are made
// without a taint that nobody would take off.
func TestTargetsOfARecoveredCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		known   *clusterdir.Inventory
		tainted []string
	}{
		"nothing is known":     {},
		"made without a plane": {known: &clusterdir.Inventory{Recovered: time.Now(), Hosts: []clusterdir.Host{{Name: "w1"}}}},
		"made by the plane that is lost": {&clusterdir.Inventory{
			Recovered: time.Now(), Managed: true, Hosts: []clusterdir.Host{{Name: "cp1"}, {Name: "w1"}},
		}, []string{"w1"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := declare(t)
			if tc.known != nil {
				if err := d.dir.WriteInventory(tc.known); err != nil {
					t.Fatal(err)
				}
			}
			targets, err := d.unmanaged()
			if err != nil {
				t.Fatal(err)
			}
			var tainted []string
			for _, target := range targets {
				if slices.ContainsFunc(target.Node.NodeTaints, func(taint corev1.Taint) bool {
					return taint.Key == clusterv1.NodeUninitializedTaint.Key
				}) {
					tainted = append(tainted, target.Host.Name)
				}
			}
			if !slices.Equal(tainted, tc.tainted) {
				t.Errorf("tainted are %v, want %v", tainted, tc.tainted)
			}
		})
	}
}

// TestUnrecovered: a refusal names each host with its problem and its remedy, once, and is no failure of the program.
func TestUnrecovered(t *testing.T) {
	r := &recovering{declared: declare(t)}
	if err := r.refuse(nil); err != nil {
		t.Error(err)
	}
	problem := func(on string) preflight.Problem {
		return preflight.Problem{Host: on, Check: "owner", Severity: preflight.Error, Cause: "it is nobody's", Remedy: "take it out"}
	}
	err := r.refuse([]preflight.Problem{problem("w1"), problem("w2")})
	var refused *unrecovered
	if !errors.As(err, &refused) || exitCode(t.Context(), err) != exitPreflight {
		t.Fatalf("got %v", err)
	}
	const want = "prod is not recovered, and nothing was written:\n  w1, w2: owner: it is nobody's\n    Remedy: take it out"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// TestLostStateIsSaid: where hosts are refused because their cluster's authorities are not here, it is said how to read them back; where
// they are here, hosts are somebody else's.
func TestLostStateIsSaid(t *testing.T) {
	d := declare(t)
	failed := func(kind host.Kind) error {
		return &engine.Error{Failures: []engine.Failure{{Host: "w1", Err: &host.Error{Kind: kind, Host: "w1"}}}}
	}
	if got := (&unfit{unreached: failed(host.KindForeign), hint: d.lost(failed(host.KindForeign))}).Error(); !strings.HasSuffix(got, "kubexm recover -f config.yaml") {
		t.Errorf("got %q", got)
	}
	if got := d.lost(failed(host.KindUnreachable)) + d.lost(nil); got != "" {
		t.Errorf("got %q", got)
	}
	if _, err := d.dir.EnsureAuthorities(pki.CARequest{Key: pki.ECDSAP256}, false); err != nil {
		t.Fatal(err)
	}
	if got := d.lost(failed(host.KindForeign)); got != "" {
		t.Errorf("got %q", got)
	}
}
