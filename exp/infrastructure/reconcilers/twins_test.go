// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// edKey and edFingerprint are one key.
const (
	edKey         = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA0/fXqx0SfFLhF88hACNiYrXn19LsKbAcJHeaAHSf+L"
	edFingerprint = "SHA256:CMImvU4dFoLiiZ5GHxusRzhTnzS0v1sTm9fM9+yhKEo"
)

func at(address string) hostOption {
	return func(h *infrav1.KubexmHost) { h.Spec.Address = address }
}

func machineID(id string) hostOption {
	return func(h *infrav1.KubexmHost) { h.Status.Facts.MachineID = id }
}

func showing(key string) hostOption {
	return func(h *infrav1.KubexmHost) { h.Spec.Access.HostKeys.Pinned = []string{key} }
}

func ofTenant() hostOption {
	return func(h *infrav1.KubexmHost) { h.Namespace = "other" }
}

// TestTwins: of KubexmHosts that are one machine, each names the other, and one at most may be claimed.
func TestTwins(t *testing.T) {
	dirty := is(infrav1.CleanCondition, metav1.ConditionFalse, infrav1.NotResetReason, time.Hour)
	for name, tc := range map[string]struct {
		hosts []infrav1.KubexmHost
		// free are those that may be claimed.
		free          string
		unique, named map[string]string // reason and a word of the message, by host
		secret        string            // what no message says
	}{
		"two machines": {
			hosts: []infrav1.KubexmHost{
				aHost("a", at("10.0.0.1"), machineID("1"), showing("k1")), aHost("b", at("10.0.0.2"), machineID("2"), showing("k2")),
			},
			free:   "a b",
			unique: map[string]string{"a": infrav1.UniqueReason, "b": infrav1.UniqueReason},
		},
		"one address, one claimed": {
			hosts:  []infrav1.KubexmHost{aHost("a", showing("k1")), aHost("b", takenBy("m"), showing("k2"))},
			free:   "",
			unique: map[string]string{"a": infrav1.SameMachineReason, "b": infrav1.SameMachineReason},
			named:  map[string]string{"a": "the KubexmHost fleet/b has the address 10.0.0.1:22", "b": "fleet/a has the address 10.0.0.1:22"},
		},
		"one address, in two namespaces, one claimed and seen there": {
			hosts: []infrav1.KubexmHost{
				aHost("a", showing("k1")), aHost("b", ofTenant(), takenBy("m"), machineID("1"), showing("k2")),
			},
			free:   "",
			unique: map[string]string{"a": infrav1.SameMachineReason, "b": infrav1.UniqueReason},
			named:  map[string]string{"a": "a KubexmHost of another namespace has the address 10.0.0.1:22"}, secret: "other/b",
		},
		"one address, in two namespaces, one claimed by who was never there": {
			hosts: []infrav1.KubexmHost{
				aHost("a", at("10.0.0.1"), showing("k1")), aHost("b", at("10.0.0.1"), ofTenant(), takenBy("m"), showing("k2")),
			},
			free:   "a",
			unique: map[string]string{"a": infrav1.UniqueReason, "b": infrav1.UniqueReason}, secret: "other/b",
		},
		"one address, in two namespaces, one claimed that was seen at another": {
			hosts: []infrav1.KubexmHost{
				aHost("a", machineID("1"), showing("k1")), aHost("b", ofTenant(), takenBy("m"), machineID("2"), showing("k2")),
			},
			free:   "a",
			unique: map[string]string{"a": infrav1.UniqueReason}, secret: "other/b",
		},
		"one machine-id, in two namespaces, one claimed": {
			hosts: []infrav1.KubexmHost{
				aHost("a", at("10.0.0.1"), machineID("1"), showing("k1")),
				aHost("b", at("10.0.0.2"), ofTenant(), takenBy("m"), machineID("1"), showing("k2")),
			},
			free:   "",
			unique: map[string]string{"a": infrav1.SameMachineReason, "b": infrav1.SameMachineReason},
			named:  map[string]string{"a": "a KubexmHost of another namespace has the machine-id 1"}, secret: "other/b",
		},
		"one host key, in two namespaces": {
			hosts: []infrav1.KubexmHost{
				aHost("a", at("10.0.0.1"), showing(edKey)), aHost("b", at("10.0.0.2"), ofTenant(), showing(edKey)),
			},
			free:   "a b",
			unique: map[string]string{"a": infrav1.SharedHostKeyReason},
			named:  map[string]string{"a": "also that of a KubexmHost of another namespace: "}, secret: "other/b",
		},
		"one machine-id by two addresses, none claimed": {
			hosts: []infrav1.KubexmHost{
				aHost("a", at("10.0.0.1"), machineID("1"), showing("k1")), aHost("b", at("10.0.0.2"), machineID("1"), showing("k2")),
			},
			free:   "a",
			unique: map[string]string{"a": infrav1.SameMachineReason, "b": infrav1.SameMachineReason},
			named:  map[string]string{"a": "the machine-id 1"},
		},
		"the other is in quarantine": {
			hosts:  []infrav1.KubexmHost{aHost("a", showing("k1")), aHost("b", dirty, showing("k2"))},
			free:   "",
			unique: map[string]string{"a": infrav1.SameMachineReason},
		},
		"other ports of one address": {
			hosts: []infrav1.KubexmHost{
				aHost("a", showing("k1")), aHost("b", showing("k2"), func(h *infrav1.KubexmHost) { h.Spec.Access.Port = 2222 }),
			},
			free: "a b", unique: map[string]string{"a": infrav1.UniqueReason},
		},
		"one host key": {
			hosts: []infrav1.KubexmHost{
				aHost("a", at("10.0.0.1"), showing(edKey+" root@image")), aHost("b", at("10.0.0.2"), showing(edFingerprint)),
			},
			free:   "a b",
			unique: map[string]string{"a": infrav1.SharedHostKeyReason, "b": infrav1.SharedHostKeyReason},
			named:  map[string]string{"a": "fleet/b", "b": "fleet/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ids := identitiesOf(tc.hosts)
			var free []string
			for i := range tc.hosts {
				h := &tc.hosts[i]
				refused := ids.refuses(h)
				if refused == nil && availability(h, noon).available {
					free = append(free, h.Name)
				}
				c := ids.unique(h)
				says := c.Message
				if refused != nil {
					says += refused.message
				}
				if tc.secret != "" && strings.Contains(says, tc.secret) {
					t.Errorf("of %s it says %q and %+v, with %q", h.Name, c.Message, refused, tc.secret)
				}
				if want := tc.unique[h.Name]; want != "" && c.Reason != want ||
					(c.Status == metav1.ConditionFalse) != (c.Reason == infrav1.SameMachineReason) {
					t.Errorf("%s is %s %s: %s", h.Name, c.Status, c.Reason, c.Message)
				}
				if !strings.Contains(c.Message, tc.named[h.Name]) {
					t.Errorf("of %s it says %q, without %q", h.Name, c.Message, tc.named[h.Name])
				}
			}
			if got := strings.Join(free, " "); got != tc.free {
				t.Errorf("may be claimed: %q, want %q", got, tc.free)
			}
		})
	}
}

