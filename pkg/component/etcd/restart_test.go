// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package etcd_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestRestart restarts one member of three by the etcd that we ship, once for each request; while it would cost the quorum, or a restore is
// under way, it does not, and one that is away is brought back by nobody's leave.
func TestRestart(t *testing.T) {
	t.Parallel()
	all := processes(t, 3, spec.Etcd{})
	for _, p := range all {
		p.must(p.member(), "no voting member answers here")
	}
	p, others := all[1], []*process{all[0], all[2]}
	asked := component.Restart{Components: []spec.ComponentName{spec.ComponentEtcd}, Asked: time.Now()}
	request := func() string {
		p.put("asked", []byte(time.Now().String()))
		return "asked=" + p.path("asked")
	}
	s := etcd.Restart(p.settings, asked)
	env, was, theirs := request(), p.pid(), others[0].pid()+others[1].pid()
	p.must(s, "etcd began before that was asked for", env)
	again := p.pid()
	if again == was || others[0].pid()+others[1].pid() != theirs {
		t.Errorf("etcd is %s and was %s, the others %s and were %s", again, was, others[0].pid()+others[1].pid(), theirs)
	}
	p.must(s, "", env) // the same request
	if p.pid() != again {
		t.Error("it was restarted twice")
	}

	p.put("under-way", nil)
	refused := func(want string, also ...string) {
		t.Helper()
		if _, failure := p.converge(s, append(also, env)...); failure == "" || !strings.Contains(failure, want) {
			t.Errorf("it fails with %q, and not because %s", failure, want)
		}
	}
	env = request()
	refused("is being restored", "restoring="+p.path("under-way"))
	others[0].stop()
	refused("it would cost the cluster its quorum")
	if p.pid() != again {
		t.Error("it was restarted all the same")
	}
	others[0].must(others[0].member(), "no voting member answers here")
	p.must(s, "etcd began before that was asked for", env)

	p.stop()
	env = request()
	p.must(s, "etcd began before that was asked for", env)
	if err := os.Remove(p.path("member")); err != nil {
		t.Fatal(err)
	}
	env = request()
	refused("was not made a member yet")
}
