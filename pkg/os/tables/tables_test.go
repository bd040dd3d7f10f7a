// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package tables_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/tables"
)

// TestOf: a system is known by what /etc/os-release has, to the letter, and a release without a dot stands for its minor ones.
func TestOf(t *testing.T) {
	for _, tt := range []struct {
		id, release string
		// kind and iptables are what a family says; remedy what is said where there is none.
		kind     family.Kind
		iptables string
		remedy   string
	}{
		{id: "debian", release: "12", kind: family.Debs, iptables: "iptables"},
		{id: "debian", release: "13", kind: family.Debs, iptables: "iptables"},
		{id: "debian", release: "11", remedy: "use Debian 12 or 13"},
		{id: "ubuntu", release: "22.04", kind: family.Debs, iptables: "iptables"},
		{id: "ubuntu", release: "24.04", kind: family.Debs, iptables: "iptables"},
		{id: "ubuntu", release: "23.10", remedy: "use Ubuntu 22.04 or 24.04"},
		{id: "rocky", release: "9.5", kind: family.RPMs, iptables: "iptables-nft"},
		{id: "rocky", release: "8.10", remedy: "use Rocky Linux 9"},
		{id: "almalinux", release: "9.0", kind: family.RPMs, iptables: "iptables-nft"},
		{id: "rhel", release: "9.4", kind: family.RPMs, iptables: "iptables-nft"},
		{id: "rhel", release: "90", remedy: "use Red Hat Enterprise Linux 9"},
		{id: "centos", release: "9", kind: family.RPMs, iptables: "iptables-nft"},
		{id: "centos", release: "7", remedy: "use CentOS Stream 9"},
		{id: "openEuler", release: "22.03", kind: family.RPMs, iptables: "iptables"},
		{id: "kylin", release: "V10", remedy: "use Kylin Linux Advanced Server V11"},
		{id: "arch", remedy: "Debian 12, 13; Ubuntu 22.04, 24.04; Rocky Linux 9"},
		{remedy: "Debian 12, 13"},
	} {
		t.Run(tt.id+" "+tt.release, func(t *testing.T) {
			os, err := tables.Of(tt.id, tt.release)
			if tt.remedy != "" {
				unsupported := (*tables.UnsupportedError)(nil)
				if !errors.As(err, &unsupported) || !strings.Contains(unsupported.Remedy, tt.remedy) {
					t.Errorf("got %v, want the remedy %q", err, tt.remedy)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := os.Packages().Kind; got != tt.kind {
				t.Errorf("it takes %s, want %s", got, tt.kind)
			}
			if got := family.Names(os, family.IPTables); !slices.Equal(got, []string{tt.iptables}) {
				t.Errorf("iptables is %q, want %s", got, tt.iptables)
			}
			for _, p := range family.Programs() {
				if len(os.Software(p).Packages) == 0 && p != family.Curl {
					t.Errorf("nothing has %s", p)
				}
			}
		})
	}
}

// TestGuide: the guide's table is that of the code.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guides/operating-systems.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range tables.Families {
		for _, s := range f.Systems {
			row := "| " + s.Name + " | " + strings.Join(s.Releases, ", ") + " | `" + s.ID + "` | " + string(s.Seen)
			if !strings.Contains(string(guide), row) {
				t.Errorf("docs/guides/operating-systems.md has no row that begins with %s", row)
			}
		}
	}
}
