// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade holds the steps around those that bring a Node's host to other programs: another version of Kubernetes, or
// of its container runtime. There are no others: what differs is changed by the steps that made it. On a host that is no Node
// yet, and on one whose programs stay, they do nothing.
package upgrade

import (
	"slices"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	bin = "/usr/local/bin"
	// nodeConf exists once the host is a Node, or about to become one.
	nodeConf = "/etc/kubernetes/kubelet.conf"
)

// Dir exists while programs are replaced.
const Dir = "/etc/kubernetes/kubexm-upgrade"

// Begin comes before the first program in use is replaced: the Node must be drained by then, which is what the output drained
// says. keeps are files that programs write by themselves, and before are commands that are run first.
func Begin(programs []step.Artifact, keeps []string, drained graph.Output[string], before ...step.Command) step.Step {
	about := step.Meta{
		Name: "upgrade/begin", Description: "keep what is there, before programs in use are replaced", Takes: []string{drained.Name},
		Disrupts: "drains the Node",
	}
	for _, b := range before {
		about.Timeout += b.Timeout
	}
	if about.Timeout > 0 {
		about.Timeout += step.Duration(step.DefaultTimeout)
	}
	return step.New(about, step.Savepoint{
		About: "the replacement of its programs", Replaces: step.ProgramsIn(bin, programs), InUse: nodeConf, Dir: Dir,
		Keeps: slices.Clone(keeps), Before: before,
	})
}

// Installed makes done when all that the Node runs is what it must be.
func Installed(done graph.Output[string]) step.Step {
	return step.New(step.Meta{Name: "upgrade/installed", Description: "the Node's programs run", Makes: []string{done.Name}})
}

// End comes when the Node was seen well with its programs, which is what the output verified says; upgraded is made then.
func End(verified, upgraded graph.Output[string]) step.Step {
	return step.New(step.Meta{
		Name: "upgrade/end", Description: "release what was kept of the version before", Makes: []string{upgraded.Name},
		Retry: step.Retry{Attempts: 3, Delay: step.Duration(time.Second)},
	}, step.Commit{Dir: Dir, After: []string{verified.Name}})
}
