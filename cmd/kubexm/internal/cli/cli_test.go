// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/certs"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/inspect"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// TestHelp keeps the whole command line, as help shows it, in one file: the reference.
func TestHelp(t *testing.T) {
	var text strings.Builder
	text.WriteString("# The command kubexm\n\nAll commands and their flags, as `--help` shows them. What they are for is in the [guides](../../README.md#where-to-go).\n")
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		var b bytes.Buffer
		cmd.SetOut(&b)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "\n## %s\n\n```text\n%s```\n", cmd.CommandPath(), b.String())
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				walk(c)
			}
		}
	}
	walk((&app{}).root())
	golden.File(t, "../../../../docs/reference/kubexm.md", text.String())
}

// run runs a command line with a state directory of its own.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Run(t.Context(), append([]string{"--state-dir", t.TempDir()}, args...), Streams{In: strings.NewReader(""), Out: &out, Err: &err}, "v0")
	return code, out.String(), err.String()
}

// TestCommandLine: what is wrong with a command line is said in one line, with the exit code that help promises.
func TestCommandLine(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(bad, []byte("apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster\nmetadata: {name: prod}\nspec: {hots: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(good, []byte(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  hosts: [{name: node1, address: 192.0.2.1, password: secret}]
  roleGroups: {master: [node1]}
  kubernetes: {version: v1.36.3}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"version"}, exitOK, ""},
		{[]string{"get", "clusters"}, exitOK, ""},
		{[]string{"delete", "cluster", "prod"}, exitOK, ""},
		{[]string{"creat"}, exitUsage, "did you mean create?"},
		{[]string{"create"}, exitUsage, "needs a command"},
		{[]string{"create", "clustre"}, exitUsage, "did you mean cluster?"},
		{[]string{"create", "cluster"}, exitUsage, "-f config.yaml"},
		{[]string{"create", "cluster", "-f", "/nonexistent"}, exitUsage, "no such file"},
		{[]string{"create", "cluster", "-f", bad}, exitUsage, "spec.hots"},
		{[]string{"plan", "--no-such-flag"}, exitUsage, "unknown flag"},
		{[]string{"apply"}, exitUsage, "accepts 1 arg"},
		{[]string{"apply", "/nonexistent"}, exitUsage, "no such file"},
		{[]string{"delete", "cluster"}, exitUsage, "give the cluster's name"},
		{[]string{"delete", "cluster", "../etc"}, exitUsage, "use 1 to 63"},
		{[]string{"get", "nodes"}, exitUsage, "there is no cluster"},
		{[]string{"get", "hosts", "prod"}, exitUsage, "there is no cluster prod"},
		{[]string{"get", "clusters", "-o", "xml"}, exitUsage, "none of table, json, yaml, wide"},
		{[]string{"get", "clusters", "-o", "table"}, exitOK, ""},
		{[]string{"kubeconfig", "prod"}, exitUsage, "there is no cluster prod"},
		{[]string{"certs", "check"}, exitUsage, "there is no cluster"},
		{[]string{"certs", "check", "prod"}, exitUsage, "nothing is known of cluster prod"},
		{[]string{"certs", "check", "--warn-days", "-1"}, exitUsage, "no number of days"},
		{[]string{"restart"}, exitUsage, "accepts 1 arg"},
		{[]string{"restart", "kubelet"}, exitUsage, "-f config.yaml"},
		{[]string{"restart", "kube-apiserver", "-f", good}, exitUsage, "there is no component \"kube-apiserver\": there are ContainerRuntime,"},
		{[]string{"restart", "kubelet", "-f", bad}, exitUsage, "spec.hots"},
		{[]string{"restart", "kubelet,proxy", "-f", good}, exitUsage, "kubectl -n kube-system rollout restart daemonset kube-proxy"},
		{[]string{"restart", "kubelet", "-f", good, "--host", "node9"}, exitUsage, "--host: cluster prod has no host node9"},
		{[]string{"restart", "kubelet,etcd", "-f", good, "--host", "node1"}, exitUsage, "nothing is known of cluster prod"},
		{[]string{"certs", "renew", "all"}, exitUsage, "-f config.yaml"},
		{[]string{"certs", "renew", "-f", "/nonexistent"}, exitUsage, "no such file"},
		{[]string{"certs", "renew", "-f", bad}, exitUsage, "spec.hots"},
		{[]string{"certs", "renew", "-f", good}, exitUsage, "nothing is known of cluster prod"},
		{[]string{"run", "command", "--", "true"}, exitUsage, "there is no cluster"},
		{[]string{"run", "plane"}, exitUsage, "there is no cluster"},
		{[]string{"run", "plane", "prod"}, exitUsage, "there is no cluster prod"},
		{[]string{"version", "--log-format", "xml"}, exitUsage, "none of text, json"},
		{[]string{"bundle", "create", "--kubernetes-version", "v1.0.0"}, exitUsage, "v1.0.0"},
		{[]string{"bundle", "create", "--locked"}, exitUsage, "--lock"},
		{[]string{"bundle", "create", "--locked", "--lock", "/nonexistent"}, exitUsage, "no such file"},
		{[]string{"bundle", "create", "--lock", good}, exitUsage, "lock file " + good},
		{[]string{"bundle", "verify", "/nonexistent"}, exitFailed, "no such file"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			code, _, stderr := run(t, c.args...)
			if code != c.code || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, want %d; standard error, want %q:\n%s", code, c.code, c.want, stderr)
			}
		})
	}
}

