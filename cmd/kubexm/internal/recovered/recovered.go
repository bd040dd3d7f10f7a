// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recovered judges, of a cluster whose state is lost, whether what its hosts and its API say allows the state to be written anew.
// It is pure: what was read goes in, and what is wrong comes out, each problem with its remedy.
//
//	Owners    do the hosts say that they are this cluster's, and of one authority
//	Cluster   does the cluster have the hosts, the version and the encryption that are declared, and no others
package recovered

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/inspect"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/quorum"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Checks are the names of what is compared.
const (
	checkOwner      = "owner"
	checkAuthority  = "authority"
	checkNodes      = "nodes"
	checkVersion    = "version"
	checkEtcd       = "etcd"
	checkEncryption = "encryption"
)

// Host is a declared host, with what was seen of it; Facts may be the System and the owner alone.
type Host struct {
	spec.Host
	Facts *host.Facts
}

// Owners judges the records that the hosts have of whose they are, for a cluster with this name; namespace is that of the objects of the
// command's management plane. It returns the fingerprint of the authority that all of them name, "" if there are problems. All hosts were
// seen.
func Owners(cluster, namespace string, hosts []Host) (authority string, problems []preflight.Problem) {
	add := func(h Host, check, cause, remedy string) {
		problems = append(problems, preflight.Problem{Host: h.Name, Check: check, Severity: preflight.Error, Cause: cause, Remedy: remedy})
	}
	const other = "check whether the address in the config file leads to the host that is meant, and correct it; a host of another cluster " +
		"comes out of the config file"
	byAuthority := map[string][]string{}
	for _, h := range hosts {
		owner := h.Facts.Owner
		switch {
		case h.Facts.OwnerUnreadable != "":
			add(h, checkOwner, "the record of its owner, "+host.StateDir+"/"+host.OwnerFile+", cannot be read: "+h.Facts.OwnerUnreadable,
				"find out whose the host is; restore the record, or take the host out of the config file")
			continue
		case owner == nil && h.Facts.Changed():
			add(h, checkOwner, "it was changed by kubexm, and there is no record of its owner, "+host.StateDir+"/"+host.OwnerFile,
				"find out whose the host is; restore the record, or take the host out of the config file")
			continue
		case owner == nil:
			add(h, checkOwner, "it has no record of an owner: it is not a part of any cluster, or not the host that is meant",
				"check whether the address leads to the host that is meant; if the host is new, take it out of the config file, recover, add it again, "+
					"and make it a part of the cluster: kubexm create cluster")
			continue
		}
		byAuthority[owner.Authority] = append(byAuthority[owner.Authority], h.Name)
		switch {
		case owner.Cluster != cluster && owner.Cluster != namespace+"/"+cluster:
			add(h, checkOwner, fmt.Sprintf("it is %s", owner), other+"; a cluster that a management cluster has is managed there")
		case owner.Host != h.Name || owner.Role != string(h.Role):
			add(h, checkOwner, fmt.Sprintf("it is %s, and is declared to be the %s host %s", owner, h.Role, h.Name), other)
		case owner.MachineID != "" && owner.MachineID != h.Facts.System.MachineID:
			add(h, checkOwner, fmt.Sprintf("its record was written on the machine %s, and this machine is %q: the disk was cloned, or the record copied",
				owner.MachineID, h.Facts.System.MachineID), other)
		}
	}
	if len(byAuthority) > 1 {
		var parts []string
		for _, authority := range slices.Sorted(maps.Keys(byAuthority)) {
			parts = append(parts, fmt.Sprintf("%s say %s", strings.Join(byAuthority[authority], ", "), authority))
		}
		problems = append(problems, preflight.Problem{
			Host: cluster, Check: checkAuthority, Severity: preflight.Error,
			Cause:  "its hosts are of two clusters, by the fingerprints of their certificate authorities: " + strings.Join(parts, "; "),
			Remedy: "leave the hosts of one of them in the config file",
		})
	}
	if len(problems) > 0 {
		return "", problems
	}
	return slices.Collect(maps.Keys(byAuthority))[0], nil
}

// Seen is what the hosts and the API of a cluster say of it.
type Seen struct {
	// Cluster is its name, Version and Encryption as declared.
	Cluster, Version string
	Encryption       spec.EncryptionAtRest
	Hosts            []Host
	// Authority is what the hosts' records name, and Found the key pairs that control plane hosts have.
	Authority string
	Found     pki.Authorities
	Nodes     []inspect.Node
	// Members are etcd's, and Gone those that are declared to be gone; there are none where others run etcd. Addresses are those of the
	// hosts that are declared to have one.
	Members   []quorum.Member
	Gone      []string
	Addresses []string
}

// Cluster judges whether the cluster is the one that is declared.
func Cluster(s Seen) []preflight.Problem {
	return slices.Concat(s.authority(), s.nodes(), s.versions(), s.members(), s.encryption())
}

func (s Seen) problem(check, cause, remedy string) preflight.Problem {
	return preflight.Problem{Host: s.Cluster, Check: check, Severity: preflight.Error, Cause: cause, Remedy: remedy}
}

