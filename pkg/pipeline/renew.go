// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/module"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// AllCertificates names them all.
const AllCertificates = spec.AllCertificates

// Renewal is a certificate on a host that RenewCertificates renews.
type Renewal struct {
	Host string
	module.Certificate
}

// Renewals are the certificates with these names on all hosts, host after host in the order in which they are renewed: those of
// etcd first, then the control plane's. No name means what AllCertificates does. A name that no host has is refused.
func Renewals(targets []spec.Target, names []string) ([]Renewal, error) {
	var all []string
	var found []Renewal
	hosts, err := renewing(targets, nil)
	if err != nil {
		return nil, err
	}
	for _, in := range hosts {
		here, have := renewals(in, names)
		found, all = append(found, here...), append(all, have...)
	}
	for _, name := range names {
		if name != AllCertificates && !slices.Contains(all, name) {
			slices.Sort(all)
			return nil, fmt.Errorf("no host has a certificate %s that can be renewed; there are %s, and %s",
				name, strings.Join(slices.Compact(all), ", "), AllCertificates)
		}
	}
	return found, nil
}

// renewals are those of the host's certificates that have one of the names, and the names of all that it has.
func renewals(in module.Inputs, names []string) (here []Renewal, have []string) {
	for _, c := range module.Renewable(in) {
		have = append(have, c.Name)
		if len(names) == 0 || slices.Contains(names, AllCertificates) || slices.Contains(names, c.Name) {
			here = append(here, Renewal{Host: in.Target.Host.Name, Certificate: c})
		}
	}
	return here, have
}

// RenewCertificates plans that Renewals are made anew, however long the present ones last: on one host after the other, when
// what uses them on the host before is well. systems is what was seen of the hosts: by it, certificates name an address of a Node
// that nobody has declared. The plan does so once; asked is when that was asked for.
func RenewCertificates(
	name string, targets []spec.Target, systems map[string]host.System, names []string, asked time.Time,
) (*plan.Plan, error) {
	renewals, err := Renewals(targets, names)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	hosts, err := renewing(targets, systems)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	p := newLayout("RenewCertificates", name)
	var after []string
	for _, in := range hosts {
		var here []string
		for _, r := range renewals {
			if r.Host == in.Target.Host.Name {
				here = append(here, r.Name)
			}
		}
		if len(here) > 0 {
			p.host(in, module.Certificates(in, here, asked, after...))
			after = []string{module.Renewed(in)}
		}
	}
	return p.plan()
}

// RenewOn plans RenewCertificates on one host, for whoever asks each host of a cluster for the same: of the names, those are renewed that
// the host has, which are returned. One that no host of such a cluster could have is refused, and so is a host that has none of them; the
// errors name what there is.
func RenewOn(n Node, names []string, asked time.Time) (*plan.Plan, []Renewal, error) {
	in, err := module.NewInstalled(n.Target)
	if err != nil {
		return nil, nil, fmt.Errorf("host %s: %w", n.Target.Host.Name, err)
	}
	in.System = n.System // by which a Node has an address that nobody has declared, and the certificate that names it
	if err := checkRenewable(in, names); err != nil {
		return nil, nil, err
	}
	here, have := renewals(in, names)
	if len(here) == 0 {
		return nil, nil, fmt.Errorf("%s has none of these certificates to renew: %s; it has %s",
			in.Target.Host.Name, cmp.Or(strings.Join(names, ", "), AllCertificates), cmp.Or(strings.Join(have, ", "), "none that can be renewed"))
	}
	var wanted []string
	for _, r := range here {
		wanted = append(wanted, r.Name)
	}
	p := newLayout("RenewCertificates", n.Target.ClusterName)
	p.host(in, module.Certificates(in, wanted, asked))
	made, err := p.plan()
	return made, here, err
}

// checkRenewable refuses what no host of the cluster has, whatever its role.
func checkRenewable(in module.Inputs, names []string) error {
	kind := ofKind(in, func(in module.Inputs) []string {
		_, have := renewals(in, nil)
		return have
	}, spec.RoleControlPlane, spec.RoleWorker, spec.RoleEtcd)
	slices.Sort(kind)
	for _, name := range names {
		if name != AllCertificates && !slices.Contains(kind, name) {
			return fmt.Errorf("cluster %s has no certificate %s that can be renewed on its hosts; it has %s",
				in.Target.ClusterName, name, strings.Join(slices.Compact(kind), ", "))
		}
	}
	return nil
}

// ofKind is what hosts of in's cluster have, one after the other of these roles. Where etcd is stacked, none has a role of its own for it.
func ofKind[T any](in module.Inputs, has func(module.Inputs) []T, roles ...spec.Role) []T {
	var kind []T
	for _, role := range roles {
		if role == spec.RoleEtcd && in.Target.Cluster.Etcd.IsStacked() {
			continue
		}
		in.Target.Host.Role = role
		kind = append(kind, has(in)...)
	}
	return kind
}

// renewing are the hosts in the order in which their certificates are renewed.
func renewing(targets []spec.Target, systems map[string]host.System) ([]module.Inputs, error) {
	var all []module.Inputs
	for _, role := range []spec.Role{spec.RoleEtcd, spec.RoleControlPlane, spec.RoleWorker} {
		for _, t := range targets {
			if t.Host.Role != role {
				continue
			}
			in, err := module.NewInstalled(t)
			if err != nil {
				return nil, fmt.Errorf("host %s: %w", t.Host.Name, err)
			}
			in.System = systems[t.Host.Name]
			all = append(all, in)
		}
	}
	return all, nil
}
