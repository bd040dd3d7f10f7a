// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/module"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Backup is one of etcd that somebody asks for.
type Backup = module.BackupRequest

// Restore is one of etcd that somebody asks for.
type Restore = module.RestoreRequest

// BackupDir is where a host keeps backups of etcd, if nobody says otherwise.
const BackupDir = module.BackupDir

// BackupName is the name of the backup's files on a host, without their endings: .db is a snapshot, and .json says what it is.
func BackupName(t spec.Target, b Backup) (string, error) {
	in, err := module.NewInstalled(t)
	switch {
	case err != nil:
		return "", err
	case in.Etcd.Members() == nil:
		return "", fmt.Errorf("host %s: etcd is external: those who run it back it up", t.Host.Name)
	}
	return in.Etcd.Members().BackupName(in, b.Asked), nil
}

// BackupEtcd plans that a backup of etcd is saved on a host that has a member.
func BackupEtcd(t spec.Target, b Backup) (*plan.Plan, error) {
	in, err := module.NewInstalled(t)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", t.Host.Name, err)
	}
	if !in.RunsEtcd() {
		return nil, fmt.Errorf("host %s: it has no member of etcd, of which a backup is saved", t.Host.Name)
	}
	p := newLayout("BackupEtcd", t.ClusterName)
	p.host(in, module.EtcdBackup(in, b))
	return p.plan()
}

// restoreID is a word of file names and of tokens.
var restoreID = regexp.MustCompile(`^[0-9a-z]{8,32}$`)

// RestoreEtcd plans that etcd on all hosts of a cluster begins anew with the data of a snapshot. targets are all hosts that have a member
// of etcd or an API server; of others, nothing is done.
func RestoreEtcd(name string, targets []spec.Target, r Restore) (*plan.Plan, error) {
	if !restoreID.MatchString(r.ID) {
		return nil, fmt.Errorf("cluster %s: %q is no ID of a restore: use 8 to 32 digits and lower case letters", name, r.ID)
	}
	var hosts []module.Inputs
	for _, t := range targets {
		in, err := module.NewInstalled(t)
		if err != nil {
			return nil, fmt.Errorf("host %s: %w", t.Host.Name, err)
		}
		if in.Etcd.Members() == nil {
			return nil, fmt.Errorf("cluster %s: etcd is external: those who run it restore it", name)
		}
		if in.RunsEtcd() || in.IsControlPlane() {
			hosts = append(hosts, in)
		}
	}
	if !slices.ContainsFunc(hosts, module.Inputs.RunsEtcd) || !slices.ContainsFunc(hosts, module.Inputs.IsControlPlane) {
		return nil, fmt.Errorf("cluster %s: no host with a member of etcd, or none with an API server, is among those to be restored", name)
	}
	p, restore := newLayout("RestoreEtcd", name), module.NewRestore(r, hosts)
	for _, in := range hosts {
		p.host(in, restore.On(in)...)
	}
	p.gate(hosts[0], restore.Answers())
	return p.plan()
}

// PreparedRestore is the part of the plan of a restore by which all hosts have the snapshot, and have found out that it can be restored.
// Nothing ends by that; what it has done is not done again by the whole plan.
func PreparedRestore(p *plan.Plan) (*plan.Plan, error) {
	return p.Restrict(module.PreparesRestore)
}
