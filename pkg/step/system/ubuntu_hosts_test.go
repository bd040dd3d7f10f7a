// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package system_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/haproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
	systems "github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/tables"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/preflight"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/system"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestSimulatedUbuntu has a host of Debian say that it is Ubuntu: preflight lets both of its releases through and no other, and packages
// are apt's, by Debian's names.
func TestSimulatedUbuntu(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("ubuntu-%d", os.Getpid()), Count: 1})
	o := offline{t, ctx, pool.Hosts[0], nil}
	h, err := o.dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	target := spec.Target{Host: spec.Host{Name: o.host.Name, Address: o.host.Address, Role: spec.RoleLoadBalancer}}
	target.Default()
	var seen *host.Facts
	for _, release := range []string{"23.10", "22.04", "24.04"} {
		o.sh(fmt.Sprintf(`printf 'NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID="%s"\n' >/usr/lib/os-release`, release))
		if seen, err = h.Observe(ctx, preflight.Query(target)); err != nil {
			t.Fatal(err)
		}
		refused := ""
		for _, p := range preflight.Check(target, seen, host.Ownership{}) {
			if p.Check == "os" && p.Severity == preflight.Error {
				refused = p.String()
			}
		}
		if (refused != "") != (release == "23.10") {
			t.Errorf("Ubuntu %s: %q", release, refused)
		}
	}
	ubuntu, err := systems.Of(seen.System.OSID, seen.System.OSVersion)
	if err != nil {
		t.Fatal(err)
	}
	o.sh("apt-get -q -y update >/dev/null")
	before := o.list(packages)
	steps := haproxy.Proxy.Packages(ubuntu, nil)
	ipsets := system.Packages(append(family.Names(ubuntu, family.IPTables, family.IPSet), "jq"), nil)
	o.changes(2, steps, ipsets)
	o.changes(0, steps, ipsets)
	o.sh("haproxy -v && jq --version")
	o.resets()
	if after := o.list(packages); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("packages were %q and are %q", before, after)
	}
}
