// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	containerdSocket = "/run/containerd/containerd.sock"
	containerdUnit   = "containerd.service"
	dockerUnit       = "docker.service"
)

// runtimeFiles are what a runtime of ours is made of, and would take the place of. Packages of distributions have their
// programs in /usr/bin and their units below /lib, and this configuration.
func runtimeFiles() []string {
	return []string{
		"/etc/containerd/config.toml", "/etc/systemd/system/" + containerdUnit,
		"/usr/local/bin/containerd", "/usr/local/bin/containerd-shim-runc-v2", "/usr/local/bin/ctr", "/usr/local/bin/runc",
	}
}

func runtimeQuery(t spec.Target) host.Query {
	if !t.Host.Role.IsNode() {
		return host.Query{}
	}
	q := host.Query{Units: []string{containerdUnit, dockerUnit}}
	for _, path := range append(runtimeFiles(), containerdSocket, t.Cluster.ContainerRuntime.DataDir) {
		q.Paths = append(q.Paths, host.PathQuery{Path: path})
	}
	return q
}

// containerRuntime: a containerd of others, whether Docker's or its own, has the socket, the unit and the directories that ours
// is to have. Docker with a containerd that it starts itself has not.
func containerRuntime(r *report) {
	if r.ours() || !r.t.Host.Role.IsNode() {
		return
	}
	there := func(unit string) bool { load := r.f.Units[unit].Load; return load != "" && load != "not-found" }
	var found []string
	if there(containerdUnit) {
		found = append(found, fmt.Sprintf("%s is there (%s)", containerdUnit, r.f.Units[containerdUnit].Active))
	} else if r.f.Paths[containerdSocket].Mode.Type() == fs.ModeSocket && r.runs("containerd") {
		found = append(found, "a process containerd runs and "+containerdSocket+" is there")
	}
	for _, path := range runtimeFiles() {
		if r.f.Paths[path].Exists {
			found = append(found, path+" is there")
		}
	}
	if dir := r.t.Cluster.ContainerRuntime.DataDir; r.f.Paths[dir].Entries > 0 {
		found = append(found, dir+" is not empty")
	}
	docker := there(dockerUnit) || r.runs("dockerd")
	switch {
	case len(found) > 0 && docker:
		r.error("a containerd that is not ours is on the host, and Docker: "+strings.Join(found, "; "),
			"remove both (apt-get purge docker.io containerd, or docker-ce containerd.io) and what they leave, or use another host")
	case len(found) > 0:
		r.error("a containerd that is not ours is on the host: "+strings.Join(found, "; "),
			"remove it (apt-get purge containerd, or containerd.io) and what it leaves, or use another host")
	case docker:
		r.warn("Docker is on the host and stays, with a containerd of its own", "none is needed; remove it if nothing uses it")
	}
}
