// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package system_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/system"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestHostname names a host, and wants the old name back from a reset.
func TestHostname(t *testing.T) {
	t.Parallel()
	const name = "node7.prod"
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("system-%d", os.Getpid()), Count: 1})
	h := pool.Hosts[0]
	b := plan.New("Hostname", "test")
	b.Host(h.Name, plan.Module{Name: "os", Tasks: []plan.Task{{Name: "system", Steps: []step.Step{
		system.EtcHosts([]spec.HostEntry{{Address: h.Address, Hostnames: []string{name}}}),
		system.Hostname(name),
	}}}})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(engine.Options{Holder: "test", Dial: func(ctx context.Context, _ string) (host.Host, error) {
		return ssh.Dial(ctx, lab.SSH(h))
	}})
	before, err := h.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}

	for _, changed := range []int{2, 0} {
		report, err := e.Run(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		if got := report.Total().Changed; got != changed {
			t.Errorf("%d steps were changed, want %d", got, changed)
		}
	}
	for _, argv := range [][]string{{"hostname"}, {"hostnamectl", "--static"}, {"hostnamectl", "--transient"}, {"cat", "/etc/hostname"}} {
		if out, err := h.Exec(ctx, argv...); err != nil || strings.TrimSpace(out) != name {
			t.Errorf("%s says %q (%v), want %s", argv, out, err, name)
		}
	}
	// sudo complains where it does not find the host's own name.
	if out, err := h.Command(ctx, "runuser", "-u", hosts.Ops, "--", "sudo", "-n", "true").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("sudo says %q (%v)", out, err)
	}

	if _, err := e.Undo(ctx, engine.Undo{Hosts: []string{h.Name}}); err != nil {
		t.Fatal(err)
	}
	after, err := h.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := hosts.Diff(before, after); len(diff) > 0 {
		t.Errorf("after the reset the host differs:\n%s", strings.Join(diff, "\n"))
	}
}
