// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// What a cluster cannot follow that plans have made is refused: a plan meets no webhook.
func TestWhatPlansMadeIsNotChangedInPassing(t *testing.T) {
	moved := func(c *spec.Cluster) { c.Etcd.DataDir = "/data/etcd" }
	renumbered := func(c *spec.Cluster) { c.Network.PodCIDRs = []string{"10.9.0.0/16"} }
	untuned := func(c *spec.Cluster) { c.System.Sysctls = nil }
	for name, c := range map[string]struct {
		applied, reached bool
		plan             string // that is applied, where the last one made is another
		version          string
		change           func(*spec.Cluster)
		want             string
	}{
		"as it was":                       {applied: true, reached: true},
		"another place of etcd's data":    {applied: true, change: moved, want: "spec.etcd.dataDir"},
		"other Pods":                      {applied: true, change: renumbered, want: "spec.network.podCIDRs"},
		"another plan was applied":        {applied: true, plan: "sha256:1", change: moved},
		"before anything was applied":     {change: moved},
		"an older version":                {applied: true, version: "v1.34.0", want: "cannot be downgraded"},
		"a minor version is skipped":      {applied: true, version: "v1.37.0", want: "no minor version may be skipped"},
		"the next version":                {applied: true, version: "v1.36.3"},
		"a setting is left out":           {applied: true, reached: true, change: untuned, want: "spec.system.sysctls"},
		"a setting that nobody has yet":   {applied: true, change: untuned},
		"an older version, never applied": {version: "v1.34.0"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := clusterdir.Of(t.TempDir(), "prod")
			if err != nil {
				t.Fatal(err)
			}
			d := sevenDeclared(t, "v1.35.4")
			d.dir = dir
			d.Spec.System.Sysctls = []spec.Sysctl{{Name: "vm.swappiness", Value: "1"}}
			known := &clusterdir.Inventory{
				Cluster: "prod", Hosts: knownHosts(d), Encryption: d.Spec.Kubernetes.EncryptionAtRest,
				Declared: &clusterdir.Declaration{KubernetesVersion: "v1.35.4", Spec: *d.Spec.DeepCopy()},
			}
			if c.applied {
				known.SetApplied(inventory{known}.names(), true)
				known.SetRunning(c.plan, c.reached)
			}
			if err := dir.WriteInventory(known); err != nil {
				t.Fatal(err)
			}
			if c.version != "" {
				d.KubernetesVersion = c.version
			}
			if c.change != nil {
				c.change(&d.Spec)
			}
			err = d.sameCluster()
			if err == nil {
				err = d.sameVersion("config.yaml")
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
