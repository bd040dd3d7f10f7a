// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/tables"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const dockerUnit = "docker.service"

// foreignRuntime is how a runtime of others is recognised; ok is false for a host that gets none of ours.
func foreignRuntime(t spec.Target) (f component.Foreign, ok bool) {
	runtime := tables.Runtimes[t.Cluster.ContainerRuntime.Type]
	if runtime == nil || !t.Host.Role.IsNode() {
		return f, false
	}
	return runtime.Foreign(), true
}

func runtimeQuery(t spec.Target) host.Query {
	f, ok := foreignRuntime(t)
	if !ok {
		return host.Query{}
	}
	q := host.Query{Units: []string{f.Unit, dockerUnit}}
	for _, path := range append(f.Files, f.Socket, t.Cluster.ContainerRuntime.DataDir) {
		q.Paths = append(q.Paths, host.PathQuery{Path: path})
	}
	return q
}

// containerRuntime: a runtime of others, whether Docker's or its own, has the socket, the unit and the directories that ours is to
// have. Docker with a runtime that it starts itself has not.
func containerRuntime(r *report) {
	f, ok := foreignRuntime(r.t)
	if r.ours() || !ok {
		return
	}
	there := func(unit string) bool { load := r.f.Units[unit].Load; return load != "" && load != "not-found" }
	var found []string
	if there(f.Unit) {
		found = append(found, fmt.Sprintf("%s is there (%s)", f.Unit, r.f.Units[f.Unit].Active))
	} else if r.f.Paths[f.Socket].Mode.Type() == fs.ModeSocket && r.runs(f.Process) {
		found = append(found, fmt.Sprintf("a process %s runs and %s is there", f.Process, f.Socket))
	}
	for _, path := range f.Files {
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
		r.error(fmt.Sprintf("a %s that is not ours is on the host, and Docker: %s", f.Name, strings.Join(found, "; ")),
			fmt.Sprintf("remove both (%s) and what they leave, or use another host", f.RemoveBoth))
	case len(found) > 0:
		r.error(fmt.Sprintf("a %s that is not ours is on the host: %s", f.Name, strings.Join(found, "; ")),
			fmt.Sprintf("remove it (%s) and what it leaves, or use another host", f.Remove))
	case docker:
		r.warn(fmt.Sprintf("Docker is on the host and stays, with a %s of its own", f.Name), "none is needed; remove it if nothing uses it")
	}
}
