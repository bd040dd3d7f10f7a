// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	_ "embed"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

var (
	//go:embed asked.sh
	asked string
	//go:embed asked-check.sh
	askedCheck string
	//go:embed asked-restart.sh
	askedRestart string
)

// Restart restarts the member, when it began before that was asked for: one in the whole cluster at a time and only while the others have
// quorum, like Member.
func Restart(s Settings, r component.Restart) step.Step {
	s.Clients = nil // nobody has asked for them
	script := func(text string, also ...string) []string {
		return s.script(cluster+run+asked+text, append(also, "asked="+component.RestartRequest(spec.ComponentEtcd))...)
	}
	return step.New(step.Meta{
		Name: "etcd/restart", Description: "restart this host's etcd, " + r.AsFor(), Disrupts: "restarts this host's etcd",
		Timeout: step.Duration(8 * time.Minute),
	}, step.Command{
		Title: "restart etcd", Argv: script(askedRestart, "restart="+cluster+run+asked+restart), Done: step.Done{Check: script(askedCheck)},
	})
}
