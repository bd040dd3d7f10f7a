// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package module

import (
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// What pipelines say of hosts, and of what is asked for. They make modules of it, and know no component.
type (
	// Inputs are a host, and what fills the slots of its cluster.
	Inputs = component.Inputs
	// Certificate is one on a host that can be renewed.
	Certificate = component.Certificate
	// RestartRequest is one of components on hosts, which somebody asks for.
	RestartRequest = component.Restart
	// BackupRequest is one of etcd, which somebody asks for.
	BackupRequest = component.Backup
	// RestoreRequest is one of etcd, which somebody asks for.
	RestoreRequest = component.Restore
)

// BackupDir is where a host keeps backups of etcd, if nobody says otherwise.
const BackupDir = component.BackupDir

// SamePlan reports whether a host that was the one, and is the other now, has the same plan.
func SamePlan(was, is host.System) bool { return component.Relevant(was) == component.Relevant(is) }

// The outputs by which the modules of a host come after those of another.

// Member is made when the host has its member of etcd.
func Member(in Inputs) string { return component.EtcdMember(in.Target.Host.Name).Name }

// Joined is made when the host's kubelet is in the cluster.
func Joined(in Inputs) string { return component.Joined(in.Target.Host.Name).Name }

// Renewed is made when the host's certificates are renewed (Certificates).
func Renewed(in Inputs) string { return component.Renewed(in.Target.Host.Name).Name }

// Restarted is made when what was asked for is restarted on the host (Restart).
func Restarted(in Inputs) string { return component.Restarted(in.Target.Host.Name).Name }
