// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package command

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// TestRestart has components restarted on a cluster of each kind: just their processes are others then, pods go on while the runtime and
// the kubelet restart, and what was restarted is as it must be.
func TestRestart(t *testing.T) {
	const version = "  kubernetes: {version: $VERSION, type: "
	for _, kind := range []struct{ name, spec, refused, says string }{
		{"kubeadm", version + "kubeadm}\n  etcd: {type: kubeadm}\n", "proxy", "rollout restart daemonset kube-proxy"},
		{"kubexm", version + "kubexm}\n", "loadbalancer", "has no LoadBalancer that can be restarted"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			e := start(t, "restart-"+kind.name, 1)
			master := e.Hosts[0]
			e.write("  roleGroups: {master: [$1]}\n" + strings.ReplaceAll(kind.spec, "$VERSION", e.bundle.Manifest().KubernetesVersion))
			e.ends(0, e.CreateArgs())
			restart := func(code int, components string, also ...string) string {
				t.Helper()
				return e.ends(code, slices.Concat([]string{"restart", components}, e.reached(), also))
			}

			e.awaitPods()
			before := e.processes(master)
			if out := restart(0, "kubelet,apiserver", "--dry-run"); !strings.Contains(out, "restarts kubelet.service") {
				t.Errorf("a dry run says:\n%s", out)
			}
			if out := restart(2, kind.refused); !strings.Contains(out, kind.says) {
				t.Errorf("%s is refused with:\n%s", kind.refused, out)
			}
			before = e.areOthers(master, before)

			out := restart(0, "kubelet,ContainerRuntime", "--host", master.Name)
			if !strings.Contains(out, "ContainerRuntime,Kubelet of "+e.Name+" on 1 host restarted in ") {
				t.Errorf("it says:\n%s", out)
			}
			before = e.areOthers(master, before, "kubelet", "containerd")
			// An API server that is away for a while may cost the others their lease, by which they end: what has none stays.
			restart(0, "scheduler")
			before = e.areOthers(master, before, "kube-scheduler")
			restart(0, "etcd,apiserver")
			e.areOthers(master, before, "etcd", "kube-apiserver", "kube-scheduler?", "kube-controller?")
			e.ends(0, append([]string{"plan"}, e.declared()...), "No changes.")
			e.ends(0, []string{"get", "nodes"}, master.Name, "Ready")
			e.ends(0, []string{"delete", "cluster", e.Name, "--yes", "--known-hosts", e.KnownHosts})
			e.unchanged(e.Hosts...)
		})
	}
}

// awaitPods waits until all of the cluster's Pods are Ready: a cluster is made before its DNS is.
func (e *environment) awaitPods() {
	e.t.Helper()
	kubectl := filepath.Join(e.Bundle, "kubernetes", e.bundle.Manifest().KubernetesVersion, runtime.GOARCH, "kubectl")
	for _, args := range [][]string{
		{"rollout", "status", "deployment/coredns", "--namespace=kube-system", "--timeout=5m"},
		{"wait", "--for=condition=Ready", "pod", "--all", "--all-namespaces", "--timeout=5m"},
	} {
		cmd := exec.CommandContext(e.t.Context(), kubectl, append(args, "--kubeconfig="+e.Kubeconfig())...)
		if out, err := cmd.CombinedOutput(); err != nil {
			e.t.Fatalf("kubectl %s: %v: %s", args[0], err, out)
		}
	}
}

// processes are those of the components and of pods on a host, by name: as pgrep has them, which knows 15 letters.
func (e *environment) processes(h *hosts.Host) map[string]string {
	e.t.Helper()
	all := map[string]string{}
	for _, name := range []string{"kubelet", "containerd", "etcd", "kube-apiserver",
		"kube-controller", "kube-scheduler", "kube-proxy", "flanneld", "coredns"} {
		all[name] = strings.Join(strings.Fields(e.sh(h, "pgrep -x "+name)), " ")
		if all[name] == "" {
			e.t.Errorf("%s does not run on %s", name, h.Name)
		}
	}
	return all
}

// areOthers wants just these processes of a host to be others than before; of what has a question mark, either will do.
func (e *environment) areOthers(h *hosts.Host, before map[string]string, which ...string) map[string]string {
	e.t.Helper()
	now := e.processes(h)
	for name, is := range now {
		if want := slices.Contains(which, name); !slices.Contains(which, name+"?") && want != (is != before[name]) {
			e.t.Errorf("%s is %s and was %s, and is to be another: %t", name, is, before[name], want)
		}
	}
	return now
}
