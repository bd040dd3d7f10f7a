// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// roleGroups say what each host is for: names, or ranges of names, of hosts.
type roleGroups struct {
	ControlPlane []string `json:"control-plane"`
	Worker       []string `json:"worker"`
	Etcd         []string `json:"etcd"`
	Registry     []string `json:"registry"`
	LoadBalancer []string `json:"loadbalancer"`
}

const groupsPath = "spec.roleGroups"

// assignRoles gives hosts their roles, and etcd and the load balancers their hosts. It comes before defaults: who runs etcd
// follows from where it runs.
func (r *reading) assignRoles(groups roleGroups) {
	controlPlane := r.membersOf(groupsPath+".control-plane", groups.ControlPlane)
	workers := r.membersOf(groupsPath+".worker", groups.Worker)
	etcd := r.membersOf(groupsPath+".etcd", groups.Etcd)
	registry := r.membersOf(groupsPath+".registry", groups.Registry)
	loadBalancers := r.membersOf(groupsPath+".loadbalancer", groups.LoadBalancer)

	if len(groups.ControlPlane) == 0 && !r.isRefused(groupsPath+".control-plane") {
		r.refuseAt(groupsPath+".master", r.placeOf(groupsPath).line,
			"Required value: name the host that becomes the control plane, such as [node1]")
	}
	if len(registry) > 0 {
		r.refuseGroup("registry", "%s; remove it", notYet)
	}
	dedicated := r.etcdHosts(etcd, controlPlane, workers)
	r.name(&r.cluster.Spec.Etcd.Hosts, "spec.etcd.hosts", "etcd", dedicated)
	r.name(&r.cluster.Spec.LoadBalancer.Keepalived.Hosts, "spec.loadBalancer.keepalived.hosts", "loadbalancer", loadBalancers)

	roles := []struct {
		role  spec.Role
		hosts []string
	}{
		{spec.RoleControlPlane, controlPlane}, {spec.RoleWorker, workers},
		{spec.RoleEtcd, dedicated}, {spec.RoleLoadBalancer, loadBalancers},
	}
	others := slices.Concat(etcd, registry)
	for i := range r.cluster.Hosts {
		host := &r.cluster.Hosts[i]
		var has []spec.Role
		for _, of := range roles {
			if slices.Contains(of.hosts, host.Name) {
				has = append(has, of.role)
			}
		}
		at := r.placeOf(fmt.Sprintf("spec.hosts[%d]", i))
		switch {
		case len(has) == 1:
			host.Roles = has
		case slices.Equal(has, []spec.Role{spec.RoleControlPlane, spec.RoleWorker}):
			r.refuseAt(at.path, at.line,
				"%s is in the role groups of control plane and workers; pods on a control plane host are %s; take it out of one of them",
				host.Name, notYet)
		case len(has) > 1:
			r.refuseAt(at.path, at.line,
				"%s is in the role groups of %s; hosts of etcd and of load balancers do nothing else: take it out of all but one",
				host.Name, words(has))
		case host.Name != "" && !slices.Contains(others, host.Name) && !r.isRefused(groupsPath):
			r.refuseAt(at.path, at.line, "%s is in no role group: add it to one in %s, or remove it", host.Name, groupsPath)
		}
	}
}

