// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// restartsDir has a file for each component that somebody has asked to be restarted, which is as old as the request is on the host.
// Whatever began before that is older than what it is to obey, as a component is older than a file that it has not read yet. So a run
// that was cut is taken up, by the host's own clock, and nothing is restarted twice for one request.
const restartsDir = host.StateDir + "/restarts"

// Restart is one of components on hosts, which somebody asks for.
type Restart struct {
	// Components are which, of those that a host has.
	Components []spec.ComponentName
	// Asked is when it was asked for. The plan restarts each once for that, however often it is run.
	Asked time.Time
}

// Of is r for those of its components that are among these.
func (r Restart) Of(components []spec.ComponentName) Restart {
	r.Components = slices.DeleteFunc(slices.Clone(r.Components), func(c spec.ComponentName) bool { return !slices.Contains(components, c) })
	return r
}

// Has reports whether a component is to be restarted.
func (r Restart) Has(c spec.ComponentName) bool { return slices.Contains(r.Components, c) }

// AsFor is the end of a sentence about what is done: as asked for, and when.
func (r Restart) AsFor() string { return "as asked for at " + r.Asked.UTC().Format(time.RFC3339) }

// RestartRequest is the file of a component. Its content is when that was asked for.
func RestartRequest(c spec.ComponentName) string {
	return restartsDir + "/" + strings.ToLower(string(c))
}

// Request writes down what is asked for. It comes before all else. While etcd is being restored nothing that has to do with it is started:
// that would be started with what was there before.
func (r Restart) Request(in Inputs, after ...string) step.Step {
	var parts []step.Step
	if in.RunsEtcd() || in.IsControlPlane() {
		parts = append(parts, NoRestore(RestoreUnderWay, RestoreHalted))
	}
	parts = append(parts, step.Directory{Path: restartsDir, Mode: 0o700})
	for _, c := range r.Components {
		parts = append(parts, step.File{
			Path: RestartRequest(c), Mode: 0o600, Content: step.Literal(r.Asked.UTC().Format(time.RFC3339Nano) + "\n"),
		})
	}
	return step.New(step.Meta{Name: "restart/request", Description: "note what is to be restarted, " + r.AsFor(), Takes: after}, parts...)
}

// Unit restarts a unit that is a component. It must stay up for a second.
func (r Restart) Unit(c spec.ComponentName, unit string) step.Step {
	return step.New(step.Meta{
		Name: "restart/" + strings.TrimSuffix(unit, ".service"), Description: "restart " + unit + ", " + r.AsFor(), Disrupts: "restarts " + unit,
		Timeout: step.Duration(3 * time.Minute),
	}, step.Service{Name: unit, Watches: []string{RestartRequest(c)}, Settle: step.Duration(time.Second)})
}

// Works waits until a proxy on its load balancer host answers its health check.
func Works(p Proxy) step.Step {
	return step.New(step.Meta{
		Name: "restart/proxy-works", Description: "wait until " + p.Service() + " works", Timeout: step.Duration(time.Minute),
	}, step.WaitFor{Title: p.Service() + " works", Check: []string{
		"/bin/sh", "-c", p.Check() + " || { echo 'it does not answer its health check'; exit 1; }",
	}})
}

// RestartDone makes Restarted, when all that comes before it on the host is well.
func RestartDone(host string) step.Step {
	return step.New(step.Meta{Name: "restart/done", Description: "what was asked for is restarted", Makes: []string{Restarted(host).Name}})
}
