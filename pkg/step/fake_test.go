// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// inMemory is a machine in memory with swap, a module to load and a package to install.
func inMemory(t *testing.T) (*rig, *fake.Machine) {
	t.Helper()
	m := fake.New("h")
	m.System.Swap = []string{"/dev/sda2"}
	m.Available = map[string]string{"socat": "1.7"}
	m.SetSysctl("net.ipv4.ip_default_ttl", "64")
	return &rig{
		dial: func(context.Context) (host.Host, error) { return m.Connect(), nil },
		put:  func(_ *testing.T, path, content string) { m.Put(path, content, 0o644) },
		also: []step.Step{
			step.New(step.Meta{Name: "swap/off"}, step.SwapOff{}),
			step.New(step.Meta{Name: "module/load"}, step.Module{Name: "br_netfilter"}),
			step.New(step.Meta{Name: "package/install"}, step.Package{Names: []string{"socat"}}),
		},
	}, m
}

func TestSteps(t *testing.T) {
	r, _ := inMemory(t)
	testSteps(t, r)
}

// Wherever a step is cut in its work, the run comes to its end and leaves nothing to be done, and the host can be reset.
func TestStepsCut(t *testing.T) {
	large := secretFile
	t.Cleanup(func() { secretFile = large })
	secretFile = []byte("small")

	uncut, _ := inMemory(t)
	steps := uncut.desired("")
	uncut.before(t)
	plain := uncut.run(t, "1", -1).Hosts[0].Exchanges
	cuts := 0
	for _, s := range steps {
		for boundary := 1; cutAt(t, "h/m/t/"+s.Meta().Name, boundary) > plain; boundary++ {
			cuts++
		}
	}
	if cuts < 50 {
		t.Errorf("only %d boundaries were met", cuts)
	}
}

// cutAt cuts a node at one boundary of its act, and returns how many exchanges the run needed.
func cutAt(t *testing.T, node string, boundary int) int {
	t.Helper()
	r, m := inMemory(t)
	r.before(t)
	before := r.seen(t)
	armed := false
	m.OnChange = func(at string, _ host.Change) error {
		if at == node && !armed {
			armed = true
			m.CutAt(boundary)
		}
		return nil
	}
	took := r.run(t, "1", -1).Hosts[0].Exchanges
	m.CutAt(0)
	r.wantDesired(t)
	r.run(t, "1", 0)
	r.undoAll(t, before)
	if t.Failed() {
		t.Fatalf("cut at boundary %d of %s", boundary, node)
	}
	return took
}
