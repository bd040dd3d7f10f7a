// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// ProxyJump is a host that connections to others are forwarded by (a bastion), as by ssh -J. Nothing is changed on it. A file says it
// once, for all hosts, or of a host, which then has nothing of the other; "proxyJump: none" is a host that is reached directly.
type ProxyJump struct {
	// Host is its DNS name or IP address, as this machine reaches it.
	Host string `json:"host"`
	// Port is sshd's, 22 if it was left out.
	Port int32 `json:"port"`
	// User logs in there, and needs no sudo.
	User string `json:"user"`
	// Password is for login; zero means none.
	Password secret.Value `json:"password,omitzero"`
	// PrivateKeyPath is a file on this machine; empty with an empty Password means what OpenSSH has: its agent, and the keys of its config.
	PrivateKeyPath string `json:"privateKeyPath,omitempty"`
	// HostKey is its public key, whole or as SHA256:…; empty means that known_hosts has it.
	HostKey string `json:"hostKey,omitempty"`
}

// noJump is the Host of a ProxyJump that is none, as in ssh_config.
const noJump = "none"

// IsZero reports whether there is no jump host.
func (j ProxyJump) IsZero() bool { return j == ProxyJump{} }

// Spec is the jump host as a KubexmHost has it, with the Secret of its credentials and the key that it must show.
func (j ProxyJump) Spec(credentials, hostKey string) spec.ProxyJump {
	if j.IsZero() {
		return spec.ProxyJump{}
	}
	return spec.ProxyJump{
		Host: j.Host, Port: j.Port, User: j.User,
		Credentials: spec.Credentials{SecretRef: spec.SecretReference{Name: credentials}},
		HostKeys:    spec.HostKeys{Pinned: []string{hostKey}},
	}
}

// jumpOrNone makes "none" the jump host that is none.
func jumpOrNone(t *tree, node *yaml.Node) *yaml.Node {
	if node.Kind != yaml.ScalarNode || node.Value != noJump {
		return node
	}
	return t.derive(node, yaml.MappingNode, t.text(node, "host"), t.text(node, noJump))
}

// jumps are what a file says of jump hosts: for all hosts, and which hosts say it themselves.
type jumps struct {
	all ProxyJump
	own map[int]bool
}

// resolveJumps gives each host the jump host that it has, and checks those that are declared, each where it is declared.
func (r *reading) resolveJumps(all ProxyJump) {
	r.jumps = jumps{all: all, own: map[int]bool{}}
	body := field.NewPath("spec")
	r.report(r.jumps.all.complete(body))
	for i := range r.cluster.Hosts {
		host := &r.cluster.Hosts[i]
		at := body.Child("hosts").Index(i)
		if r.jumps.own[i] = !host.ProxyJump.IsZero(); r.jumps.own[i] {
			r.report(host.ProxyJump.complete(at))
		} else {
			host.ProxyJump = r.jumps.all
		}
		if j := host.ProxyJump; !j.IsZero() && j.Host == host.Address && j.Port == host.Port {
			r.report(field.ErrorList{field.Invalid(at.Child("proxyJump"), j.Host,
				"is the host itself, which is not reached through itself: write proxyJump: none for it")})
		}
	}
}

// complete sets defaults, and checks what is declared in the field proxyJump of the object at path. "none" becomes no jump host.
func (j *ProxyJump) complete(path *field.Path) field.ErrorList {
	at := path.Child("proxyJump")
	switch {
	case j.IsZero():
		return nil
	case *j == ProxyJump{Host: noJump}:
		*j = ProxyJump{}
		return nil
	case j.Host == noJump:
		return field.ErrorList{field.Forbidden(at.Child("host"), "none is no jump host: write proxyJump: none, or the jump host's name or address")}
	}
	if j.Port == 0 {
		j.Port = 22
	}
	// Secrets and known_hosts have what a file does not say; any will do for the other rules.
	const anyKey = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	access := spec.Access{ProxyJump: j.Spec("any", anyKey)}
	errs := append(access.ValidateDeclared(path), validatePassword(j.Password, at)...)
	if j.HostKey != "" {
		errs = append(errs, spec.ValidateHostKey(j.HostKey, at.Child("hostKey"))...)
	}
	return errs
}

// checkJumps checks, against this machine, how jump hosts are logged in to, each where it is declared.
func (r *reading) checkJumps(check func(path string, l login)) {
	all := &r.jumps.all
	if !all.IsZero() {
		check("spec.proxyJump", all.login())
	}
	for i := range r.cluster.Hosts {
		host := &r.cluster.Hosts[i]
		switch {
		case !r.jumps.own[i]:
			host.ProxyJump = *all
		case !host.ProxyJump.IsZero():
			check(fmt.Sprintf("spec.hosts[%d].proxyJump", i), host.ProxyJump.login())
		}
	}
}

func (j *ProxyJump) login() login {
	return login{address: j.Host, port: j.Port, user: j.User, password: j.Password, key: &j.PrivateKeyPath}
}
