// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package system_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/system"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// firewalled is a host with a firewall, and another that tries what gets past it.
type firewalled struct {
	offline
	other *hosts.Host
	open  func(system.Openings) step.Step
}

// openings are those of a host with an API server at that port, whose peer is the other host.
func (f firewalled) openings(port int32) system.Openings {
	return system.Openings{
		Ports: []spec.Port{
			{Number: port, Protocol: spec.TCP}, {Number: 8472, Protocol: spec.UDP}, {Number: 30000, Last: 32767, Protocol: spec.TCP},
		},
		Peers: []system.Peer{{Address: f.other.Address, Port: spec.Port{Protocol: spec.VRRP}}},
		Pods:  []string{"10.244.0.0/16", "fd85:ee78:d8a6:8607::1:0/112"},
	}
}

// A port that is served behind a firewall is closed before the step, open after it, and closed when it is undone; so is the way to a
// pod. Nothing else changes, and the host is as it was in the end.
func TestFirewalls(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("firewalls-%d", os.Getpid()), Count: 2})
	for i, name := range []string{spec.Firewalld, spec.UFW} {
		t.Run(name, func(t *testing.T) {
			f := firewalled{offline{t, ctx, pool.Hosts[i], nil}, pool.Hosts[1-i], system.Firewalld}
			if name == spec.UFW {
				f.open = system.UFW
			}
			f.serve()
			f.sh("apt-get -q -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -q -y install --no-install-recommends " + name)
			if name == spec.UFW {
				f.sh("ufw allow 22/tcp && ufw --force enable")
			}
			if got := f.seen().System.Firewall; got != name {
				t.Fatalf("the host's firewall is seen as %q", got)
			}
			before := f.snapshot()
			f.reaches("before", "")

			f.run(1, 6443)
			f.reaches("opened", "6443 30001 pod")
			f.run(0, 6443)
			f.run(1, 7443)
			f.reaches("with another port", "7443 30001 pod")
			f.drifts()
			if name == spec.Firewalld {
				f.runtimeOnly()
			}

			f.resets()
			f.reaches("after the reset", "")
			if diff := hosts.Diff(before, f.snapshot()); len(diff) > 0 {
				t.Errorf("after the reset the host differs:\n%s", strings.Join(diff, "\n"))
			}
			f.sh("systemctl stop 'serve-*' && ip netns del pod")
			// It would come before the link to the pod, which is the other host's next.
			if out, err := f.other.Exec(f.ctx, "ip", "route", "del", "10.244.0.0/24"); err != nil {
				f.Errorf("%v: %s", err, out)
			}
			f.sh(map[string]string{spec.Firewalld: "systemctl stop firewalld", spec.UFW: "ufw disable"}[name])
		})
	}
}

// serve has the host answer at some ports, and a pod, to which the other host has a route.
func (f firewalled) serve() {
	for _, port := range []string{"6443", "7443", "30001", "9999"} {
		f.sh("systemd-run --quiet --collect --unit serve-" + port + " socat TCP-LISTEN:" + port + ",fork,reuseaddr EXEC:/bin/true")
	}
	f.sh(`sysctl -q -w net.ipv4.ip_forward=1
		ip netns add pod
		ip link add to-pod type veth peer name eth0 netns pod
		ip link set to-pod up && ip addr add 10.244.0.1/24 dev to-pod
		ip -n pod link set eth0 up && ip -n pod addr add 10.244.0.2/24 dev eth0 && ip -n pod route add default via 10.244.0.1
		systemd-run --quiet --collect --unit serve-pod ip netns exec pod socat TCP-LISTEN:80,fork,reuseaddr EXEC:/bin/true`)
	if out, err := f.other.Exec(f.ctx, "ip", "route", "replace", "10.244.0.0/24", "via", f.host.Address); err != nil {
		f.Fatalf("%v: %s", err, out)
	}
}

// reaches asserts what the other host can connect to.
func (f firewalled) reaches(when, want string) {
	f.Helper()
	const try = `for to in "$0:6443" "$0:7443" "$0:30001" "$0:9999" 10.244.0.2:80; do
		timeout 1 bash -c "</dev/tcp/${to%:*}/${to#*:}" 2>/dev/null || continue
		case $to in *:80) echo pod ;; *) echo "${to#*:}" ;; esac
	done`
	out, err := f.other.Exec(f.ctx, "bash", "-c", try, f.host.Address)
	if err != nil {
		f.Fatalf("%v: %s", err, out)
	}
	if got := strings.Join(strings.Fields(out), " "); got != want {
		f.Errorf("%s the other host reaches %q, want %q", when, got, want)
	}
}

func (f firewalled) run(changed int, port int32) {
	f.Helper()
	report, err := f.engine().Run(f.ctx, f.plan(f.open(f.openings(port))))
	if err != nil {
		f.Fatal(err)
	}
	if got := report.Total().Changed; got != changed {
		f.Errorf("with port %d %d steps were changed, want %d", port, got, changed)
	}
}

// drifts: what is taken away is repaired, and what stands beside it stays.
func (f firewalled) drifts() {
	f.Helper()
	for _, line := range map[string][]string{
		spec.Firewalld: {"rm /etc/firewalld/services/kubexm.xml", "rm /etc/firewalld/policies/kubexm.xml && firewall-cmd --reload"},
		spec.UFW:       {"ufw delete allow kubexm", "ufw route delete allow to 10.244.0.0/16", "rm /etc/ufw/applications.d/kubexm"},
	}[f.seen().System.Firewall] {
		f.sh(line)
		f.run(1, 7443)
		f.reaches("after "+line+" and a repair", "7443 30001 pod")
		f.run(0, 7443)
	}
}

// runtimeOnly: firewalld is not reloaded where that would drop what somebody has set at runtime; a reset does without.
func (f firewalled) runtimeOnly() {
	f.Helper()
	f.sh("firewall-cmd --add-port=9999/tcp")
	_, err := f.engine().Run(f.ctx, f.plan(f.open(f.openings(6443))))
	var e *host.Error
	if !errors.As(err, &e) {
		f.Fatalf("got %v", err)
	}
	for _, word := range []string{f.host.Name, "9999/tcp", "firewall-cmd --runtime-to-permanent", "system.firewall: Keep"} {
		if !strings.Contains(e.Error()+e.Remedy+e.Output, word) {
			f.Errorf("%q is not in: %v\n%s\n%s", word, e, e.Remedy, e.Output)
		}
	}
	f.reaches("after a refusal", "7443 30001 9999 pod")
	f.resets()
	f.reaches("after a reset that does not reload", "9999")
	f.sh("firewall-cmd --reload")
	f.run(1, 6443)
	f.reaches("opened anew", "6443 30001 pod")
}

func (f firewalled) seen() *host.Facts {
	f.Helper()
	h, err := f.dial(f.ctx)
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	facts, err := h.Observe(f.ctx, host.Query{})
	if err != nil {
		f.Fatal(err)
	}
	return facts
}
