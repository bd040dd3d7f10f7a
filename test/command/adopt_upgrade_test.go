// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/workload"
)

// TestTheirsIsUpgraded takes over three control plane hosts and a worker of the minor version before, and brings them to the next one in
// place while somebody writes: Nodes and members stay who they are, and no acknowledged write is lost.
func TestTheirsIsUpgraded(t *testing.T) {
	e := startHosts(t, hosts.Options{Name: "adopt-upgrade", Count: 5}, lab.Bundle(t, "KUBEXM_BUNDLE_PREVIOUS", "bundle-v1.35.4"))
	masters, balancer, worker := e.Hosts[:3], e.Hosts[3], e.Hosts[4]
	old, updated := e.bundle.Manifest().KubernetesVersion, e.bothBundles(lab.Bundle(t, "KUBEXM_BUNDLE", "bundle"))
	e.write(strings.NewReplacer("$VERSION", old, "$LB", balancer.Address).Replace(
		"  roleGroups: {master: [$1, $2, $3], worker: [$5]}\n  kubernetes: {version: $VERSION, encryptionAtRest: {provider: None}}\n" +
			"  etcd: {type: kubeadm}\n  network: {podCIDRs: [10.244.0.0/16], serviceCIDRs: [10.96.0.0/12]}\n" +
			"  controlPlaneEndpoint: {externalLoadBalancer: external, lb_address: $LB}\n"))
	lab.Balance(t, balancer, masters...)

	t.Log("a cluster by kubeadm, " + old)
	e.byKubeadm(foreign{masters: masters, workers: []*hosts.Host{worker}, endpoint: balancer.Address + ":6443"})
	admin, err := os.ReadFile(filepath.Join(e.Dir, "admin.conf"))
	if err != nil {
		t.Fatal(err)
	}
	writes, err := workload.Write(t.Context(), e.apiBy(admin))
	if err != nil {
		t.Fatal(err)
	}
	was, pods, members, nodes := e.running(), e.podsNow(), e.members(masters[0]), e.nodesNow()

	t.Log("adopted, and converged")
	e.ends(0, append([]string{"adopt", "--yes"}, e.declared()...), "4 Nodes", "3 members", "is adopted")
	e.stays(was, pods)
	e.ends(0, e.CreateArgs())

	t.Log("upgraded, " + updated)
	upgrade := append([]string{"upgrade", "cluster", "--yes", "--to", updated}, e.declared()...)
	t.Log(e.ends(0, append(upgrade, "--plan"), worker.Name))
	e.ends(0, upgrade)
	e.ends(0, upgrade, "already")
	e.ends(0, e.CreateArgs(), "0 changes")
	for name, uid := range e.nodesNow() {
		if was := nodes[name]; strings.Fields(was)[0] != strings.Fields(uid)[0] || strings.Fields(uid)[1] != updated {
			t.Errorf("Node %s was %s, and is %s", name, was, uid)
		}
	}
	if diff := cmp.Diff(members, e.members(masters[0])); diff != "" {
		t.Errorf("etcd has other members (-before +after):\n%s", diff)
	}

	t.Log("what was written is there")
	e.keeps(writes)

	t.Log("deleted")
	e.ends(0, []string{"delete", "cluster", e.Name, "--yes", "--known-hosts", e.KnownHosts})
	for _, h := range slices.Concat(masters, e.Hosts[4:]) {
		e.isFree(h, "/etc/kubernetes", "/opt/cni", "/var/lib/kubelet")
	}
}

// bothBundles has the bundles of two versions at hand, and returns the newer one's version.
func (e *environment) bothBundles(newer string) string {
	e.t.Helper()
	to, err := artifact.Open(e.t.Context(), newer, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	e.Bundle = filepath.Join(e.Dir, "bundles")
	if err := os.Mkdir(e.Bundle, 0o755); err != nil {
		e.t.Fatal(err)
	}
	for _, b := range []*artifact.Bundle{e.bundle, to} {
		if err := os.Symlink(b.Dir(), filepath.Join(e.Bundle, b.Manifest().KubernetesVersion)); err != nil {
			e.t.Fatal(err)
		}
	}
	return to.Manifest().KubernetesVersion
}

// nodesNow are the Nodes' UIDs and versions.
func (e *environment) nodesNow() map[string]string {
	e.t.Helper()
	out := e.sh(e.Hosts[0], `kubectl --kubeconfig /etc/kubernetes/admin.conf get nodes -o 'jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.nodeInfo.kubeletVersion}{"\n"}{end}'`)
	all := map[string]string{}
	for line := range strings.Lines(out) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name] = rest
	}
	return all
}