// TestChooseNoTwin: a Machine does not get a host that another namespace's Machine has by another name.
func TestChooseNoTwin(t *testing.T) {
	mine, theirs := aHost("a", showing("k1")), aHost("z", ofTenant(), takenBy("m"), machineID("1"), showing("k2"))
	c := &claimant{
		machine: &infrav1.KubexmMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "m"}},
		owner:   &clusterv1.Machine{}, hosts: []infrav1.KubexmHost{mine},
	}
	if got := c.choose(noon); got.host == nil {
		t.Fatalf("alone: %s", got.message)
	}
	c.ids = identitiesOf([]infrav1.KubexmHost{mine, theirs})
	if got := c.choose(noon); got.host != nil || !strings.Contains(got.message, "the same machine") {
		t.Errorf("got %v, %s", got.host, got.message)
	}
}

// TestSharedBy: who becomes a twin by being seen is one for a host that is none of its own twins.
func TestSharedBy(t *testing.T) {
	mine, theirs := aHost("a", showing("k1")), aHost("b", ofTenant(), machineID("1"), showing("k2"))
	got := SharedBy(&theirs, []infrav1.KubexmHost{mine, theirs})
	if len(got) != 1 || got[0].String() != "fleet/a" {
		t.Errorf("it concerns %v", got)
	}
}
