// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package recovered_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/inspect"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/recovered"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/quorum"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	own   = "sha256:aa"
	other = "sha256:bb"
)

// seen is a host that says what it is declared to be.
func seen(name string, role spec.Role) recovered.Host {
	return recovered.Host{Host: spec.Host{Name: name, Role: role}, Facts: &host.Facts{
		System: host.System{MachineID: "id-" + name},
		Owner:  &host.Owner{Cluster: "default/prod", Authority: own, Role: string(role), Host: name, MachineID: "id-" + name},
	}}
}

// refused wants exactly one problem, of a host, with a cause and a remedy that have these words.
func refused(t *testing.T, got []preflight.Problem, on, cause, remedy string) {
	t.Helper()
	if len(got) != 1 || got[0].Host != on || got[0].Severity != preflight.Error || !strings.Contains(got[0].Cause, cause) ||
		!strings.Contains(got[0].Remedy, remedy) {
		t.Errorf("got %+v, want one of %s with %q and %q", got, on, cause, remedy)
	}
}

// TestOwners: hosts that all say that they are what is declared name the authority; one that does not is refused.
func TestOwners(t *testing.T) {
	for name, tc := range map[string]struct {
		change            func(worker *recovered.Host)
		on, cause, remedy string
	}{
		"as declared": {change: func(*recovered.Host) {}},
		"made without a management plane": {change: func(h *recovered.Host) {
			h.Facts.Owner.Cluster = "prod"
		}},
		"a record from before there were machine IDs": {change: func(h *recovered.Host) { h.Facts.Owner.MachineID = "" }},
		"another cluster's": {func(h *recovered.Host) { h.Facts.Owner.Cluster = "other" }, "w1", "it is the Worker host w1 of cluster other",
			"comes out of the config file"},
		"a management cluster's": {func(h *recovered.Host) { h.Facts.Owner.Cluster = "fleet/prod" }, "w1", "of cluster fleet/prod", "is managed there"},
		"another host of the cluster": {func(h *recovered.Host) { h.Facts.Owner.Host = "w2" }, "w1", "host w2 of cluster default/prod",
			"whether the address"},
		"another role": {func(h *recovered.Host) { h.Facts.Owner.Role = "ControlPlane" }, "w1", "is declared to be the Worker host w1", "whether the address"},
		"a clone":      {func(h *recovered.Host) { h.Facts.System.MachineID = "id-clone" }, "w1", "the disk was cloned", "whether the address"},
		"nobody's":     {func(h *recovered.Host) { h.Facts.Owner = nil }, "w1", "no record of an owner", "take it out of the config file, recover, add it again"},
		"changed, and without a record": {func(h *recovered.Host) {
			h.Facts.Owner, h.Facts.UndoEntries = nil, 3
		}, "w1", "changed by kubexm, and there is no record", "restore the record"},
		"a record that cannot be read": {func(h *recovered.Host) {
			h.Facts.Owner, h.Facts.OwnerUnreadable = nil, "it is empty"
		}, "w1", "cannot be read: it is empty", "restore the record"},
		"of two authorities": {func(h *recovered.Host) { h.Facts.Owner.Authority = other }, "prod", "cp1 say sha256:aa; w1 say sha256:bb",
			"leave the hosts of one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := []recovered.Host{seen("cp1", spec.RoleControlPlane), seen("w1", spec.RoleWorker)}
			tc.change(&hosts[1])
			authority, problems := recovered.Owners("prod", "default", hosts)
			if tc.on == "" {
				if authority != own || len(problems) > 0 {
					t.Errorf("got %q, %+v", authority, problems)
				}
				return
			}
			if authority != "" {
				t.Errorf("the authority is %q", authority)
			}
			refused(t, problems, tc.on, tc.cause, tc.remedy)
		})
	}
}

