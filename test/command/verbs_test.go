// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestVerbs makes a cluster by a plan that is read first, asks all that can be asked of it, resets a host by itself, makes it a Node
// again, and deletes the cluster. Nothing but what says so changes a host.
func TestVerbs(t *testing.T) {
	e := start(t, "verbs", 2)
	master, worker := e.Hosts[0], e.Hosts[1]
	e.ends(0, []string{"bundle", "verify", e.Bundle})
	e.write("  roleGroups: {master: [$1], worker: [$2]}\n")

	t.Log("dry runs and plans change nothing")
	e.ends(0, append([]string{"create", "cluster", "--dry-run"}, e.declared()...), master.Name, worker.Name)
	saved := filepath.Join(e.Dir, "plan.json")
	e.ends(0, append([]string{"plan", "-o", saved}, e.declared()...), master.Name, worker.Name)
	e.unchanged(e.Hosts...)
	e.keepsSecrets(saved)

	t.Log("a plan is applied")
	e.ends(0, append([]string{"apply", saved}, e.declared()...))
	e.ends(0, append([]string{"plan"}, e.declared()...), "No changes.")
	e.ends(0, e.CreateArgs(), "0 changes")

	t.Log("what can be asked")
	known := []string{"--known-hosts", e.KnownHosts}
	e.ends(0, []string{"get", "clusters"}, e.Name, e.bundle.Manifest().KubernetesVersion)
	e.ends(0, []string{"get", "nodes"}, master.Name, worker.Name, "Ready")
	e.ends(0, append([]string{"get", "hosts", "-o", "wide"}, known...), master.Address, worker.Address)
	e.ends(0, append([]string{"describe", "cluster", e.Name}, known...), "Hosts:", "Nodes:", worker.Name)
	e.ends(0, append([]string{"certs", "check"}, known...))
	e.ends(0, []string{"audit", "list"}, e.Name)
	out := e.ends(0, append([]string{"run", "command", "--hosts", worker.Name}, append(known, "--", "cat", "/etc/hostname")...), worker.Name)
	if strings.Contains(out, master.Name) {
		t.Errorf("a command ran on a host that was not named:\n%s", out)
	}
	e.ends(7, append([]string{"run", "command"}, append(known, "--", "sh", "-c", "exit 7")...))
	e.kubeconfig()

	t.Log("what was changed by hand is shown in lines, and changed back when asked")
	const file, line = "/etc/sysctl.d/99-kubexm-cri.conf", "vm.swappiness = 7"
	e.sh(worker, "echo '"+line+"' >>"+file)
	shown := []string{worker.Name, "file " + file, "-" + line}
	e.ends(0, []string{"describe", "cluster", "-f", e.Config(), "--known-hosts", e.KnownHosts}, append(shown, "Drift:")...)
	e.ends(0, append([]string{"plan"}, e.declared()...), shown...)
	e.sh(worker, "grep -qx '"+line+"' "+file)
	e.ends(0, e.CreateArgs())
	e.sh(worker, "! grep -qx '"+line+"' "+file)
	e.ends(0, append([]string{"plan"}, e.declared()...), "No changes.")

	t.Log("one host is reset, and becomes a Node again")
	e.ends(0, append([]string{"reset", "host", worker.Name, "--yes"}, known...), worker.Name)
	e.unchanged(worker)
	e.ends(0, append([]string{"plan"}, e.declared()...), worker.Name)
	e.ends(0, e.CreateArgs())
	e.ends(0, e.CreateArgs(), "0 changes")
	e.ends(0, []string{"get", "nodes"}, worker.Name)

	t.Log("deleted")
	e.ends(0, append([]string{"delete", "cluster", e.Name, "--yes"}, known...))
	e.ends(0, append([]string{"delete", "cluster", e.Name, "--yes"}, known...))
	e.unchanged(e.Hosts...)
}

// keepsSecrets wants a plan that is written down to have no private key in it, and to be for its owner alone.
func (e *environment) keepsSecrets(path string) {
	e.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		e.t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		e.t.Errorf("the plan is for more than its owner: %v, %v", info, err)
	}
	if !json.Valid(content) || strings.Contains(string(content), "PRIVATE KEY") {
		e.t.Error("the plan is not JSON, or has a private key in it")
	}
}

// kubeconfig wants the program to print one that works.
func (e *environment) kubeconfig() {
	e.t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(e.ends(0, []string{"kubeconfig", e.Name})))
	if err != nil {
		e.t.Fatal(err)
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		e.t.Fatal(err)
	}
	nodes, err := api.CoreV1().Nodes().List(e.t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != len(e.Hosts) {
		e.t.Fatalf("%d Nodes (%v)", len(nodes.Items), err)
	}
}
