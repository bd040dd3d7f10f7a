// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/module"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// AllCertificates names them all.
const AllCertificates = "all"

// Renewal is a certificate on a host that RenewCertificates renews.
type Renewal struct {
	Host string
	module.Certificate
}

// Renewals are the certificates with these names on all hosts, host after host in the order in which they are renewed: those of
// etcd first, then the control plane's. No name means what AllCertificates does. A name that no host has is refused.
func Renewals(targets []spec.Target, names []string) ([]Renewal, error) {
	var all, known []string
	var found []Renewal
	hosts, err := renewing(targets)
	if err != nil {
		return nil, err
	}
	for _, in := range hosts {
		for _, c := range module.Renewable(in) {
			all = append(all, c.Name)
			if len(names) == 0 || slices.Contains(names, AllCertificates) || slices.Contains(names, c.Name) {
				known, found = append(known, c.Name), append(found, Renewal{Host: in.Target.Host.Name, Certificate: c})
			}
		}
	}
	for _, name := range names {
		if name != AllCertificates && !slices.Contains(known, name) {
			slices.Sort(all)
			return nil, fmt.Errorf("no host has a certificate %s that can be renewed; there are %s, and %s",
				name, strings.Join(slices.Compact(all), ", "), AllCertificates)
		}
	}
	return found, nil
}

// RenewCertificates plans that Renewals are made anew, however long the present ones last: on one host after the other, when
// what uses them on the host before is well. The plan does so once; asked is when that was asked for.
func RenewCertificates(name string, targets []spec.Target, names []string, asked time.Time) (*plan.Plan, error) {
	renewals, err := Renewals(targets, names)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	hosts, err := renewing(targets)
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

// renewing are the hosts in the order in which their certificates are renewed.
func renewing(targets []spec.Target) ([]module.Inputs, error) {
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
			all = append(all, in)
		}
	}
	return all, nil
}
