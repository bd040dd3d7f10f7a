// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package system_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/haproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/keepalived"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/nginx"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/debian"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/family"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/system"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestPackagesOffline installs a load balancer's packages and a node's, on hosts that reach no mirror, from a bundle.
func TestPackagesOffline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	dir := cmp.Or(os.Getenv("KUBEXM_BUNDLE_OFFLINE"), filepath.Join("..", "..", "..", "build", "bundle-offline"))
	bundle, err := artifact.Open(ctx, dir, nil)
	if err != nil {
		t.Fatalf("%v (make artifacts-offline builds it)", err)
	}
	files, err := step.PackageFilesOf(bundle, "debian/12", bundle.Manifest().Architectures[0])
	if err != nil || len(files) == 0 {
		t.Fatalf("the bundle has %d packages of Debian 12 (%v)", len(files), err)
	}
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("packages-%d", os.Getpid()), Count: 2, Offline: true})
	on := func(t *testing.T, h *hosts.Host) offline { return offline{t, ctx, h, step.FromBundle(bundle)} }
	for _, h := range pool.Hosts {
		if out, err := h.Exec(ctx, "curl", "--silent", "--show-error", "--max-time", "3", "http://1.1.1.1/"); err == nil {
			t.Fatalf("%s reaches what is outside:\n%s", h.Name, out)
		}
	}

	t.Run("a load balancer", func(t *testing.T) {
		o := on(t, pool.Hosts[0])
		before := o.snapshot()
		proxies := []interface {
			PackageNames(family.Family) []string
			Packages(family.Family, step.PackageFiles) step.Step
		}{haproxy.Proxy, nginx.Proxy}
		names := keepalived.PackageNames(debian.Family{})
		steps := []step.Step{keepalived.Packages(debian.Family{}, files.For(names...))}
		for _, p := range proxies {
			names, steps = append(names, p.PackageNames(debian.Family{})...),
				append(steps, p.Packages(debian.Family{}, files.For(p.PackageNames(debian.Family{})...)))
		}
		o.installs(names, steps...)
		for _, program := range []string{"haproxy -v", "nginx -v", "keepalived --version"} {
			o.sh(program)
		}
		o.resets()
		if diff := hosts.Diff(before, o.snapshot()); len(diff) > 0 {
			t.Errorf("after the reset the host differs:\n%s", strings.Join(diff, "\n"))
		}
	})
	t.Run("a node", func(t *testing.T) {
		o := on(t, pool.Hosts[1])
		// These, and libraries of theirs, are in the image of test hosts.
		o.sh("apt-get -q -y purge iptables ipset nftables && apt-get -q -y autoremove --purge")
		before, names := o.list(packages), []string{"iptables", "ipset", "nftables"}
		o.installs(names, system.Packages(names, files.For(names...)))
		for _, program := range []string{"iptables --version", "nft --version", "ipset --version"} {
			o.sh(program)
		}
		o.resets()
		if after := o.list(packages); !slices.Equal(after, before) {
			t.Errorf("packages were %q and are %q", before, after)
		}
	})
	t.Run("neither in the bundle nor on a mirror", func(t *testing.T) {
		o := on(t, pool.Hosts[1])
		// The host's own mirrors refuse at once.
		o.sh(`cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | sed -n 's,.*//\([^/ ]*\)/.*,127.0.0.1 \1,p' | sort -u >>/etc/hosts`)
		_, err := o.engine().Run(ctx, o.plan(system.Packages([]string{"ipset", "jq"}, files.For("ipset", "jq"))))
		var e *host.Error
		if !errors.As(err, &e) {
			t.Fatalf("got %v", err)
		}
		for _, word := range []string{o.host.Name, "jq", "kubexm bundle create --os"} {
			if !strings.Contains(e.Error()+"\n"+e.Remedy, word) {
				t.Errorf("%q is not in: %v\n%s\n%s", word, e, e.Remedy, e.Output)
			}
		}
		o.resets()
	})
}

// installs wants steps, which are to install packages of these names, to do so once.
func (o offline) installs(names []string, steps ...step.Step) {
	o.Helper()
	apt, manual := o.sh(aptsOwn), o.list("apt-mark showmanual")
	for _, changed := range []int{len(steps), 0} {
		report, err := o.engine().Run(o.ctx, o.plan(steps...))
		if err != nil {
			o.Fatal(err)
		}
		if got := report.Total().Changed; got != changed {
			o.Errorf("%d steps were changed, want %d", got, changed)
		}
	}
	if out := o.sh("dpkg --audit; apt-get -q -q check 2>&1"); out != "" {
		o.Errorf("packages are in disorder:\n%s", out)
	}
	// What came along is not what somebody wanted.
	want := slices.Compact(slices.Sorted(slices.Values(slices.Concat(manual, names))))
	if got := o.list("apt-mark showmanual"); !slices.Equal(got, want) {
		o.Errorf("asked for are now %q, want %q", got, want)
	}
	if now := o.sh(aptsOwn); now != apt {
		o.Errorf("apt's sources, lists or caches were\n%s\nand are\n%s", apt, now)
	}
	if left := o.sh("ls -A /var/lib/kubexm/staging"); left != "" {
		o.Errorf("what was sent is still there:\n%s", left)
	}
}

// resets undoes everything on the host.
func (o offline) resets() {
	o.Helper()
	if _, err := o.engine().Undo(o.ctx, engine.Undo{Hosts: []string{o.host.Name}}); err != nil {
		o.Fatal(err)
	}
}

const packages = `dpkg-query -W -f '${Package}=${Version}=${db:Status-Status}\n'`

// aptsOwn are the host's sources, lists and downloads. (apt renews its memory of them, pkgcache.bin, whenever it is asked.)
const aptsOwn = `find /etc/apt /var/lib/apt/lists /var/cache/apt -type f ! -name '*pkgcache.bin' -exec sha256sum {} + | sort`

type offline struct {
	*testing.T
	ctx       context.Context
	host      *hosts.Host
	artifacts step.Artifacts
}

func (o offline) sh(line string) string {
	o.Helper()
	out, err := o.host.Exec(o.ctx, "sh", "-c", line)
	if err != nil {
		o.Fatalf("%s: %v", line, err)
	}
	return strings.TrimSpace(out)
}

func (o offline) list(line string) []string {
	return slices.Sorted(slices.Values(strings.Fields(o.sh(line))))
}

func (o offline) snapshot() hosts.Snapshot {
	o.Helper()
	s, err := o.host.Snapshot(o.ctx)
	if err != nil {
		o.Fatal(err)
	}
	return s
}

func (o offline) plan(steps ...step.Step) *plan.Plan {
	o.Helper()
	b := plan.New("Packages", "test")
	b.Host(o.host.Name, plan.Module{Name: "os", Tasks: []plan.Task{{Name: "packages", Steps: steps}}})
	p, err := b.Plan()
	if err != nil {
		o.Fatal(err)
	}
	return p
}

func (o offline) engine() *engine.Engine {
	return engine.New(engine.Options{
		Holder: "test", Artifacts: o.artifacts, Dial: func(ctx context.Context, _ string) (host.Host, error) { return o.dial(ctx) },
	})
}

func (o offline) dial(ctx context.Context) (host.Host, error) {
	return ssh.Dial(ctx, lab.SSH(o.host))
}
