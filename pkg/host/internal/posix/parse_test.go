// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

func TestSplitFiles(t *testing.T) {
	prefix := disguise()
	body := "==> " + prefix + "/etc/a <==\none\n==> /etc/b <==\n\n==> " + prefix + "/etc/empty <==\n\n==> " + prefix + "/etc/b <==\nno newline"
	got := splitFiles([]byte(body), prefix)
	want := map[string][]byte{"/etc/a": []byte("one\n==> /etc/b <==\n"), "/etc/empty": {}, "/etc/b": []byte("no newline")}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if disguise() == prefix {
		t.Error("two disguises are the same")
	}
}

func TestParsePorts(t *testing.T) {
	got := parsePorts([]byte(`LISTEN 0      128          0.0.0.0:22        0.0.0.0:*    users:(("sshd",pid=132,fd=3))
LISTEN 0      4096               *:6443            *:*    users:(("kube-apiserver",pid=9,fd=3),("x",pid=10,fd=4))
LISTEN 0      128             [::]:80           [::]:*
LISTEN 0      128             [::]:81           [::]:*
`), []int32{22, 6443, 80, 9})
	want := map[int32]host.Listener{22: {Process: "sshd", PID: 132}, 6443: {Process: "kube-apiserver", PID: 9}, 80: {}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestLastingIPv6(t *testing.T) {
	const addresses = `2: eth0    inet 172.16.0.2/24 brd 172.16.0.255 scope global eth0\       valid_lft forever preferred_lft forever
2: eth0    inet6 2001:db8::8:2/64 scope global temporary dynamic \       valid_lft 600sec preferred_lft 300sec
2: eth0    inet6 2001:db8::9/64 scope global dynamic mngtmpaddr \       valid_lft 600sec preferred_lft 300sec
2: eth0    inet6 2001:db8::5/64 scope global \       valid_lft forever preferred_lft forever
2: eth0    inet6 2001:db8::4/64 scope global deprecated \       valid_lft forever preferred_lft 0sec
2: eth0    inet6 2001:db8::3/64 scope global dadfailed tentative \       valid_lft forever preferred_lft forever
3: eth1    inet6 2001:db8::1/64 scope global \       valid_lft forever preferred_lft forever
`
	for name, want := range map[string]string{"eth0": "2001:db8::5", "eth1": "2001:db8::1", "eth2": "", "": ""} {
		if got := lastingIPv6([]byte(addresses), name); got != want {
			t.Errorf("of %q it is %q, want %q", name, got, want)
		}
	}
}

func TestAccounts(t *testing.T) {
	o := newObservation(host.Query{Paths: []host.PathQuery{{Path: "/a"}, {Path: "/b c"}, {Path: "/d"}}}, false)
	a := newAnswer(o)
	for _, f := range []frame{
		{words: []string{"paths"}, body: []byte("81a4 0 0 5 1.5 1:2:5:1.5 /a\n81a4 7 8 5 1.5 1:3:5:1.5 /b c\n" +
			"81a4 9 0 5 1.5 1:4:5:1.5 /d\n81a4 0 0 5 1.5 1:5:5:1.5 /not-asked\n")},
		{words: []string{"accounts"}, body: []byte("7 8 ops staff\n9 0 UNKNOWN root\n")},
	} {
		if !a.add(f) {
			t.Errorf("%s is refused", f.kind())
		}
	}
	got := map[string]string{}
	for path, p := range a.finish(time.Now()).Paths {
		got[path] = fmt.Sprintf("%s:%s %d:%d", p.Owner, p.Group, p.UID, p.GID)
	}
	if d := cmp.Diff(map[string]string{"/a": "root:root 0:0", "/b c": "ops:staff 7:8", "/d": "9:root 9:0"}, got); d != "" {
		t.Error(d)
	}
}

// Units that only tell about the system may be left out by the host.
func TestSystemUnitsLeftOut(t *testing.T) {
	a := newAnswer(newObservation(host.Query{Units: []string{"mine.service"}}, true))
	a.units = []byte("Id=mine.service\nLoadState=loaded\nActiveState=active\n\n" +
		"Id=chrony.service\nNames=chronyd.service chrony.service\nActiveState=active\n")
	f := a.finish(time.Now())
	if f.Units["mine.service"].Active != "active" || f.System.TimeSync != "chrony.service" || f.System.Firewall != "" {
		t.Errorf("got %+v, time by %q, firewall %q", f.Units, f.System.TimeSync, f.System.Firewall)
	}
}

func TestUnitsInOrder(t *testing.T) {
	o := newObservation(host.Query{Units: []string{"first.service", "invalid", "alias.service", "last.socket"}}, false)
	a := newAnswer(o)
	a.booted = time.Unix(1000, 0).UTC()
	a.units = []byte(`Id=first.service
Names=first.service
LoadState=not-found
ActiveState=inactive
SubState=dead
UnitFileState=
NeedDaemonReload=no
ActiveEnterTimestampMonotonic=0

Id=real.service
Names=real.service alias.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
NeedDaemonReload=yes
ActiveEnterTimestampMonotonic=5000000
`)
	a.unitsFromList()
	want := map[string]host.UnitState{
		"first.service": {Load: "not-found", Active: "inactive", Sub: "dead"},
		"invalid":       {Load: "not-found", Active: "inactive"},
		"alias.service": {Load: "loaded", Active: "active", Sub: "running", File: "enabled", NeedDaemonReload: true, Since: time.Unix(1005, 0).UTC()},
		"last.socket":   {Load: "not-found", Active: "inactive"},
	}
	if d := cmp.Diff(want, a.facts.Units); d != "" {
		t.Error(d)
	}
}

func TestSysctlPath(t *testing.T) {
	for name, want := range map[string]string{
		"net.ipv4.ip_forward":           "/proc/sys/net/ipv4/ip_forward",
		"net/ipv4/conf/eth0.100/forwar": "/proc/sys/net/ipv4/conf/eth0.100/forwar",
		"net.ipv4.conf.eth0/100.mtu":    "/proc/sys/net/ipv4/conf/eth0.100/mtu",
	} {
		if got := sysctlPath(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestRefusedBeforeSent(t *testing.T) {
	for name, a := range map[string]host.Act{
		"relative path":       {Node: "n", Changes: []host.Change{host.File{Path: "etc/x"}}},
		"path that climbs":    {Node: "n", Changes: []host.Change{host.File{Path: "/etc/../x"}}},
		"path with a newline": {Node: "n", Changes: []host.Change{host.File{Path: "/etc/x\ny"}}},
		"system directory":    {Node: "n", Changes: []host.Change{host.Claim{Paths: []string{"/var/lib"}}}},
		"root":                {Node: "n", Changes: []host.Change{host.Absent{Path: "/"}}},
		"unit state":          {Node: "n", Changes: []host.Change{host.Unit{Name: "a.service", Active: "running"}}},
		"unit name":           {Node: "n", Changes: []host.Change{host.Unit{Name: "a b", Active: "started"}}},
		"sysctl by the way":   {Node: "n", Changes: []host.Change{host.Sysctl{Name: "net/../../x", Value: "1"}}},
		"sysctl with dots":    {Node: "n", Changes: []host.Change{host.Sysctl{Name: "net.//.x", Value: "1"}}},
		"sysctl that climbs":  {Node: "n", Changes: []host.Change{host.Sysctl{Name: "../x", Value: "1"}}},
		"digest":              {Node: "n", Changes: []host.Change{host.File{Path: "/x", Blob: "sha256:../../etc/shadow"}}},
		"env":                 {Node: "n", Changes: []host.Change{host.Command{Argv: []string{"true"}, Env: []string{"A B=c"}}}},
		"no node":             {Changes: []host.Change{host.File{Path: "/x"}}},
		"stream without one":  {Node: "n", Changes: []host.Change{host.Command{Argv: []string{"cat"}, StdinStream: true}}},
		"question":            {Node: "n", Verify: host.Query{Paths: []host.PathQuery{{Path: "x"}}}},
	} {
		if _, err := checkAct(a); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
}
