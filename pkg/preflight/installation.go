// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	kubernetesDir = "/etc/kubernetes"
	kubeletUnit   = "kubelet.service"
	processes     = "preflight/processes"
)

func installationQuery(t spec.Target) host.Query {
	q := host.Query{
		Paths: []host.PathQuery{{Path: kubernetesDir}},
		Units: []string{kubeletUnit},
		// The names of processes, at most 15 bytes each: proc(5), /proc/pid/comm.
		Commands: []host.CommandQuery{{ID: processes, Argv: []string{"sh", "-c", "cat /proc/[0-9]*/comm 2>/dev/null | sort -u"}}},
	}
	if t.HasEtcdMember() {
		q.Paths = append(q.Paths, host.PathQuery{Path: t.Cluster.Etcd.DataDir})
	}
	return q
}

// installation: seed 002, Step_CheckExistingInstallation. On a host that is ours already it is our own.
func installation(r *report) {
	if r.ours() {
		return
	}
	var found []string
	if p := r.f.Paths[kubernetesDir]; p.Entries > 0 || p.Exists && !p.Mode.IsDir() {
		found = append(found, kubernetesDir+" is not empty")
	}
	if u := r.f.Units[kubeletUnit]; u.Load != "" && u.Load != "not-found" {
		found = append(found, fmt.Sprintf("%s is there (%s)", kubeletUnit, u.Active))
	}
	if dir := r.t.Cluster.Etcd.DataDir; r.t.HasEtcdMember() && r.f.Paths[dir].Entries > 0 {
		found = append(found, dir+" is not empty")
	}
	var running []string
	for _, name := range []string{"kube-apiserver", "kube-controller", "kube-proxy", "kube-scheduler", "kubelet", "pause"} {
		if r.runs(name) {
			running = append(running, name)
		}
	}
	if len(running) > 0 {
		found = append(found, "processes of Kubernetes run ("+strings.Join(running, ", ")+")")
	}
	if len(found) > 0 {
		r.error("a Kubernetes that is not ours is on the host: "+strings.Join(found, "; "),
			"remove it with the tool that made it (kubeadm reset), or use another host")
	}
}