// TestNobodyToAsk: what takes hosts away is refused where nobody can confirm it.
func TestNobodyToAsk(t *testing.T) {
	root := t.TempDir()
	d, err := clusterdir.Of(root, "prod")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.WriteInventory(&clusterdir.Inventory{Cluster: "prod", Hosts: []clusterdir.Host{{Name: "node1"}}}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"delete", "cluster", "prod"}, {"reset", "host", "node1"}} {
		var stderr bytes.Buffer
		code := Run(t.Context(), append([]string{"--state-dir", root}, args...), Streams{In: strings.NewReader("y\n"), Out: &stderr, Err: &stderr}, "")
		if code != exitUsage || !strings.Contains(stderr.String(), "--yes") {
			t.Errorf("%v: exit code %d: %s", args, code, &stderr)
		}
	}
	if !d.Exists() {
		t.Error("the cluster's state is gone")
	}
}

func TestConfirm(t *testing.T) {
	for answer, fine := range map[string]bool{"y\n": true, "Yes\n": true, "n\n": false, "\n": false, "": false} {
		a := &app{Streams: Streams{In: strings.NewReader(answer), Err: &bytes.Buffer{}, Interactive: true}}
		if err := a.confirm(t.Context(), "x."); (err == nil) != fine {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want int
	}{
		{"done", t.Context(), nil, exitOK},
		{"failed", t.Context(), errors.New("x"), exitFailed},
		{"usage", t.Context(), fmt.Errorf("x: %w", usage("y")), exitUsage},
		{"config", t.Context(), fmt.Errorf("x: %w", &config.Error{}), exitUsage},
		{"not fit", t.Context(), fmt.Errorf("x: %w", &unfit{}), exitPreflight},
		{"state locked", t.Context(), fmt.Errorf("x: %w", &clusterdir.LockedError{}), exitLocked},
		{"plane in use", t.Context(), fmt.Errorf("x: %w", &embedded.InUseError{}), exitLocked},
		{"host locked", t.Context(), fmt.Errorf("x: %w", &host.Error{Kind: host.KindLocked}), exitLocked},
		{"interrupted", ended, errors.New("x"), exitInterrupted},
		{"interrupted after the end", ended, nil, exitOK},
		{"a command on a host", t.Context(), exitStatus(42), 42},
	} {
		if got := exitCode(c.ctx, c.err); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestSummary: one line says what a cluster consists of.
func TestSummary(t *testing.T) {
	const hosts = `
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: prod}
spec:
  kubernetes: {version: v1.36.3}
  hosts:
  - {name: a1, address: 172.16.0.1}
  - {name: a2, address: 172.16.0.2}
  - {name: a3, address: 172.16.0.3}
  - {name: b1, address: 172.16.0.4}
  - {name: c1, address: 172.16.0.5}
  - {name: c2, address: 172.16.0.6}
`
	for groups, want := range map[string]string{
		`
  roleGroups: {master: [a1], worker: [a2, a3, b1, c1, c2]}
`: "prod  v1.36.3  1 control plane · 5 workers · containerd · kubexm etcd",
		`
  roleGroups: {master: ["a[1:3]"], worker: [b1], loadbalancer: [c1, c2]}
  controlPlaneEndpoint: {external: kubexm-kh, address: 172.16.0.100}
  etcd: {type: kubexm}
`: "prod  v1.36.3  3 control planes · 1 worker · 2 load balancers · containerd · kubexm etcd (3)",
		`
  roleGroups: {master: [b1], etcd: ["a[1:3]"], worker: [c1, c2]}
`: "prod  v1.36.3  1 control plane · 2 workers · 3 etcd hosts · containerd · kubexm etcd (3)",
		`
  roleGroups: {master: [b1, c1], worker: ["a[1:3]", c2]}
  controlPlaneEndpoint: {internal: haproxy}
  etcd: {type: external, external: {endpoints: ["http://172.16.9.1:2379"]}}
`: "prod  v1.36.3  2 control planes · 4 workers · containerd · external etcd",
	} {
		c, _, err := config.Parse([]byte(hosts + groups))
		if err != nil {
			t.Fatal(err)
		}
		targets, err := planner.Targets(c)
		if err != nil {
			t.Fatal(err)
		}
		d := &declared{Cluster: c, targets: targets}
		if got := d.summary(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if nodes, others := d.nodes(); nodes+others != len(c.Hosts) ||
			others != strings.Count(groups, "etcd: [")*3+strings.Count(groups, "loadbalancer")*2 {
			t.Errorf("%s: %d Nodes and %d other hosts", want, nodes, others)
		}
	}
}

// TestUnfit: what is the same on several hosts is said once, and warnings are no reason.
func TestUnfit(t *testing.T) {
	problem := func(on string, s preflight.Severity) preflight.Problem {
		return preflight.Problem{Host: on, Check: "os", Severity: s, Cause: "it is old", Remedy: "renew it"}
	}
	got := (&unfit{problems: []preflight.Problem{
		problem("a", preflight.Error), problem("b", preflight.Error), problem("c", preflight.Warning),
	}}).Error()
	want := "preflight: 2 hosts are not fit, nothing was changed:\n  a, b: os: it is old\n    Remedy: renew it"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestFormats keeps every list in every format in one file.
func TestFormats(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	clusters := []inspect.Cluster{
		{Name: "prod", KubernetesVersion: "v1.36.3", Status: "Ready", Server: "https://172.16.0.2:6443", Bundle: "/bundle",
			ControlPlanes: 3, Workers: 5, EtcdHosts: 3, LoadBalancers: 2, ReadyTime: now.Add(-3 * time.Hour)},
		{Name: "new", KubernetesVersion: "v1.36.3", Status: "Incomplete", ControlPlanes: 1},
	}
	nodes := []inspect.Node{{
		Cluster: "prod", Name: "node1", Role: "control-plane", Status: "Ready", Version: "v1.36.3", Address: "172.16.0.2",
		OS: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.1.0", Runtime: "containerd://2.4.2", Since: now.Add(-time.Minute),
	}}
	hosts := []inspect.Host{
		{Cluster: "prod", Name: "node1", Role: spec.RoleControlPlane, Address: "172.16.0.2", User: "ops", Status: "Reachable",
			OS: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.1.0", Arch: "amd64", CPUs: 4, MemoryBytes: 8 << 30, Changes: 71},
		{Cluster: "prod", Name: "node2", Role: spec.RoleWorker, Address: "172.16.0.3", User: "ops", Status: "Unreachable", Message: "cannot connect to 172.16.0.3:22"},
	}
	certificates := []certs.Certificate{
		{Cluster: "prod", Host: "node1",
			File: certificate.File{Path: "/etc/kubernetes/pki/ca.crt", Subject: "kubernetes",
				Authority: true, NotAfter: now.AddDate(10, 0, 0)}, DaysLeft: 3652, Status: certs.Good},
		{Cluster: "prod", Host: "node1",
			File:     certificate.File{Path: "/etc/kubernetes/admin.conf", Subject: "kubernetes-admin", NotAfter: now.Add(-time.Hour)},
			DaysLeft: -1, Status: certs.Expired},
		{Cluster: "prod", Host: "node1", File: certificate.File{Path: "/etc/kubexm/etcd/ssl/x.pem", Message: "not PEM, or cut off"}, Status: certs.Unreadable},
	}
	var text bytes.Buffer
	for _, name := range []string{"", "wide", "json", "yaml"} {
		f := &format{name: name}
		fmt.Fprintf(&text, "===== -o %s\n", name)
		for _, err := range []error{
			list(&text, f, clusters, clusterTable(now)), list(&text, f, nodes, nodeTable(now)), list(&text, f, hosts, hostTable()),
			list(&text, f, certificates, certificateTable()),
			list(&text, f, []inspect.Host(nil), hostTable()),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	golden.File(t, "testdata/formats.golden", text.String())
}

// TestOrphans refuses to make a second cluster over one whose state was lost.
func TestOrphans(t *testing.T) {
	dir, err := clusterdir.Of(t.TempDir(), "prod")
	if err != nil {
		t.Fatal(err)
	}
	d := &declared{
		Cluster: &config.Cluster{Name: "prod"}, dir: dir,
		targets: []spec.Target{{Host: spec.Host{Name: "fresh"}}, {Host: spec.Host{Name: "used"}}, {Host: spec.Host{Name: "silent"}}},
	}
	facts := map[string]*host.Facts{
		"fresh": {}, "used": {Journal: map[string]host.JournalEntry{"kubernetes/kubeadm/kubeadm/control-plane": {}}},
	}
	if got := d.orphans(facts); len(got) != 1 || got[0].Host != "used" || !preflight.Failed(got) {
		t.Errorf("without a state: %v", got)
	}
	if _, err := d.dir.EnsureAuthorities(pki.CARequest{}, d.encrypted()); err != nil {
		t.Fatal(err)
	}
	if got := d.orphans(facts); len(got) > 0 {
		t.Errorf("with its state: %v", got)
	}
}
