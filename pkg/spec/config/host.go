// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Host is one host and how it is reached over SSH.
type Host struct {
	// Name becomes the host's and the Node's name.
	Name string `json:"name"`
	// Address is the IPv4 address to dial.
	Address string `json:"address"`
	// InternalAddresses are those at which hosts reach each other, the Node's first; empty means Address.
	InternalAddresses []string `json:"internalAddresses,omitempty"`
	// Port is sshd's, 22 if it was left out.
	Port int32 `json:"port"`
	// User logs in, root if it was left out; others need sudo.
	User string `json:"user"`
	// Password is for login and for sudo; zero means none.
	Password secret.Value `json:"password,omitzero"`
	// PrivateKeyPath is a file on this machine; empty with an empty Password means the SSH agent.
	PrivateKeyPath string `json:"privateKeyPath,omitempty"`
	// HostKey is the host's public key, whole or as SHA256:…; empty means that known_hosts has it.
	HostKey string `json:"hostKey,omitempty"`
	// Arch is the processor architecture; empty means what the host says.
	Arch spec.Arch `json:"arch,omitempty"`
	// Labels are the Node's.
	Labels map[string]string `json:"labels,omitempty"`
	// Roles come from the role groups. A host of this version has one.
	Roles []spec.Role `json:"roles,omitempty" config:"-"`
}

// Spec is the host as planners see it.
func (h *Host) Spec() spec.Host {
	host := spec.Host{Name: h.Name, Address: h.Address, InternalAddresses: slices.Clone(h.InternalAddresses), Arch: h.Arch}
	if len(h.Roles) > 0 {
		host.Role = h.Roles[0]
	}
	return host
}

func (h *Host) setDefaults() {
	if h.Port == 0 {
		h.Port = 22
	}
	if h.User == "" {
		h.User = "root"
	}
}

func (c *Cluster) validateHosts(path *field.Path) field.ErrorList {
	if len(c.Hosts) == 0 {
		return field.ErrorList{field.Required(path, "list at least one host, such as {name: node1, address: 172.16.0.2}")}
	}
	hosts := make([]spec.Host, len(c.Hosts))
	for i := range c.Hosts {
		hosts[i] = c.Hosts[i].Spec()
		if hosts[i].Role == "" {
			hosts[i].Role = spec.RoleWorker // role groups are checked by themselves
		}
	}
	errs := spec.ValidateHosts(hosts, &c.Spec, path)
	for i := range c.Hosts {
		errs = append(errs, c.Hosts[i].validateAccess(path.Index(i))...)
		errs = append(errs, spec.ValidateNodeLabels(c.Hosts[i].Labels, path.Index(i).Child("labels"))...)
	}
	return errs
}

func (h *Host) validateAccess(path *field.Path) field.ErrorList {
	errs := spec.ValidateUser(h.User, path.Child("user"))
	if h.Port < 1 || h.Port > 65535 {
		errs = append(errs, field.Invalid(path.Child("port"), h.Port, "use the port of the host's sshd, 1 to 65535"))
	}
	if strings.ContainsAny(string(h.Password.Reveal()), "\n\r\x00") {
		// sudo reads one line.
		errs = append(errs, field.Forbidden(path.Child("password"), "a password is one line: remove the line break"))
	}
	if h.HostKey != "" {
		errs = append(errs, spec.ValidateHostKey(h.HostKey, path.Child("hostKey"))...)
	}
	return errs
}

// roleGroups say what each host is for: names, or ranges of names, of hosts.
type roleGroups struct {
	ControlPlane []string `json:"control-plane"`
	Worker       []string `json:"worker"`
	Etcd         []string `json:"etcd"`
	Registry     []string `json:"registry"`
	LoadBalancer []string `json:"loadbalancer"`
}

// assignRoles gives hosts their roles, and refuses the role groups that this version cannot honour.
func (r *reading) assignRoles(groups roleGroups) {
	const path = "spec.roleGroups"
	controlPlane := r.membersOf(path+".control-plane", groups.ControlPlane)
	workers := r.membersOf(path+".worker", groups.Worker)
	etcd := r.membersOf(path+".etcd", groups.Etcd)
	registry := r.membersOf(path+".registry", groups.Registry)
	loadBalancer := r.membersOf(path+".loadbalancer", groups.LoadBalancer)

	refuse := func(group, format string, args ...any) {
		if at := r.placeOf(path + "." + group); !r.isRefused(path + "." + group) {
			r.refuseAt(at.path, at.line, format, args...)
		}
	}
	switch {
	case len(groups.ControlPlane) == 0:
		at := r.placeOf(path)
		if !r.isRefused(path + ".control-plane") {
			r.refuseAt(path+".master", at.line, "Required value: name the host that becomes the control plane, such as [node1]")
		}
	case len(controlPlane) > 1:
		refuse("control-plane", "has %d hosts; more than one control plane host is %s; name one", len(controlPlane), notYet)
	}
	if len(groups.Etcd) > 0 && !sameNames(etcd, controlPlane) {
		refuse("etcd", "etcd hosts that are not the control plane's are %s; kubeadm runs etcd on the control plane host: remove it, or name the same host", notYet)
	}
	if len(registry) > 0 {
		refuse("registry", "%s; remove it", notYet)
	}
	if len(loadBalancer) > 0 {
		refuse("loadbalancer", "%s; remove it; hosts reach the API server at the control plane host", notYet)
	}

	others := slices.Concat(etcd, registry, loadBalancer)
	for i := range r.cluster.Hosts {
		host := &r.cluster.Hosts[i]
		isControlPlane, isWorker := slices.Contains(controlPlane, host.Name), slices.Contains(workers, host.Name)
		at := r.placeOf(fmt.Sprintf("spec.hosts[%d]", i))
		switch {
		case isControlPlane && isWorker:
			r.refuseAt(at.path, at.line, "%s is in the role groups of control plane and workers; pods on a control plane host are %s; take it out of one of them", host.Name, notYet)
		case isControlPlane:
			host.Roles = []spec.Role{spec.RoleControlPlane}
		case isWorker:
			host.Roles = []spec.Role{spec.RoleWorker}
		case host.Name != "" && !slices.Contains(others, host.Name) && !r.isRefused(path):
			r.refuseAt(at.path, at.line, "%s is in no role group: add it to one in %s, or remove it", host.Name, path)
		}
	}
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
