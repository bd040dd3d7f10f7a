// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
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
	// Address is the address to dial, of either family.
	Address string `json:"address"`
	// InternalAddresses are those at which hosts reach each other, the Node's first; empty means Address, which then is of the
	// cluster's first family.
	InternalAddresses []string `json:"internalAddresses,omitempty"`
	// Port is sshd's, 22 if it was left out.
	Port int32 `json:"port"`
	// User logs in, root if it was left out; others need sudo.
	User string `json:"user"`
	// Password is for login and for sudo; zero means none.
	Password secret.Value `json:"password,omitzero"`
	// PrivateKeyPath is a file on this machine; empty with an empty Password means what OpenSSH has: its agent, and the keys of its config.
	PrivateKeyPath string `json:"privateKeyPath,omitempty"`
	// HostKey is the host's public key, whole or as SHA256:…; empty means that known_hosts has it.
	HostKey string `json:"hostKey,omitempty"`
	// ProxyJump is the host through which this one is reached, zero if it is reached directly. Of a file that was read it is the one for
	// all hosts, if the host has none of its own.
	ProxyJump ProxyJump `json:"proxyJump,omitzero"`
	// Arch is the processor architecture; empty means what the host says.
	Arch spec.Arch `json:"arch,omitempty"`
	// Labels are the Node's.
	Labels map[string]string `json:"labels,omitempty"`
	// Roles come from the role groups. A host of this version has one; that of etcd is for hosts that run nothing else.
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
	errs = append(errs, validatePassword(h.Password, path)...)
	if h.HostKey != "" {
		errs = append(errs, spec.ValidateHostKey(h.HostKey, path.Child("hostKey"))...)
	}
	return errs
}

// validatePassword checks the field password of the object at path.
func validatePassword(password secret.Value, path *field.Path) field.ErrorList {
	if strings.ContainsAny(string(password.Reveal()), "\n\r\x00") {
		// sudo reads one line.
		return field.ErrorList{field.Forbidden(path.Child("password"), "a password is one line: remove the line break")}
	}
	return nil
}

func (h *Host) login() login {
	return login{address: h.Address, port: h.Port, user: h.User, password: h.Password, key: &h.PrivateKeyPath}
}