// etcdHosts are the hosts that run etcd and nothing else: those of its role group, unless they are the control plane's.
func (r *reading) etcdHosts(etcd, controlPlane, workers []string) []string {
	if len(etcd) == 0 || sameNames(etcd, controlPlane) {
		return nil
	}
	var shared []string
	for _, name := range etcd {
		if slices.Contains(controlPlane, name) || slices.Contains(workers, name) {
			shared = append(shared, name)
		}
	}
	masters := r.placeOf(groupsPath + ".control-plane").path
	switch kind := r.cluster.Spec.Etcd.Type; {
	case kind == spec.EtcdKubeadm:
		r.refuseGroup("etcd",
			"etcd of the type %s runs on the control plane's hosts: remove it, name the hosts of %s, or set spec.etcd.type to %s",
			Word(kind), masters, Word(spec.EtcdKubexm))
	case kind == spec.EtcdExternal:
		r.refuseGroup("etcd",
			"etcd of the type %s runs on no host of this cluster: remove it, or set spec.etcd.type to %s", Word(kind), Word(spec.EtcdKubexm))
	case len(shared) > 0:
		r.refuseGroup("etcd", "etcd runs on all hosts of %s, or on hosts that are in no other role group; of these, %s in another: "+
			"remove this group, name the same hosts, or name others", masters, areIn(shared))
	default:
		return etcd
	}
	return nil
}

// name sets the hosts that a role group has. What is wrong with them is said of the role group; a file that names them
// elsewhere too is refused.
func (r *reading) name(into *spec.Hosts, path, group string, hosts []string) {
	at := r.placeOf(path)
	if !into.IsZero() {
		r.refuseAt(at.path, at.line, "a config file says it by role groups: remove it, and name the hosts in %s.%s", groupsPath, group)
		r.refused[path] = true
	}
	*into = spec.Hosts{Names: hosts}
	of := r.placeOf(groupsPath + "." + group)
	r.decoded[path], r.decoded[path+".names"] = of, of
	for i := range hosts {
		r.decoded[fmt.Sprintf("%s.names[%d]", path, i)] = of
	}
	if r.isRefused(groupsPath + "." + group) {
		r.refused[path] = true
	}
}

// refuseGroup refuses a role group, unless something else is wrong with it.
func (r *reading) refuseGroup(group, format string, args ...any) {
	if at := r.placeOf(groupsPath + "." + group); !r.isRefused(groupsPath + "." + group) {
		r.refuseAt(at.path, at.line, format, args...)
	}
}

// words are roles for a person.
func words(roles []spec.Role) string {
	names := map[spec.Role]string{
		spec.RoleControlPlane: "control plane", spec.RoleWorker: "workers",
		spec.RoleEtcd: "etcd", spec.RoleLoadBalancer: "load balancers",
	}
	var all []string
	for _, role := range roles {
		all = append(all, names[role])
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " and " + all[last]
}

func areIn(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return firstOf(names) + " are"
}

// membersOf lists the hosts of a role group, once each. Bad ranges and names that no host has are refused.
func (r *reading) membersOf(path string, entries []string) []string {
	hosts, seen, allKnown := map[string]bool{}, map[string]bool{}, true
	for i, host := range r.cluster.Hosts {
		hosts[host.Name] = true
		allKnown = allKnown && !r.isRefused(fmt.Sprintf("spec.hosts[%d].name", i))
	}
	var members []string
	for i, entry := range entries {
		if r.isRefused(fmt.Sprintf("%s[%d]", path, i)) {
			continue
		}
		at := r.placeOf(fmt.Sprintf("%s[%d]", path, i))
		names, err := expandRange(entry)
		if err != nil {
			r.refuseAt(at.path, at.line, "%q %v", entry, err)
			continue
		}
		var unknown, twice []string
		for _, name := range names {
			switch {
			case !hosts[name]:
				unknown = append(unknown, name)
			case seen[name]:
				twice = append(twice, name)
			default:
				seen[name] = true
				members = append(members, name)
			}
		}
		if len(twice) > 0 {
			r.refuseAt(at.path, at.line, "%q names again what this role group has already: %s", entry, firstOf(twice))
		}
		if len(unknown) > 0 && allKnown && !r.isRefused("spec.hosts") {
			r.refuseAt(at.path, at.line, "%q names hosts that do not exist: add %s to spec.hosts, or correct it", entry, firstOf(unknown))
		}
	}
	return members
}

// firstOf is a list short enough for a message.
func firstOf(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}

func sameNames(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}
