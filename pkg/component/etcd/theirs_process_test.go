// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package etcd_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestTheirsBecomeOurs: members that others have begun, by another unit and under other names, go on as ours, one after the other: with
// their data, and as the members that they are.
func TestTheirsBecomeOurs(t *testing.T) {
	t.Parallel()
	all := processes(t, 3, spec.Etcd{})
	var initial []string
	for _, p := range all {
		initial = append(initial, "etcd-"+p.settings.Name+"=https://"+p.address+":2380")
	}
	ours := map[*process][]byte{}
	for _, p := range all {
		flags, err := os.ReadFile(p.path("flags"))
		if err != nil {
			t.Fatal(err)
		}
		ours[p] = flags
		theirs := strings.Replace(string(flags), "--name="+p.settings.Name, "--name=etcd-"+p.settings.Name, 1)
		p.put("flags", []byte(theirs+"\n--initial-cluster="+strings.Join(initial, ",")+"\n--initial-cluster-state=new\n--initial-cluster-token=k8s_etcd"))
		p.systemctl("start")
		// systemd makes the directory of the unit that says so, which theirs does not.
		if err := os.RemoveAll(p.path("run")); err != nil {
			t.Fatal(err)
		}
	}
	for begun := false; !begun; {
		_, err := all[0].tryCtl("put", "color", "blue")
		begun = err == nil
	}
	const theirs = "etcd-n1 etcd-n2 etcd-n3"
	for named := ""; named != theirs; { // each publishes its name once there is a leader
		named = all[0].members()
	}
	ids := all[0].ids()
	for _, p := range all {
		was := p.pid()
		p.put("flags", ours[p])
		p.must(p.member(), "does not say which member runs here")
		p.must(p.member(), "")
		if p.pid() == was {
			t.Errorf("%s was not started by our unit", p.settings.Name)
		}
		if got := p.ctl("get", "color", "--print-value-only"); got != "blue" {
			t.Errorf("%s has %q", p.settings.Name, got)
		}
	}
	all[0].wantThree()
	if now := all[0].ids(); now != ids {
		t.Errorf("the members were %s, and are %s", ids, now)
	}
}

// ids are those of all members, in etcd's order.
func (p *process) ids() string {
	p.t.Helper()
	var all []string
	for line := range strings.Lines(p.ctl("member", "list")) {
		id, _, _ := strings.Cut(line, ",")
		all = append(all, id)
	}
	return strings.Join(all, " ")
}
