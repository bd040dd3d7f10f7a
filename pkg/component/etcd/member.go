// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	_ "embed"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

var (
	//go:embed cluster.sh
	clusterScript string
	//go:embed run.sh
	run string
	//go:embed member.sh
	member string
	//go:embed member-check.sh
	memberCheck string
	//go:embed restart.sh
	restart string
	//go:embed older.sh
	older string
	//go:embed members.sh
	members string
	//go:embed members-check.sh
	membersCheck string
	//go:embed database.sh
	database string
	//go:embed maintenance.sh
	maintenance string
	//go:embed maintain.sh
	maintain string
	//go:embed maintenance-check.sh
	maintenanceCheck string
)

// cluster is what the scripts of this package begin with.
var cluster = clusterScript + component.EtcdLock

// loose is from which size on, in bytes, a database that is more than half free is made small again.
const loose = "104857600"

// asides are the endings under which data of a removed member is set aside, each of them once.
var asides = []string{"1", "2", "3"}

// script is the command that runs a script for this member. What it must know is in its environment, also for the scripts that
// it starts in turn: so nothing needs to be quoted.
func (s Settings) script(text string, also ...string) []string {
	mode := spec.BootstrapJoin
	if s.First {
		mode = spec.BootstrapInit
	}
	config, content := s.config()
	argv := append([]string{
		"/usr/bin/env", "form=" + string(s.Form), "name=" + s.Name, "host=" + host.InURL(s.Address), "bootstrap=" + string(mode),
		"cluster=" + s.Cluster,
		"others=" + words(s.others()), "leaving=" + words(s.leaving()), "known=" + words(s.known()), "gone=" + words(s.Gone),
		"dir=" + dir, "data=" + s.Spec.DataDir, "wal=" + s.walDir(), "config=" + config, "digest=" + sha(content),
		"program=" + bin + "/etcd", "run=/run/" + runtime, "manifest=" + manifest, "loose=" + loose, "asides=" + words(asides),
		"users=" + words(s.Clients),
		"restoring=" + component.RestoreUnderWay,
	}, also...)
	return append(argv, "/bin/sh", "-uc", text, "etcd")
}

// Member makes the host a voting member: it begins the cluster or joins it, and keeps etcd running with what it is to run
// with. A member that runs with something old is restarted, one in the whole cluster at a time and only while the others have
// quorum. done is made when the host is a voting member that answers.
func Member(s Settings, done graph.Output[string], after ...string) step.Step {
	config, content := s.config()
	parts := []step.Step{step.File{Path: config, Mode: 0o600, Content: step.Literal(content)}}
	if s.Form == Unit {
		parts = append(parts, step.Service{Name: service, State: step.Enabled}) // the script starts it when it knows how
	}
	title := "join the etcd cluster"
	if s.First {
		title = "begin the etcd cluster"
	}
	return step.New(step.Meta{
		Name: "etcd/member", Description: title, Timeout: step.Duration(8 * time.Minute), Disrupts: "restarts this host's etcd",
		Retry: step.Retry{Attempts: 8, Delay: step.Duration(2 * time.Second), MaxDelay: step.Duration(20 * time.Second)},
		Takes: after, Makes: []string{done.Name},
		// etcd does not start with data of a version after its own, and its members go on from there.
		Stays: "etcd",
	}, append(parts, step.Command{
		Title: title, Argv: s.script(cluster+run+member, "restart="+cluster+run+restart),
		Done: step.Done{Check: s.script(cluster + memberCheck)},
	})...)
}

// Members removes the members of hosts that leave or are gone, as far as the rest keeps quorum, and promotes learners that have
// caught up. Members that no host has stay unless they are said to be gone.
// It comes after Member, on any host that stays.
func Members(s Settings) step.Step {
	return step.New(step.Meta{
		Name: "etcd/members", Description: "remove the members of hosts that leave", Timeout: step.Duration(5 * time.Minute),
		Follows: step.FollowsUnlessDisruptive,
		Retry:   step.Retry{Attempts: 3, Delay: step.Duration(5 * time.Second)},
	}, step.Command{
		Title: "bring the members of etcd up to date", Argv: s.script(cluster+`hold 240 "$own" "$members"`, "members="+cluster+members),
		Done: step.Done{Check: s.script(cluster + membersCheck)},
	})
}

// Maintenance makes databases that are more than half free small again, and ends the alarm of a full one. It comes after Member,
// on every member's host: the leader's does it for all.
func Maintenance(s Settings) step.Step {
	return step.New(step.Meta{
		Name: "etcd/maintenance", Description: "look after etcd's databases", Timeout: step.Duration(30 * time.Minute),
		Follows:  step.FollowsAlways,
		Disrupts: "pauses one etcd member after the other",
		// Members free what is given up each in its own time: one may become loose after it was passed by.
		Retry: step.Retry{Attempts: 3, Delay: step.Duration(5 * time.Second)},
	}, step.Command{
		Title: "defragment etcd's databases", Argv: s.script(cluster+maintain, "maintenance="+cluster+database+maintenance),
		Done: step.Done{Check: s.script(cluster + database + maintenanceCheck)},
	})
}
