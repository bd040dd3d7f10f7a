// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package deb_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact/deb"
)

const index = `Package: keepalived
Version: 1:2.2.7-1+b2
Architecture: amd64
Pre-Depends: init-system-helpers (>= 1.54~)
Depends: libc6 (>= 2.34), libnl-3-200 (>= 3.2.21),
 libsnmp40 (>= 5.9.3+dfsg)
Filename: ./keepalived_2.2.7-1+b2_amd64.deb
Size: 452352
SHA256: 4a3d1de9f6f3b4f5f6b8e6a9d6e5a3c8a1b0f2c4d6e8a0b2c4d6e8f0a2b4c6d8
Description: Failover and monitoring daemon
 .
 More: of it.

Package: libsnmp40
Version: 5.9.3+dfsg-2+deb12u1
Depends: libsnmp-base (= 5.9.3+dfsg-2+deb12u1)
Provides: snmp-api (= 40), libsnmp
Filename: libsnmp40.deb
Size: 1
SHA256: 00
`

func TestReadIndex(t *testing.T) {
	got, err := deb.ReadIndex(strings.NewReader(index))
	if err != nil {
		t.Fatal(err)
	}
	want := []deb.Entry{
		{
			Package: deb.Package{
				Name: "keepalived", Version: "1:2.2.7-1+b2",
				Depends: "init-system-helpers (>= 1.54~), libc6 (>= 2.34), libnl-3-200 (>= 3.2.21), libsnmp40 (>= 5.9.3+dfsg)",
			},
			Filename: "keepalived_2.2.7-1+b2_amd64.deb", Size: 452352,
			SHA256: "4a3d1de9f6f3b4f5f6b8e6a9d6e5a3c8a1b0f2c4d6e8a0b2c4d6e8f0a2b4c6d8",
		},
		{
			Package: deb.Package{
				Name: "libsnmp40", Version: "5.9.3+dfsg-2+deb12u1", Depends: "libsnmp-base (= 5.9.3+dfsg-2+deb12u1)",
				Provides: "snmp-api (= 40), libsnmp",
			},
			Filename: "libsnmp40.deb", Size: 1, SHA256: "00",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, text := range map[string]string{
		"no size":              "Package: ab\nVersion: 1\n",
		"a bad name":           "Package: ../ab\nVersion: 1\nSize: 1\n",
		"a bad version":        "Package: ab\nVersion: 1/2\nSize: 1\n",
		"a bad relation":       "Package: ab\nVersion: 1\nSize: 1\nDepends: a (>= 1\n",
		"no index":             "<html>\n",
		"a version that lacks": "Package: ab\nSize: 1\n",
	} {
		if got, err := deb.ReadIndex(strings.NewReader(text)); err == nil {
			t.Errorf("%s: read as %v", name, got)
		}
	}
}

func TestNeeded(t *testing.T) {
	packages := []deb.Package{
		{Name: "keepalived", Version: "1:2.2.7-1", Depends: "libc6 (>= 2.34), libnl, libsnmp40 (>= 5.9), mta | mail, awk"},
		{Name: "libnl", Version: "3.7"},
		{Name: "libsnmp40", Version: "5.9.3", Depends: "libsnmp-base (= 5.9.3)"},
		{Name: "libsnmp-base", Version: "5.9.3"},
		{Name: "postfix", Version: "3", Provides: "mail"},
		{Name: "loop-a", Version: "1", Depends: "loop-b"},
		{Name: "loop-b", Version: "1", Depends: "loop-a"},
		{Name: "other", Version: "1"},
	}
	for name, tt := range map[string]struct {
		names     []string
		installed map[string]string
		want      string
	}{
		"nothing is installed": {
			names: []string{"keepalived"}, want: "keepalived libnl libsnmp40 libsnmp-base postfix",
		},
		"what is installed is not sent": {
			names: []string{"keepalived"}, installed: map[string]string{"libnl": "3.5", "mail": "1", "libsnmp40": "5.9.3"},
			want: "keepalived",
		},
		"an older version is replaced": {
			names: []string{"keepalived"}, installed: map[string]string{"libnl": "3.5", "mta": "1", "libsnmp40": "5.8", "libsnmp-base": "5.8"},
			want: "keepalived libsnmp40 libsnmp-base",
		},
		"a newer version that does not fit is replaced": {
			names: []string{"libsnmp40"}, installed: map[string]string{"libsnmp-base": "6.0"}, want: "libsnmp40 libsnmp-base",
		},
		"a circle": {names: []string{"loop-a"}, want: "loop-a loop-b"},
		"several":  {names: []string{"other", "libnl"}, want: "libnl other"},
	} {
		t.Run(name, func(t *testing.T) {
			needed, err := deb.Needed(packages, tt.names, tt.installed)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range needed {
				got = append(got, packages[i].Name)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("needs %q, want %q", got, tt.want)
			}
		})
	}
	if _, err := deb.Needed(packages, []string{"mail"}, nil); err == nil {
		t.Error("a name that is only provided counts as a package")
	}
}
