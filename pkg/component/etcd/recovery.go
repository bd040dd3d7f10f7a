// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Backup saves one where it is asked for, or else in component.BackupDir.
func (m membersOf) Backup(in component.Inputs, b component.Backup) plan.Task {
	return plan.Task{Name: "etcd-backup", Steps: []step.Step{SaveBackup(m.settings(in), backupOf(in, b.Directory, b.Keep), b.Asked)}}
}

// BackupName has the cluster's name, the time and the host's.
func (m membersOf) BackupName(in component.Inputs, asked time.Time) string {
	return m.settings(in).BackupName(asked)
}

// backups has the host save backups by itself, or no more.
func backups(in component.Inputs, s Settings) step.Step {
	b := in.Target.Cluster.Etcd.Backup
	calendar, err := b.Calendar()
	if b.Schedule == "" || err != nil { // it was validated
		return NoBackups()
	}
	return Backups(s, backupOf(in, b.Directory, b.Kept()), calendar)
}

func backupOf(in component.Inputs, dir string, keep int32) Backup {
	return Backup{Directory: cmp.Or(dir, component.BackupDir), Keep: keep, KubernetesVersion: in.Target.KubernetesVersion}
}

// restoreOf is the restore that somebody asks for. No revision may be given twice, or who has seen a later one would take what is restored
// for what it knows: milliseconds are more than there are writes from one restore to the next, whatever snapshot they are of.
func restoreOf(r component.Restore) Restore {
	return Restore{
		ID: r.ID, Bump: r.Asked.UnixMilli(), Snapshot: step.Artifact{Path: "etcd/snapshot.db", Digest: r.Digest, Size: r.Size},
	}
}

// PrepareRestore finds out, too, whether the snapshot can be restored.
func (m membersOf) PrepareRestore(in component.Inputs, r component.Restore, prepared string) plan.Task {
	return plan.Task{Name: "restore-prepare", Steps: []step.Step{PrepareRestore(m.settings(in), restoreOf(r), prepared)}}
}

// Restore has hosts wait for each other by outputs with the names of all members' hosts.
func (m membersOf) Restore(in component.Inputs, r component.Restore, after, hosts []string) plan.Task {
	s, name, of := m.settings(in), in.Target.Host.Name, restoreOf(r)
	restored := func(host string) string { return "etcd-restored/" + host }
	started := func(host string) string { return "etcd-started/" + host }
	return plan.Task{Name: "restore", Steps: []step.Step{
		StopForRestore(s, of, after...),
		RestoreData(s, of, restored(name)),
		StartRestored(s, of, started(name), all(hosts, restored)...),
		VerifyRestored(s, of, component.EtcdMember(name).Name, all(hosts, started)...),
	}}
}

// EndRestore has a host be what it must be again.
func (m membersOf) EndRestore(in component.Inputs, r component.Restore, after ...string) plan.Task {
	return plan.Task{Name: "restore-end", Steps: []step.Step{EndRestore(m.settings(in), restoreOf(r), after...)}}
}

func all(hosts []string, output func(string) string) []string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = output(h)
	}
	return names
}
