// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/tables"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	systems "github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/tables"
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

// otherRuntimes are those that the cluster does not have, in a fixed order.
func otherRuntimes(t spec.Target) []component.Foreign {
	runtimes := maps.Clone(tables.Runtimes)
	delete(runtimes, t.Cluster.ContainerRuntime.Type)
	var others []component.Foreign
	for _, name := range slices.Sorted(maps.Keys(runtimes)) {
		others = append(others, runtimes[name].Foreign())
	}
	return others
}

func runtimeQuery(t spec.Target) host.Query {
	f, ok := foreignRuntime(t)
	if !ok {
		return host.Query{}
	}
	q := host.Query{Units: []string{f.Unit, dockerUnit}}
	paths := append(slices.Clone(f.Files), f.Socket, t.Cluster.ContainerRuntime.DataDir)
	for _, o := range otherRuntimes(t) {
		q.Units, paths = append(q.Units, o.Unit), append(paths, o.Socket)
	}
	for _, path := range paths {
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
	running := func(f component.Foreign) []string {
		if there(f.Unit) {
			return []string{fmt.Sprintf("%s is there (%s)", f.Unit, r.f.Units[f.Unit].Active)}
		}
		if r.f.Paths[f.Socket].Mode.Type() == fs.ModeSocket && r.runs(f.Process) {
			return []string{fmt.Sprintf("a process %s runs and %s is there", f.Process, f.Socket)}
		}
		return nil
	}
	found := running(f)
	for _, path := range f.Files {
		if r.f.Paths[path].Exists {
			found = append(found, path+" is there")
		}
	}
	if dir := r.t.Cluster.ContainerRuntime.DataDir; r.f.Paths[dir].Entries > 0 {
		found = append(found, dir+" is not empty")
	}
	remove := "remove"
	if os, err := systems.Of(r.f.System.OSID, r.f.System.OSVersion); err == nil {
		remove = os.Packages().Remove
	}
	docker := there(dockerUnit) || r.runs("dockerd")
	// Two runtimes would each keep their pods' networks, images and control groups on a host that has one kubelet.
	alone := true
	for _, o := range otherRuntimes(r.t) {
		if there := running(o); len(there) > 0 {
			alone = false
			packages := o.Remove
			if docker {
				packages = o.RemoveBoth
			}
			r.error(fmt.Sprintf("a %s is on the host, and %s is to run its pods: %s", o.Name, f.Name, strings.Join(there, "; ")),
				fmt.Sprintf("remove it (%s) and what it leaves, choose it as containerRuntime.type, or use another host", remove+" "+packages))
		}
	}
	switch {
	case len(found) > 0 && docker:
		r.error(fmt.Sprintf("a %s that is not ours is on the host, and Docker: %s", f.Name, strings.Join(found, "; ")),
			fmt.Sprintf("remove both (%s) and what they leave, or use another host", remove+" "+f.RemoveBoth))
	case len(found) > 0:
		r.error(fmt.Sprintf("a %s that is not ours is on the host: %s", f.Name, strings.Join(found, "; ")),
			fmt.Sprintf("remove it (%s) and what it leaves, or use another host", remove+" "+f.Remove))
	case docker && alone:
		r.warn("Docker is on the host and stays, with a runtime of its own", "none is needed; remove it if nothing uses it")
	}
}
