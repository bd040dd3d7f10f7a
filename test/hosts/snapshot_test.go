// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readOutput(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("testdata/snapshot.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(content), "\n")
}

func TestParseSnapshot(t *testing.T) {
	got, err := parseSnapshot(readOutput(t))
	if err != nil {
		t.Fatal(err)
	}
	want := Snapshot{
		"file": {
			"/":                   "directory 755 0:0",
			"/etc/hosts":          "file 644 0:0 166 bytes sha256 0123456789abcdef",
			"/etc/localtime":      "link to /usr/share/zoneinfo/Etc/UTC",
			"/run/lock":           "directory 1777 0:0",
			"/var/lib/space name": "file 600 1000:1000 0 bytes sha256 e3b0c44298fc1c14",
		},
		"unit": {
			"ssh.service":    "loaded active running",
			"dev-vda.device": "loaded activating tentative",
		},
		"sysctl": {
			"net/ipv4/ip_forward": "1",
			"kernel/domainname":   "",
			"dev/two":             "first\nsecond",
		},
		"mount": {
			"/": "fuse.fuse-overlayfs fuse-overlayfs rw,user_id=0, root /, rw,nodev,noatime, shared, master",
			"/var": "ext4 /dev/vda rw,discard, root /volumes/a/_data, rw,relatime, shared, master\n" +
				"ext4 /dev/vda rw,discard, root /volumes/b, rw,relatime",
		},
		"iptables": {
			"nat chain INPUT":                                 "policy DROP",
			"nat chain DOCKER_OUTPUT":                         "policy -",
			"nat -A OUTPUT -d 127.0.0.11/32 -j DOCKER_OUTPUT": "there",
		},
		"nft": {
			"ip filter chain KUBE-FIREWALL":                                                 "there",
			"inet mine set blocked":                                                         "there",
			"inet mine set blocked: type ipv4_addr":                                         "there",
			"inet mine set blocked: elements = { 192.0.2.1,":                                "there",
			"inet mine set blocked: 192.0.2.2 }":                                            "there",
			"inet mine chain guard":                                                         "there",
			"inet mine chain guard: type filter hook input priority filter; policy accept;": "there",
			"inet mine chain guard: ip saddr @blocked counter drop":                         "there",
		},
		"link": {
			"eth0":  "veth mtu 1500 address 02:42:0a:4d:01:0b BROADCAST,UP",
			"veth1": "veth mtu 1450 address 02:42:0a:4d:01:0c UP master cni0",
		},
		"address": {"eth0 10.77.1.11/24": "inet global"},
		"route": {
			`{"dev":"eth0","dst":"default","gateway":"10.77.1.1"}`: "there",
			`{"dev":"eth0","dst":"fe80::/64"}`:                     "there",
		},
		"rule":    {`{"priority":0,"src":"all","table":"local"}`: "there"},
		"account": {"ops": "x:1000:1000::/home/ops:/bin/bash"},
		"group":   {"sudo": "x:27:sudopw"},
		"process": {"systemd": "there", "sshd": "there"},
		"cgroup":  {"memory/system.slice": "there", "memory/kubepods": "there"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseSnapshotRefuses(t *testing.T) {
	whole := readOutput(t)
	for name, out := range map[string]string{
		"an empty output":         "",
		"an output cut short":     strings.TrimSuffix(whole, "@@ end"),
		"a missing section":       strings.Replace(whole, "@@ groups\n", "", 1),
		"a file line":             strings.Replace(whole, "/etc/hosts\tf\t644\t", "/etc/hosts\tf\t", 1),
		"an unknown kind of file": strings.Replace(whole, "\tf\t644", "\t?\t644", 1),
		"a short sum":             strings.Replace(whole, "0123456789abcdef  /etc", "0123  /etc", 1),
		"a unit without state":    strings.Replace(whole, "ssh.service                loaded active     running   OpenBSD Secure Shell server", "ssh.service", 1),
		"a sysctl elsewhere":      strings.Replace(whole, "/proc/sys/net", "/proc/net", 1),
		"a mount":                 strings.Replace(whole, " - ext4", " ext4", 1),
		"an iptables line":        strings.Replace(whole, "COMMIT", "ROLLBACK", 1),
		"an nft table":            strings.Replace(whole, "table inet", "inet", 1),
		"an nft table's end":      strings.Replace(whole, "drop\n\t}\n}", "drop\n\t}", 1),
		"JSON":                    strings.Replace(whole, `[{"priority"`, `[{"priority`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			if out == whole {
				t.Fatal("the case changes nothing")
			}
			if _, err := parseSnapshot(out); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestParseSnapshotSeesTornListings(t *testing.T) {
	whole := readOutput(t)
	for name, line := range map[string]string{
		"files": "/etc/hosts\tf\t644\t0:0\t166\t\n",
		"sums":  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef  /etc/hosts\n",
	} {
		out := strings.Replace(whole, line, line+line, 1)
		if _, err := parseSnapshot(out); out == whole || !errors.Is(err, errTorn) {
			t.Errorf("a line of %s twice: %v", name, err)
		}
	}
}

func TestDiff(t *testing.T) {
	a := Snapshot{
		"file": {"/etc/a": "file 644", "/etc/b": "file 644", "/etc/c": "file 644", "/var/log/x": "file 600"},
		"unit": {"ssh.service": "loaded active running"},
	}
	b := Snapshot{
		"file": {
			"/etc/b": "file 600", "/etc/c": "file 644", "/etc/d": "", "/var/log/x": "file 644", "/var/logger": "file 644",
			// Logins come and go; a Pod's scope stays until somebody removes it.
			"/run/systemd/transient/session-2335.scope": "file 644", "/run/systemd/transient/crio-2335.scope": "file 644",
		},
		"unit":   {"ssh.service": "loaded active running", "systemd-hostnamed.service": "loaded active running"},
		"cgroup": {"memory/system.slice": "there", "memory/kubepods": "there", "kubepods.slice": "there", "system.slice/ssh.service": "there"},
	}
	want := []string{
		"cgroup kubepods.slice: added: there",
		"cgroup memory/kubepods: added: there",
		"file /etc/a: removed: file 644",
		"file /etc/b: changed from file 644 to file 600",
		"file /etc/d: added: ",
		"file /run/systemd/transient/crio-2335.scope: added: file 644",
		"file /var/logger: added: file 644",
	}
	if diff := cmp.Diff(want, Diff(a, b)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if same := Diff(b, b); len(same) != 0 {
		t.Errorf("a snapshot differs from itself: %q", same)
	}
	if before, after := len(Diff(Snapshot{}, b)), len(Diff(b, nil)); before != after || before == 0 {
		t.Errorf("%d differences one way, %d the other", before, after)
	}
}

// TestRules keeps the list honest: each rule is of a section that exists, and says why.
func TestRules(t *testing.T) {
	snapshot, err := parseSnapshot(readOutput(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range Rules() {
		if _, known := snapshot[rule.Section]; !known {
			t.Errorf("rule %q is of section %q, which no snapshot has", rule.Pattern, rule.Section)
		}
		if rule.Reason == "" {
			t.Errorf("rule %q gives no reason", rule.Pattern)
		}
	}
}
