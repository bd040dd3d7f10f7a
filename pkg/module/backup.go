// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package module

import (
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/task"
)

// EtcdBackup saves a backup of etcd on a member's host.
func EtcdBackup(in component.Inputs, b component.Backup) plan.Module {
	return plan.Module{Name: "etcd", Tasks: []plan.Task{in.Etcd.Members().Backup(in, b)}}
}

// Restore is a restore of etcd on all hosts that have to do with it.
type Restore struct {
	of component.Restore
	// members and users are the names of the hosts with a member, and of those with an API server.
	members, users []string
}

// NewRestore is the restore on these hosts.
func NewRestore(of component.Restore, hosts []component.Inputs) Restore {
	r := Restore{of: of}
	for _, in := range hosts {
		if in.RunsEtcd() {
			r.members = append(r.members, in.Target.Host.Name)
		}
		if in.IsControlPlane() {
			r.users = append(r.users, in.Target.Host.Name)
		}
	}
	return r
}

// restorePrepared is made by a member's host that has the snapshot, and could restore it.
const restorePrepared = "restore-prepared"

// PreparesRestore reports whether a node of a restore's plan comes before anything ends.
func PreparesRestore(n plan.Node) bool {
	return slices.ContainsFunc(n.Step.Meta().Makes, func(output string) bool { return strings.HasPrefix(output, restorePrepared+"/") })
}

func outputs(of string, hosts []string) []string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = of + "/" + h
	}
	return names
}

// On are a host's part in it: all members' hosts have the snapshot before anything ends; all API servers have ended before a member
// does; all members have the snapshot's data before one is started; and API servers are started when all members are well.
func (r Restore) On(in component.Inputs) []plan.Module {
	name := in.Target.Host.Name
	etcd, kubernetes := func(t plan.Task) plan.Module { return plan.Module{Name: "etcd", Tasks: []plan.Task{t}} },
		func(t plan.Task) plan.Module { return plan.Module{Name: "kubernetes", Tasks: []plan.Task{t}} }
	var all []plan.Module
	if in.RunsEtcd() {
		all = append(all, etcd(in.Etcd.Members().PrepareRestore(in, r.of, restorePrepared+"/"+name)))
	}
	if in.IsControlPlane() {
		all = append(all, kubernetes(in.Kubernetes.Halt(in, r.of.ID, "halted/"+name, outputs(restorePrepared, r.members)...)))
	}
	if in.RunsEtcd() {
		all = append(all, etcd(in.Etcd.Members().Restore(in, r.of, outputs("halted", r.users), r.members)))
	}
	if in.IsControlPlane() {
		var well []string
		for _, m := range r.members {
			well = append(well, component.EtcdMember(m).Name)
		}
		all = append(all, kubernetes(in.Kubernetes.Resume(in, r.of.ID, "resumed/"+name, well...)))
	}
	return append(all, etcd(in.Etcd.Members().EndRestore(in, r.of, component.APIAnswers.Name)))
}

// Answers waits for the API server, once those on all hosts were started.
func (r Restore) Answers() plan.Module {
	return plan.Module{Name: "kubernetes", Tasks: []plan.Task{task.Answers(outputs("resumed", r.users)...)}}
}
