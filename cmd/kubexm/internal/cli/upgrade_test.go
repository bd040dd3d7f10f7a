// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/inspect"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

const sevenHosts = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  hosts:
  - {name: cp1, address: 172.16.0.1, password: secret}
  - {name: cp2, address: 172.16.0.2, password: secret}
  - {name: cp3, address: 172.16.0.7, password: secret}
  - {name: lb1, address: 172.16.0.3, password: secret}
  - {name: w3, address: 172.16.0.4, password: secret}
  - {name: w1, address: 172.16.0.5, password: secret}
  - {name: gpu1, address: 172.16.0.6, password: secret, labels: {gpu: "yes"}}
  roleGroups: {master: ["cp[1:3]"], loadbalancer: [lb1], worker: [w3, w1, gpu1]}
  controlPlaneEndpoint: {external: kubexm-kh, address: 172.16.0.100}
  kubernetes: {version: v1.35.4, type: kubexm}
`

func sevenDeclared(t *testing.T, version string) *declared {
	t.Helper()
	c, _, err := config.Parse([]byte(strings.Replace(sevenHosts, "v1.35.4", version, 1)))
	if err != nil {
		t.Fatal(err)
	}
	targets, err := planner.Targets(c)
	if err != nil {
		t.Fatal(err)
	}
	return &declared{Cluster: c, targets: targets}
}

func knownHosts(d *declared) []clusterdir.Host {
	var all []clusterdir.Host
	for i := range d.Hosts {
		all = append(all, clusterdir.Host{Name: d.Hosts[i].Name, Role: d.Hosts[i].Spec().Role})
	}
	return all
}

// TestTurns keeps in one file in which order hosts are upgraded, as it is shown.
func TestTurns(t *testing.T) {
	const old, updated = "v1.35.4", "v1.36.3"
	born := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	node := func(name, version string, after time.Duration) inspect.Node {
		return inspect.Node{Name: name, Version: version, Since: born.Add(after), Status: "Ready", TakesPods: !strings.HasPrefix(name, "cp")}
	}
	nodes := []inspect.Node{
		node("cp1", old, time.Hour), node("cp2", old, 0), node("cp3", old, time.Minute),
		node("w1", old, 0), node("w3", old, 0), node("gpu1", old, 0),
	}
	begun := []inspect.Node{
		node("cp1", updated, time.Hour), node("cp2", updated, 0), node("cp3", updated, 0),
		node("w1", updated, 0), node("w3", old, 0), node("gpu1", old, 0),
	}
	alone := []inspect.Node{node("cp1", old, 0), node("cp2", old, 0), node("cp3", old, 0), node("w1", old, 0)}
	var text bytes.Buffer
	for _, c := range []struct {
		name    string
		options upgradeOptions
		nodes   []inspect.Node
	}{
		{"in place", upgradeOptions{strategy: "InPlace", concurrency: 1}, nodes},
		{"a canary, and two at once", upgradeOptions{strategy: "InPlace", concurrency: 2, canary: "w3"}, nodes},
		{"the control plane alone, replaced", upgradeOptions{strategy: "RollingUpdate", concurrency: 1, controlPlaneOnly: true}, nodes},
		{"workers alone", upgradeOptions{strategy: "InPlace", concurrency: 1, workersOnly: true}, nodes},
		{"one worker alone takes Pods", upgradeOptions{strategy: "InPlace", concurrency: 1}, alone},
		{"what was interrupted", upgradeOptions{strategy: "InPlace", concurrency: 1}, begun},
	} {
		u := &upgrade{declared: sevenDeclared(t, updated), upgradeOptions: &c.options, known: &clusterdir.Inventory{KubernetesVersion: old}}
		fmt.Fprintf(&text, "===== %s\n", c.name)
		if err := list(&text, newFormat(), turns(u, c.nodes), turnTable()); err != nil {
			t.Fatal(err)
		}
	}
	golden.File(t, "testdata/turns.golden", text.String())
}

// TestNodeProblems: an upgrade begins with a cluster that is well.
func TestNodeProblems(t *testing.T) {
	const old, updated = "v1.35.4", "v1.36.3"
	d := sevenDeclared(t, updated)
	nodes := func(change func(map[string]*inspect.Node)) []inspect.Node {
		all := map[string]*inspect.Node{}
		for _, target := range d.targets {
			if target.Host.Role.IsNode() {
				all[target.Host.Name] = &inspect.Node{Name: target.Host.Name, Version: old, Status: "Ready"}
			}
		}
		change(all)
		var list []inspect.Node
		for _, n := range all {
			list = append(list, *n)
		}
		return list
	}
	for _, c := range []struct {
		name   string
		change func(map[string]*inspect.Node)
		want   []string
	}{
		{"all is well", func(map[string]*inspect.Node) {}, nil},
		{"somebody has cordoned one", func(n map[string]*inspect.Node) { n["w1"].Status = "Ready,SchedulingDisabled" }, nil},
		{"one is not Ready", func(n map[string]*inspect.Node) { n["w1"].Status, n["w1"].Message = "NotReady", "kubelet is gone" },
			[]string{"w1 its Node is NotReady: kubelet is gone"}},
		{"one is no Node", func(n map[string]*inspect.Node) { delete(n, "w3") }, []string{"w3 it is no Node of the cluster"}},
		{"one is elsewhere", func(n map[string]*inspect.Node) { n["cp1"].Version = "v1.34.0" },
			[]string{"cp1 its kubelet has v1.34.0, neither v1.35.4 nor v1.36.3"}},
	} {
		var got []string
		for _, p := range nodeProblems(nodes(c.change), d.targets, old, updated) {
			got = append(got, p.Host+" "+p.Cause)
			if p.Remedy == "" {
				t.Errorf("%s: no remedy", c.name)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestUpgradeRefused: what cannot be is refused before anything is touched, by the command that is not for it as well.
func TestUpgradeRefused(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(t.TempDir(), "config.yaml")
	declare := func(version string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(strings.Replace(sevenHosts, "v1.35.4", version, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	declare("v1.35.4")
	dir, err := clusterdir.Of(root, "prod")
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (int, string) {
		var out bytes.Buffer
		args = append(append([]string{"--state-dir", root}, args...), "-f", file)
		return Run(t.Context(), args, Streams{In: strings.NewReader(""), Out: &out, Err: &out}, ""), out.String()
	}
	refused := func(want string, args ...string) {
		t.Helper()
		if code, text := run(args...); code != exitUsage || !strings.Contains(text, want) {
			t.Errorf("%v: exit code %d, want %q:\n%s", args, code, want, text)
		}
	}
	upgrade := func(args ...string) []string { return append([]string{"upgrade", "cluster"}, args...) }

	refused("bring it up first", upgrade("--to", "v1.36.3")...)
	known := &clusterdir.Inventory{
		Cluster: "prod", KubernetesVersion: "v1.35.4", Hosts: knownHosts(sevenDeclared(t, "v1.35.4")), ReadyTime: time.Now(),
	}
	if err := errors.Join(dir.WriteInventory(known), os.MkdirAll(dir.Plane(), 0o700)); err != nil {
		t.Fatal(err)
	}
	known.Recovered = time.Now() // and what has begun to take it in was cut
	if err := dir.WriteInventory(known); err != nil {
		t.Fatal(err)
	}
	refused("was recovered, and no management plane has it yet", upgrade("--to", "v1.36.3")...)
	known.Recovered = time.Time{}
	if err := dir.WriteInventory(known); err != nil {
		t.Fatal(err)
	}
	refused("cannot be downgraded", upgrade("--to", "v1.34.9")...)
	refused("upgrade to a v1.36 first", upgrade("--to", "v1.37.0")...)
	refused("--to: Invalid value", upgrade("--to", "1.36")...)
	refused(`--strategy: "OnDelete" is none of InPlace, RollingUpdate`, upgrade("--strategy", "OnDelete")...)
	refused("give one of them", upgrade("--control-plane-only", "--workers-only")...)
	refused("want 1 or more", upgrade("--node-concurrency", "0")...)
	refused("--canary: it is for workers", upgrade("--canary", "w1", "--control-plane-only")...)
	known.Upgrading = "v1.35.9"
	if err := dir.WriteInventory(known); err != nil {
		t.Fatal(err)
	}
	refused("finish it first, with --to v1.35.9", upgrade("--to", "v1.36.3")...)
	known.Upgrading = ""
	if err := dir.WriteInventory(known); err != nil {
		t.Fatal(err)
	}
	refused("there are no artifacts for it", upgrade("--to", "v1.36.99")...)
	if content, err := os.ReadFile(file); err != nil || !strings.Contains(string(content), "v1.35.4") {
		t.Errorf("the config file was changed (%v)", err)
	}

	known.Hosts = append(known.Hosts, clusterdir.Host{Name: "w9", Role: spec.RoleWorker})
	if err := dir.WriteInventory(known); err != nil {
		t.Fatal(err)
	}
	refused("w9: an upgrade changes no hosts", upgrade("--to", "v1.36.3")...)
}

// TestSameVersion: a cluster that runs is not upgraded in passing.
func TestSameVersion(t *testing.T) {
	for _, c := range []struct {
		known     string
		upgrading string
		ready     bool
		recovered bool
		declared  string
		want      string
	}{
		{"v1.35.4", "", true, false, "v1.35.4", ""},
		{"v1.35.4", "", false, false, "v1.36.3", ""},
		{"v1.35.4", "", false, true, "v1.36.3", "kubexm upgrade cluster -f my.yaml"},
		{"v1.35.4", "", true, false, "v1.36.3", "kubexm upgrade cluster -f my.yaml"},
		{"v1.36.3", "", true, false, "v1.35.4", "cannot be downgraded"},
		{"v1.35.4", "v1.36.3", true, false, "v1.35.4", "being upgraded to v1.36.3: kubexm upgrade cluster -f my.yaml --to v1.36.3"},
		{"v1.35.4", "v1.36.3", true, false, "v1.36.3", "being upgraded to v1.36.3"},
	} {
		dir, err := clusterdir.Of(t.TempDir(), "prod")
		if err != nil {
			t.Fatal(err)
		}
		known := &clusterdir.Inventory{Cluster: "prod", KubernetesVersion: c.known, Upgrading: c.upgrading}
		if c.ready {
			known.ReadyTime = time.Now()
		}
		if c.recovered {
			known.Recovered = time.Now()
		}
		if err := dir.WriteInventory(known); err != nil {
			t.Fatal(err)
		}
		d := sevenDeclared(t, c.declared)
		d.dir = dir
		err = d.sameVersion("my.yaml")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s to %s: %v, want %q", c.known, c.declared, err, c.want)
		}
	}
}

func TestDeclareVersion(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "config.yaml")
	if err := errors.Join(os.WriteFile(file, []byte(sevenHosts), 0o640), os.Symlink("real.yaml", link)); err != nil {
		t.Fatal(err)
	}
	content, err := withVersion(link, "v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	u := &upgrade{
		declared: &declared{Cluster: &config.Cluster{}}, upgradeOptions: &upgradeOptions{source: source{file: link}}, content: content,
	}
	if err := u.declareVersion(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Replace(sevenHosts, "v1.35.4", "v1.36.3", 1), string(got)); diff != "" {
		t.Error(diff)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone (%v)", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v (%v)", info.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".kubexm-*")); err != nil || len(left) > 0 {
		t.Errorf("left are %v (%v)", left, err)
	}
}

// TestOwnerIsKept: a file that root replaces, as by sudo, stays its owner's.
func TestOwnerIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	owner := os.Geteuid()
	if owner == 0 {
		owner = 12345
		if err := os.Chown(file, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	if err := replaceFile(file, []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if is := info.Sys().(*syscall.Stat_t); int(is.Uid) != owner || info.Mode().Perm() != 0o600 {
		t.Errorf("it is %d's with the mode %v, want %d's", is.Uid, info.Mode(), owner)
	}
}

// TestMaintenanceWindows: an upgrade begins in one, and is finished whenever.
func TestMaintenanceWindows(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	u := &upgrade{
		declared: sevenDeclared(t, "v1.36.3"), upgradeOptions: &upgradeOptions{}, known: &clusterdir.Inventory{KubernetesVersion: "v1.35.4"},
	}
	if err := u.inWindow(noon); err != nil {
		t.Errorf("without windows: %v", err)
	}
	u.Spec.Disruption = spec.Disruption{
		Approval: spec.ApprovalRequired, MaintenanceWindows: []spec.MaintenanceWindow{{Start: "0 22 * * SAT", DurationMinutes: 60}},
	}
	var refused usageError
	if err := u.inWindow(noon); !errors.As(err, &refused) ||
		!strings.Contains(err.Error(), "opens at Sat 2026-11-21 22:00 UTC") || !strings.Contains(err.Error(), "--any-time") {
		t.Errorf("outside of them: %v", err)
	}
	if err := u.inWindow(noon.Add(10 * time.Hour)); err != nil {
		t.Errorf("in one: %v", err)
	}
	u.known.Upgrading = "v1.36.3"
	if err := u.inWindow(noon); err != nil {
		t.Errorf("one that has begun: %v", err)
	}
	u.known.Upgrading, u.anyTime = "", true
	if err := u.inWindow(noon); err != nil {
		t.Errorf("at any time: %v", err)
	}
}

// TestUpgradePlanChangesNothing: neither the config file, though --to differs from it, nor the record of who changed what.
func TestUpgradePlanChangesNothing(t *testing.T) {
	root := t.TempDir()
	dir := stateOf(t, root)
	c, _, err := config.Parse([]byte(sevenHosts))
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteInventory(&clusterdir.Inventory{
		Cluster: "prod", KubernetesVersion: "v1.36.3", ReadyTime: time.Now(), Hosts: knownHosts(&declared{Cluster: c}),
		Encryption: c.Spec.Kubernetes.EncryptionAtRest,
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir.Plane(), 0o700); err != nil {
		t.Fatal(err)
	}
	file := configFile(t, sevenHosts)
	command := []string{"upgrade", "cluster", "-f", file, "--to", "v1.36.3", "--bundle", emptyBundle(t, "v1.36.3")}
	for _, plan := range []bool{true, false} {
		args := command
		if plan {
			args = append(slices.Clone(command), "--plan")
		}
		code, stdout, stderr := runIn(t, root, args...)
		if code != exitOK || !strings.Contains(stdout, "has v1.36.3 already") {
			t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(filepath.Join(root, "audit"))
		if changed, recorded := string(content) != sevenHosts, err == nil; changed == plan || recorded == plan {
			t.Errorf("plan %t: the config file is changed: %t; recorded: %t", plan, changed, recorded)
		}
	}
}
