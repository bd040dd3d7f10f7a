// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package system_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/haproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/keepalived"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/nginx"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
	systems "github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/tables"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/system"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestSimulatedRPM takes what differs between families through a life on a host of the Red Hat family that programs of Debian simulate:
// packages by dnf, one of them brought to another release, NetworkManager, what brings swap, and load balancers that run.
func TestSimulatedRPM(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("rpm-%d", os.Getpid()), Count: 1, System: hosts.SimulatedRPM})
	o := offline{t, ctx, pool.Hosts[0], nil}
	h, err := o.dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	facts, err := h.Observe(ctx, system.Packages([]string{"jq"}, nil).Observe())
	if err != nil {
		t.Fatal(err)
	}
	seen := facts.System
	if seen.OSID != "rocky" || !seen.NetworkManager || seen.Firewall != spec.Firewalld || facts.Packages["jq"] != "" {
		t.Fatalf("the host is %s %s, NetworkManager %t, firewall %q, packages %v", seen.OSID, seen.OSVersion, seen.NetworkManager, seen.Firewall, facts.Packages)
	}
	rocky, err := systems.Of(seen.OSID, seen.OSVersion)
	if err != nil {
		t.Fatal(err)
	}
	const all = "rpm -qa"
	before, installed := o.snapshot(), o.list(all)
	releases := strings.Fields(o.sh("dnf -q repoquery --qf '%{version}-%{release}' jq | sort"))
	if len(releases) != 2 {
		t.Fatalf("the repository has the releases %q of jq, want two", releases)
	}

	balanced := component.Inputs{OS: rocky, System: seen, Target: spec.Target{
		Members: []spec.Member{{Name: "cp1", Role: spec.RoleControlPlane, Address: "192.0.2.1"}},
	}}
	balanced.Target.Cluster.ControlPlaneEndpoint.Port = 6443
	second := balanced
	second.Target.Cluster.ControlPlaneEndpoint.Port = 7443
	steps := func(release string) []step.Step {
		return slices.Concat([]step.Step{
			system.Swap(rocky.Swap()),
			system.Unmanaged([]string{"flannel.1"}),
			system.Packages(append(family.Names(rocky, family.IPTables), "jq="+release), nil),
		}, haproxy.Proxy.Serve(balanced).Steps, nginx.Proxy.Serve(second).Steps, []step.Step{keepalived.Packages(rocky, nil)})
	}
	o.changes(len(steps("")), steps(releases[0])...)
	o.changes(0, steps(releases[0])...)
	o.changes(1, steps(releases[1])...)
	o.changes(0, steps(releases[1])...)
	if got := o.sh("rpm -q --qf '%{VERSION}-%{RELEASE}' jq && jq --version"); !strings.HasPrefix(got, releases[1]) {
		t.Errorf("jq is %s, want %s", got, releases[1])
	}
	for _, p := range []component.Proxy{haproxy.Proxy, nginx.Proxy} {
		o.sh(p.Check())
	}
	if devices := o.sh("NetworkManager --print-config | grep ^unmanaged-devices"); !strings.Contains(devices, "interface-name:flannel.1") ||
		!strings.Contains(devices, "interface-name:eth0") {
		t.Errorf("NetworkManager leaves alone: %s", devices)
	}

	o.resets()
	if after := o.list(all); !slices.Equal(after, installed) {
		t.Errorf("packages were %q and are %q", installed, after)
	}
	if diff := hosts.Diff(before, o.snapshot()); len(diff) > 0 {
		t.Errorf("after the reset the host differs:\n%s", strings.Join(diff, "\n"))
	}
	if devices := o.sh("NetworkManager --print-config | grep ^unmanaged-devices"); strings.Contains(devices, "flannel") {
		t.Errorf("after the reset NetworkManager leaves alone: %s", devices)
	}
}

// changes wants so many of the steps to change something.
func (o offline) changes(want int, steps ...step.Step) {
	o.Helper()
	report, err := o.engine().Run(o.ctx, o.plan(steps...))
	if err != nil {
		o.Fatal(err)
	}
	if got := report.Total().Changed; got != want {
		o.Errorf("%d steps were changed, want %d", got, want)
	}
}
