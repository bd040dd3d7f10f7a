// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cis

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// What etcd is on a host.
const (
	EtcdUnit = "etcd as a unit"
	EtcdPod  = "etcd as a static pod"
	// EtcdElsewhere is that of a host that has none.
	EtcdElsewhere = ""
)

// Subject is a control plane host, all of whose components run, or a host of etcd's own.
type Subject struct {
	Type spec.KubernetesType
	Etcd string
	// Run runs an argument vector as root on the host and returns what it prints.
	Run func(ctx context.Context, argv ...string) (string, error)
}

// fails reports whether the control does not pass on the host by default.
func (c Control) fails(s Subject) bool {
	return slices.Contains(c.Fails, string(s.Type)) || slices.Contains(c.Fails, s.Etcd)
}

// ofEtcd reports whether the control is about a host's own etcd.
func (c Control) ofEtcd() bool {
	return strings.HasPrefix(c.ID, "2.") || slices.Contains([]string{"1.1.7", "1.1.8", "1.1.11", "1.1.12"}, c.ID)
}

// Check asserts each control on the host: that it passes, or that it does not where the table has a reason for that. It looks
// once.
func Check(t *testing.T, s Subject) {
	t.Helper()
	check(t, s, func(c Control) bool { return s.Etcd != EtcdElsewhere || !c.ofEtcd() })
}

// CheckEtcd is Check of a host that has etcd and need have nothing else.
func CheckEtcd(t *testing.T, s Subject) {
	t.Helper()
	check(t, s, Control.ofEtcd)
}

func check(t *testing.T, s Subject, applies func(Control) bool) {
	t.Helper()
	seen, err := s.Run(t.Context(), append([]string{"sh", "-uc", look, "cis"}, components...)...)
	if err != nil {
		t.Fatalf("%v: %s", err, seen)
	}
	h, err := parse(seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Controls() {
		if !applies(c) {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			err := c.audit(h, s)
			switch fails := c.fails(s); {
			case err != nil && !fails:
				t.Errorf("%s: %v", c.Title, err)
			case err == nil && fails:
				t.Errorf("%s: it passes, and the table says that it does not: %s", c.Title, c.Reason)
			}
		})
	}
}