// TestCluster: what a cluster has beside what is declared would be forgotten, and is refused; so is what is declared otherwise.
func TestCluster(t *testing.T) {
	found, err := pki.NewAuthorities(pki.CARequest{Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	found.CompleteEncryption()
	authority, err := pki.Fingerprint(found.Cluster.Cert)
	if err != nil {
		t.Fatal(err)
	}
	node := func(name string) inspect.Node { return inspect.Node{Name: name, Version: "v1.36.3"} }
	for name, tc := range map[string]struct {
		change        func(*recovered.Seen)
		cause, remedy string
	}{
		"as declared":             {change: func(*recovered.Seen) {}},
		"a host without its Node": {change: func(s *recovered.Seen) { s.Nodes = s.Nodes[:1] }},
		"a Node that is not declared": {func(s *recovered.Seen) { s.Nodes = append(s.Nodes, node("w2")) }, "lists the Node w2",
			"delete node w2"},
		"a Node on a host that is to be none": {func(s *recovered.Seen) { s.Nodes = append(s.Nodes, node("lb1")) }, "lists the Node lb1", "spec.roleGroups"},
		"another version": {func(s *recovered.Seen) { s.Version = "v1.37.0" },
			"have v1.36.3, and v1.37.0 is declared", "set spec.kubernetes.version: v1.36.3"},
		"an upgrade under way": {func(s *recovered.Seen) { s.Nodes[1].Version = "v1.37.0" }, "cp1 v1.36.3; w1 v1.37.0", "from a backup"},
		"a member that is not declared": {func(s *recovered.Seen) {
			s.Members = append(s.Members, quorum.Member{ID: "b2", Name: "cp2", PeerURL: "https://10.0.0.2:2380"})
		}, `the member "cp2" (ID b2`, `spec.etcd.goneMembers: ["b2"]`},
		"a member that is gone": {change: func(s *recovered.Seen) {
			s.Members, s.Gone = append(s.Members, quorum.Member{ID: "b2", Name: "cp2", PeerURL: "https://10.0.0.2:2380"}), []string{"cp2"}
		}},
		"key pairs of another": {func(s *recovered.Seen) { s.Authority = other }, "of the authority sha256:bb", "restore /etc/kubernetes/pki"},
		"a key, and none is declared": {func(s *recovered.Seen) {
			s.Encryption.Provider = spec.EncryptionNone
		}, "have an encryption key", "spec.kubernetes.encryptionAtRest"},
		"no key, and one is declared": {func(s *recovered.Seen) { s.Found.Encryption = pki.KeyPair{} }, "have no encryption key", "{provider: None}"},
		"no key, and none is declared": {change: func(s *recovered.Seen) {
			s.Found.Encryption, s.Encryption.Provider = pki.KeyPair{}, spec.EncryptionNone
		}},
		"an authority that is no such":   {func(s *recovered.Seen) { s.Found.Cluster.Cert = []byte("x") }, "cannot be read", "restore"},
		"a Node by the name of a domain": {func(s *recovered.Seen) { s.Nodes[1].Name = "w1.example.com" }, "lists the Node w1.example.com", "declare it"},
	} {
		t.Run(name, func(t *testing.T) {
			s := recovered.Seen{
				Cluster: "prod", Version: "v1.36.3", Encryption: spec.EncryptionAtRest{Provider: spec.EncryptionSecretbox},
				Authority: authority, Found: found,
				Hosts: []recovered.Host{seen("cp1", spec.RoleControlPlane), seen("w1", spec.RoleWorker), seen("lb1", spec.RoleLoadBalancer)},
				Nodes: []inspect.Node{node("cp1"), node("w1")}, Addresses: []string{"10.0.0.1"},
				Members: []quorum.Member{{ID: "a1", Name: "cp1", PeerURL: "https://10.0.0.1:2380"}},
			}
			tc.change(&s)
			problems := recovered.Cluster(s)
			if tc.cause == "" {
				if len(problems) > 0 {
					t.Errorf("got %+v", problems)
				}
				return
			}
			refused(t, problems, "prod", tc.cause, tc.remedy)
		})
	}
}

// TestEncryption: what a host encrypts cannot be changed, so a host that was read and encrypts otherwise is refused; what else differs is
// for the next run to repair.
func TestEncryption(t *testing.T) {
	const step = "/kubernetes/control-plane/apiserver/encryption"
	if got := recovered.Encryption("prod", []string{"cp1"}, []string{"w1/os/files", "cp2" + step, "cp1/kubernetes/encryption-of-others/x"}); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
	refused(t, recovered.Encryption("prod", []string{"cp1"}, []string{"w1/os/files", "cp1" + step}), "prod", "cp1 encrypts otherwise", "cannot be changed")
}