// authority is wrong if the key pairs are another cluster's than the hosts'.
func (s Seen) authority() []preflight.Problem {
	found, err := pki.Fingerprint(s.Found.Cluster.Cert)
	if err != nil {
		return []preflight.Problem{s.problem(checkAuthority, "the certificate of its authority cannot be read: "+err.Error(), "restore /etc/kubernetes/pki/ca.crt")}
	}
	if found == s.Authority {
		return nil
	}
	return []preflight.Problem{s.problem(checkAuthority,
		fmt.Sprintf("its hosts say that they are of the authority %s, and its control plane hosts have %s in /etc/kubernetes/pki", s.Authority, found),
		"restore /etc/kubernetes/pki of the cluster that the hosts are of, from a backup")}
}

// nodes are wrong that are not declared: they would be forgotten, and go on.
func (s Seen) nodes() []preflight.Problem {
	var problems []preflight.Problem
	for _, n := range s.Nodes {
		declared := slices.ContainsFunc(s.Hosts, func(h Host) bool { return h.Name == n.Name && h.Role.IsNode() })
		if !declared {
			problems = append(problems, s.problem(checkNodes,
				fmt.Sprintf("the API lists the Node %s (%s), which is not declared: its host would be forgotten, and go on", n.Name, n.Address),
				"declare it in spec.hosts and spec.roleGroups; if it is gone for good, delete the Node first: "+
					"kubectl --kubeconfig /etc/kubernetes/admin.conf delete node "+n.Name+", on a control plane host"))
		}
	}
	return problems
}

// versions are wrong that differ from what is declared: what is remembered as the cluster's would not be what it has.
func (s Seen) versions() []preflight.Problem {
	byVersion := map[string][]string{}
	for _, n := range s.Nodes {
		byVersion[n.Version] = append(byVersion[n.Version], n.Name)
	}
	versions := slices.Sorted(maps.Keys(byVersion))
	switch {
	case len(versions) > 1:
		var parts []string
		for _, v := range versions {
			parts = append(parts, strings.Join(byVersion[v], ", ")+" "+v)
		}
		return []preflight.Problem{s.problem(checkVersion, "its Nodes have several versions ("+strings.Join(parts, "; ")+"): an upgrade is under way",
			"restore .kubexm/"+s.Cluster+" from a backup; an upgrade that was under way is not recovered")}
	case len(versions) == 1 && versions[0] != s.Version:
		return []preflight.Problem{s.problem(checkVersion, fmt.Sprintf("its Nodes have %s, and %s is declared", versions[0], s.Version),
			"set spec.kubernetes.version: "+versions[0]+", and upgrade the cluster once it is recovered: kubexm upgrade cluster")}
	}
	return nil
}

// members of etcd are wrong that are not declared: they count for quorum.
func (s Seen) members() []preflight.Problem {
	known := map[string]bool{}
	for _, address := range s.Addresses {
		known[quorum.Address("https://"+net.JoinHostPort(address, "2380"))] = true
	}
	var problems []preflight.Problem
	for _, m := range s.Members {
		if known[quorum.Address(m.PeerURL)] || slices.Contains(s.Gone, m.ID) || m.Name != "" && slices.Contains(s.Gone, m.Name) {
			continue
		}
		problems = append(problems, s.problem(checkEtcd,
			fmt.Sprintf("etcd lists the member %q (ID %s, %s), whose host is not declared", m.Name, m.ID, m.PeerURL),
			fmt.Sprintf("declare its host; if that is gone for good, say so: spec.etcd.goneMembers: [%q]", m.ID)))
	}
	return problems
}

// encryption is wrong if the hosts have a key and none is declared, or the other way round.
func (s Seen) encryption() []preflight.Problem {
	has := !s.Found.Encryption.IsZero()
	switch {
	case has && !s.Encryption.IsOn():
		return []preflight.Problem{s.problem(checkEncryption, "its control plane hosts have an encryption key, and it is declared to encrypt nothing",
			"correct spec.kubernetes.encryptionAtRest: /etc/kubernetes/encryption/config.yaml on a control plane host says what is encrypted")}
	case !has && s.Encryption.IsOn():
		return []preflight.Problem{s.problem(checkEncryption, "it is declared to encrypt, and its control plane hosts have no encryption key",
			"set spec.kubernetes.encryptionAtRest: {provider: None}")}
	}
	return nil
}

// Encryption is what is wrong if one of the hosts with these names, which have a key that API servers use, does not encrypt as it should.
// differing are steps that are not so, as HOST/STEP.
func Encryption(cluster string, from, differing []string) []preflight.Problem {
	for _, id := range differing {
		on, step, _ := strings.Cut(id, "/")
		if slices.Contains(from, on) && strings.HasSuffix(step, "/apiserver/encryption") {
			return []preflight.Problem{{
				Host: cluster, Check: checkEncryption, Severity: preflight.Error,
				Cause:  "the host " + on + " encrypts otherwise than is declared (/etc/kubernetes/encryption/config.yaml)",
				Remedy: "declare what that file says: spec.kubernetes.encryptionAtRest.provider and .resources; they cannot be changed",
			}}
		}
	}
	return nil
}
