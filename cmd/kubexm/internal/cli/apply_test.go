// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// emptyBundle is the directory of a bundle for a version of Kubernetes that has nothing.
func emptyBundle(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	manifest, err := json.Marshal(artifact.Manifest{FormatVersion: artifact.FormatVersion, KubernetesVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, artifact.ManifestName), manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// planFor is the file of a plan for these hosts.
func planFor(t *testing.T, hosts ...string) string {
	t.Helper()
	b := plan.New("CreateCluster", "prod")
	for _, name := range hosts {
		b.Host(name, plan.Module{Name: "os", Tasks: []plan.Task{{Name: "files", Steps: []step.Step{
			step.New(step.Meta{Name: "a"}, step.File{Path: "/etc/a", Content: step.Literal("a")}),
		}}}})
	}
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "plan.json")
	if err := writePlan(p, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestApplyRemembers: the inventory says which hosts a plan was applied to before the first is changed. Hosts that it does not have are
// refused: nobody would know that they were changed.
func TestApplyRemembers(t *testing.T) {
	root := t.TempDir()
	dir := stateOf(t, root)
	if _, err := dir.EnsureAuthorities(pki.CARequest{Key: pki.ECDSAP256}, false); err != nil {
		t.Fatal(err)
	}
	const key = "SHA256:uNiVztksCsDhcc0u9e8BrrJXVGjTbjZ3fOQpyE0VrVk"
	if err := dir.WriteInventory(&clusterdir.Inventory{
		Cluster: "prod", KubernetesVersion: "v1.36.3", Server: "https://127.0.0.1:1", Bundle: emptyBundle(t, "v1.36.3"),
		Hosts: []clusterdir.Host{
			{Name: "cp1", Role: spec.RoleControlPlane, Address: "127.0.0.1", Port: 1, User: "root", HostKey: key},
			{Name: "w1", Role: spec.RoleWorker, Address: "127.0.0.1", Port: 2, User: "root", HostKey: key},
		},
	}); err != nil {
		t.Fatal(err)
	}
	applied := func() []string {
		known, err := dir.Inventory()
		if err != nil {
			t.Fatal(err)
		}
		return known.Applied()
	}
	code, stdout, stderr := runIn(t, root, "apply", planFor(t, "cp1", "w9"))
	if code != exitUsage || !strings.Contains(stderr, "host w9 is not in the inventory of cluster prod") || len(applied()) > 0 {
		t.Errorf("exit code %d, applied to %v: %s%s", code, applied(), stdout, stderr)
	}
	code, stdout, stderr = runIn(t, root, "apply", planFor(t, "cp1"))
	if code != exitFailed || !slices.Equal(applied(), []string{"cp1"}) {
		t.Errorf("exit code %d, applied to %v: %s%s", code, applied(), stdout, stderr)
	}
}

// TestOwned: hosts are the cluster's by their own records, of the same authority, name and role.
func TestOwned(t *testing.T) {
	dir := stateOf(t, t.TempDir())
	if _, err := dir.EnsureAuthorities(pki.CARequest{Key: pki.ECDSAP256}, false); err != nil {
		t.Fatal(err)
	}
	authority, err := dir.Authority()
	if err != nil {
		t.Fatal(err)
	}
	d := &declared{Cluster: &config.Cluster{Name: "prod"}, dir: dir}
	for _, name := range []string{"ours", "fresh", "other", "silent"} {
		d.targets = append(d.targets, spec.Target{Host: spec.Host{Name: name, Role: spec.RoleControlPlane}})
	}
	owner := &host.Owner{Cluster: "prod", Authority: authority, Role: string(spec.RoleControlPlane), Host: "ours"}
	if err := d.findOwned(t.Context(), map[string]*host.Facts{"ours": {Owner: owner}, "fresh": {}, "other": {Owner: owner}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.owned, []string{"ours"}) {
		t.Errorf("%v", d.owned)
	}
}
