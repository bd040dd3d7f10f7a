// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/tables"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	systems "github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/tables"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// place is a part of a load balancer host: systemd's name for it, and what it occupies beside.
type place struct {
	unit string
	component.Occupant
}

// places are those of what the host is to run.
func places(t spec.Target) []place {
	slots, err := tables.Slots(t.Cluster)
	if err != nil || t.Host.Role != spec.RoleLoadBalancer {
		return nil
	}
	var all []place
	if proxy := slots.External.Proxy; proxy != nil {
		occupant, _ := proxy.(component.Occupant)
		all = append(all, place{proxy.Service(), occupant})
	}
	if address := slots.External.VirtualAddress; address != nil {
		occupant, _ := address.(component.Occupant)
		all = append(all, place{address.Service(), occupant})
	}
	return slices.DeleteFunc(all, func(p place) bool { return p.unit == "" || p.Occupant == nil })
}

// loadBalancerQuery asks for the paths of all operating systems: which the host has is not known yet.
func loadBalancerQuery(t spec.Target) host.Query {
	q := host.Query{}
	for _, p := range places(t) {
		q.Units = append(q.Units, p.unit)
		for _, f := range systems.Families {
			for _, s := range f.Systems {
				for _, path := range p.Occupies(f.Of(s, s.Releases[0])) {
					q.Merge(host.Query{Paths: []host.PathQuery{{Path: path}}})
				}
			}
		}
	}
	return q
}

// loadBalancer: ours would run in the place of another, with a configuration of its own, and a reset would take back what that has written
// since. A package that nobody has turned on is in nobody's way: what it occupies came with it.
func loadBalancer(r *report) {
	os, err := systems.Of(r.f.System.OSID, r.f.System.OSVersion)
	if r.ours() || err != nil {
		return
	}
	var found, on, left []string
	for _, p := range places(r.t) {
		if u := r.f.Units[p.unit]; u.Load != "" && u.Load != "not-found" {
			if u.Active != "inactive" || strings.HasPrefix(u.File, "enabled") {
				found, on = append(found, fmt.Sprintf("%s is there (%s, %s)", p.unit, u.Active, u.File)), append(on, p.unit)
			}
			continue
		}
		for _, path := range p.Occupies(os) {
			switch at := r.f.Paths[path]; {
			case at.Entries > 0:
				found, left = append(found, path+" is not empty"), append(left, path)
			case at.Exists && !at.Mode.IsDir():
				found, left = append(found, path+" is there"), append(left, path)
			}
		}
	}
	var remedies []string
	if len(on) > 0 {
		remedies = append(remedies, "turn it off (systemctl disable --now "+strings.Join(on, " ")+")")
	}
	if len(left) > 0 {
		remedies = append(remedies, "remove "+strings.Join(left, " and "))
	}
	if len(found) > 0 {
		r.error("what is not ours is in the place of the cluster's load balancer: "+strings.Join(found, "; "),
			strings.Join(remedies, ", and ")+", where nobody needs it; or use another host")
	}
}
