// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/adopted"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/certificate/recovery"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// etcdUnits are those that etcd is declared to be, nil if it is something else. Others have made them.
func (r *adopting) etcdUnits() component.EtcdUnits {
	units, _ := r.slots.Etcd.(component.EtcdUnits)
	return units
}

// alsoOn are the units that a host with this role has besides those of any Node.
func (r *adopting) alsoOn(role spec.Role) []string {
	if units := r.etcdUnits(); role == spec.RoleControlPlane && units != nil {
		return []string{units.UnitName()}
	}
	return nil
}

// theirEtcd reads how etcd runs on control plane hosts, who its members are, and what they know each other by.
func (r *adopting) theirEtcd(ctx context.Context) error {
	var units []adopted.EtcdUnit
	for _, t := range r.targets {
		if t.Host.Role != spec.RoleControlPlane {
			continue
		}
		u := adopted.EtcdUnit{Host: t.Host}
		if err := r.readEtcd(ctx, &u); err != nil {
			return fmt.Errorf("%s is not adopted, and nothing was written: host %s: %w", r.Name, t.Host.Name, err)
		}
		units = append(units, u)
		r.seen.Addresses = append(r.seen.Addresses, t.Host.NodeAddress())
	}
	found, problems := adopted.EtcdUnits(r.Name, r.Spec.Etcd, r.bundle.Version("etcd"), units, time.Now())
	r.problems = append(r.problems, problems...)
	r.seen.Members = found.Members
	if !found.Authority.IsZero() {
		r.seen.Found.Etcd, r.trust.Authorities.Etcd = found.Authority, found.Authority
	}
	r.etcd = map[string]component.TheirEtcd{}
	for _, u := range units {
		r.etcd[u.Name] = u.TheirEtcd
	}
	return nil
}

// readEtcd reads one host's. What is read of keys stands in no event and no log.
func (r *adopting) readEtcd(ctx context.Context, u *adopted.EtcdUnit) (err error) {
	connection, err := r.hosts.Dial(ctx, u.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	said, err := connection.Exec(ctx, r.etcdUnits().AskTheirs(u.NodeAddress()))
	if err != nil {
		return err
	}
	if u.TheirEtcd, err = r.etcdUnits().Theirs(*said); err != nil {
		return err
	}
	if files := u.Files(); len(files) > 0 {
		u.Read, err = recovery.Files(ctx, connection, files)
	}
	return err
}

// ownEtcd are the paths of a host that are etcd's alone, which a reset removes.
func (r *adopting) ownEtcd(name string) []string {
	own, _ := r.pathsOfEtcd(name)
	return own
}

// pathsOfEtcd are those that a host's etcd reads as others have made it: what is etcd's alone, and what a reset leaves.
func (r *adopting) pathsOfEtcd(name string) (own, elsewhere []string) {
	theirs := r.etcd[name]
	if theirs == nil {
		return nil, nil
	}
	return theirs.Own()
}

// etcdLines are what differs between the flags with which a host's etcd runs and those of ours, whose unit this is.
func (r *adopting) etcdLines(name, unit string) []string {
	var lines []string
	for _, l := range adopted.Changed(r.etcd[name].Flags(), r.etcdUnits().FlagsOf(unit)) {
		lines = append(lines, "etcd  "+l)
	}
	return lines
}
