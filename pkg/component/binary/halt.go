// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import (
	_ "embed"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

var (
	//go:embed halt.sh
	halt string
	//go:embed halted.sh
	halted string
	//go:embed resume.sh
	resume string
)

// Halt ends the host's control plane, but etcd, for what is done in the directory restore. id is whatever that is, once.
func Halt(restore, id, done string, after ...string) step.Step {
	return step.New(step.Meta{
		Name: "kubernetes/halt", Description: "end the control plane, whose etcd is restored", Disrupts: "ends this host's control plane",
		Timeout: step.Duration(6 * time.Minute), Takes: after, Makes: []string{done},
	}, step.Command{
		Title: "end the control plane", Argv: halting(restore, id, halt),
	}).Until(step.Done{SameInput: true, Check: halting(restore, id, halted)})
}

// Resume starts again what Halt has ended. It is ready when Ready says so.
func Resume(restore, id string, after ...string) step.Step {
	return step.New(step.Meta{
		Name: "kubernetes/resume", Description: "start the control plane with the restored etcd", Takes: after,
	}, step.Command{
		Title: "start the control plane", Argv: halting(restore, id, resume),
	}).Until(step.Done{SameInput: true})
}

func halting(restore, id, script string) []string {
	return []string{
		"/usr/bin/env", "restore=" + restore, "id=" + id, "units=" + apiServer + ".service " + controllerManager + ".service " + scheduler + ".service",
		"/bin/sh", "-uc", script, "kubernetes",
	}
}
