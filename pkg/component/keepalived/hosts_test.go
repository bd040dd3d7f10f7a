// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package keepalived_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/haproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/internal/proxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/keepalived"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/nginx"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/os/debian"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

const (
	backendPort = 7443
	haproxyPort = 6443
	nginxPort   = 6444

	// backendEnv makes this test's program a server on a host, in the place of an API server.
	backendEnv = "KUBEXM_TEST_BACKEND"
	backend    = "/usr/local/bin/backend"
)

func TestMain(m *testing.M) {
	if os.Getenv(backendEnv) != "" {
		fmt.Fprintln(os.Stderr, serveBackend())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serveBackend answers as an API server that is ready, and otherwise with the host's name.
func serveBackend() error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", backendPort))
	if err != nil {
		return err
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, name)
	}))
	s.Listener = l
	s.StartTLS()
	select {}
}

// accounts are files that Debian's tools leave when packages add and remove accounts: the lists as they were one change ago.
var accounts = regexp.MustCompile(`^file (/etc/(group|gshadow|passwd|shadow)-|/run/adduser): `)

// balancers are two load balancer hosts, on which API servers run too.
type balancers struct {
	*testing.T
	pool *hosts.Pool
	vip  string
}

// TestBalancers runs haproxy, nginx and keepalived on real hosts: what passes through them must survive what happens there.
func TestBalancers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("balancers-%d", os.Getpid()), Count: 2})
	b := &balancers{T: t, pool: pool, vip: virtual(pool.Subnet)}
	for _, h := range pool.Hosts {
		b.startBackend(h)
	}
	before := b.snapshots()
	servers := pool.Hosts

	b.run(servers, len(servers)*6)
	b.run(servers, 0)
	b.testPorts()
	holder := b.holder(nil)

	// A backend goes: what is connected to the other, through whichever proxy, stays connected.
	left := []*hosts.Host{b.beside(holder)}
	held := []*connection{b.connect(haproxyPort, left[0].Name), b.connect(nginxPort, left[0].Name)}
	b.run(left, 4)
	b.run(left, 0)
	for _, c := range held {
		c.demand()
		for range 3 {
			if got := b.connect(c.port, "").name; got != left[0].Name {
				t.Errorf("port %d: %s is no backend any more, and gets connections", c.port, got)
			}
		}
	}
	if now := b.holder(nil); now != holder {
		t.Errorf("the reload has moved the address from %s to %s", holder.Name, now.Name)
	}

	// The holder falls silent.
	b.must(holder.Pause(ctx))
	began := time.Now()
	other := b.holder(holder)
	t.Logf("paused: the address moved after %s", time.Since(began).Round(100*time.Millisecond))
	b.must(holder.Unpause(ctx))
	b.run(servers, 4)

	// The holder's proxy dies, and comes back: the address moves once.
	holder = b.holder(nil)
	b.exec(holder, "systemctl", "stop", "haproxy.service")
	began = time.Now()
	other = b.holder(holder)
	t.Logf("without a proxy: the address moved after %s", time.Since(began).Round(100*time.Millisecond))
	b.run(servers, 1)
	b.waitFor("a working proxy", func() error {
		_, err := holder.Exec(ctx, strings.Fields(haproxy.Proxy.Check())...)
		return err
	})
	if now := b.holder(nil); now != other {
		t.Errorf("the address went back to %s with its proxy", now.Name)
	}

	// An API server dies: who was connected to it is told at once, and new ones do not notice.
	c := b.connect(haproxyPort, servers[0].Name)
	b.exec(servers[0], "systemctl", "stop", "backend.service")
	b.waitFor("the end of a connection to a server that is gone", func() error {
		if c.get() == nil {
			return fmt.Errorf("it is open")
		}
		return nil
	})
	for _, port := range []int{haproxyPort, nginxPort} {
		if got := b.connect(port, "").name; got != servers[1].Name {
			t.Errorf("port %d: %s answers, which is gone", port, got)
		}
	}
	b.startBackend(servers[0])

	b.must(onlyError(b.engine().Undo(ctx, engine.Undo{Hosts: b.names()})))
	for i, after := range b.snapshots() {
		for _, d := range hosts.Diff(before[i], after) {
			if accounts.MatchString(d) {
				continue
			}
			t.Errorf("%s is not as before: %s", pool.Hosts[i].Name, d)
		}
	}
	if _, err := b.dial(haproxyPort); err == nil {
		t.Error("the virtual address answers after the reset")
	}
}

// beside is the other host.
func (b *balancers) beside(h *hosts.Host) *hosts.Host {
	if h == b.pool.Hosts[0] {
		return b.pool.Hosts[1]
	}
	return b.pool.Hosts[0]
}

// virtual is an address of the subnet that no host has.
func virtual(subnet netip.Prefix) string {
	a := subnet.Masked().Addr()
	for range 5 {
		a = a.Next()
	}
	return a.String()
}

// plan makes all hosts load balancers for servers.
func (b *balancers) plan(servers []*hosts.Host) *plan.Plan {
	b.Helper()
	var members []spec.Member
	for _, s := range servers {
		members = append(members, spec.Member{Name: s.Name, Role: spec.RoleControlPlane, Address: s.Address})
	}
	p := plan.New("Balancers", "test")
	for _, h := range b.pool.Hosts {
		peers := []string{b.beside(h).Address}
		p.Host(h.Name, plan.Module{Name: "m", Tasks: []plan.Task{{Name: "t", Steps: []step.Step{
			haproxy.Proxy.Packages(debian.Family{}, nil), nginx.Proxy.Packages(debian.Family{}, nil),
			keepalived.Packages(debian.Family{}, nil),
			haproxy.Proxy.Config(debian.Family{}, proxy.Settings{Port: haproxyPort, Backends: members, BackendPort: backendPort}),
			nginx.Proxy.Config(debian.Family{}, proxy.Settings{Port: nginxPort, Backends: members, BackendPort: backendPort}),
			keepalived.Config(keepalived.Settings{
				Name: h.Name, Interface: "eth0", Address: h.Address, VIP: b.vip, RouterID: 5, Peers: peers,
				Priority: keepalived.Priority(h.Address, peers), Check: haproxy.Proxy.Check(),
			}),
		}}}})
	}
	made, err := p.Plan()
	b.must(err)
	return made
}

// run converges, and wants so many steps changed.
func (b *balancers) run(servers []*hosts.Host, changed int) {
	b.Helper()
	began := time.Now()
	report, err := b.engine().Run(b.Context(), b.plan(servers))
	b.must(err)
	b.Logf("%d steps changed in %s", report.Total().Changed, time.Since(began).Round(100*time.Millisecond))
	if got := report.Total().Changed; got != changed {
		b.Errorf("%d steps were changed, want %d", got, changed)
	}
}

func (b *balancers) engine() *engine.Engine {
	return engine.New(engine.Options{
		Dial: func(ctx context.Context, name string) (host.Host, error) {
			for _, h := range b.pool.Hosts {
				if h.Name == name {
					return ssh.Dial(ctx, ssh.Config{
						Name: h.Name, Address: h.Address, Port: int32(h.Port), User: hosts.Ops,
						Auth:    ssh.Auth{Signers: []gossh.Signer{h.Signer}},
						HostKey: ssh.HostKey{Pinned: []string{gossh.FingerprintSHA256(h.HostKey)}},
					})
				}
			}
			return nil, fmt.Errorf("there is no host %s", name)
		},
		Secrets: func(ref step.SecretRef) ([]byte, error) { return nil, fmt.Errorf("there is no secret %s", ref) },
		Holder:  "balancers",
	})
}

func (b *balancers) names() []string {
	var names []string
	for _, h := range b.pool.Hosts {
		names = append(names, h.Name)
	}
	return names
}

// startBackend runs this program on a host as an API server.
func (b *balancers) startBackend(h *hosts.Host) {
	b.Helper()
	program, err := os.Open("/proc/self/exe")
	b.must(err)
	defer program.Close()
	cmd := h.Command(b.Context(), "sh", "-ec", `[ -e "$0" ] || { cat >"$0.new"; chmod 755 "$0.new"; mv "$0.new" "$0"; }
systemd-run --quiet --unit=backend --setenv="$1=yes" "$0"`, backend, backendEnv)
	cmd.Stdin = program
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("start a backend on %s: %v: %s", h.Name, err, out)
	}
	b.waitFor("a backend on "+h.Name, func() error {
		c, err := net.Dial("tcp", at(h.Address, backendPort))
		if err != nil {
			return err
		}
		return c.Close()
	})
}

// testPorts wants no port open beside those that are asked for, to the outside.
func (b *balancers) testPorts() {
	b.Helper()
	for _, h := range b.pool.Hosts {
		for _, port := range []int{80, haproxy.Proxy.HealthPort, nginx.Proxy.HealthPort} {
			if c, err := net.DialTimeout("tcp", at(h.Address, port), time.Second); err == nil {
				c.Close()
				b.Errorf("%s listens on port %d", h.Name, port)
			}
		}
	}
}

// holder waits until a host other than not has the virtual address, alone, and answers there.
func (b *balancers) holder(not *hosts.Host) *hosts.Host {
	b.Helper()
	var holder *hosts.Host
	b.waitFor("a holder of "+b.vip, func() error {
		holder = nil
		for _, h := range b.pool.Hosts {
			if h == not {
				continue
			}
			out, err := h.Exec(b.Context(), "ip", "-o", "address", "show", "dev", "eth0")
			if err != nil {
				return err
			}
			if !strings.Contains(out, " "+b.vip+"/") {
				continue
			}
			if holder != nil {
				return fmt.Errorf("%s and %s both have it", holder.Name, h.Name)
			}
			holder = h
		}
		if holder == nil {
			return fmt.Errorf("no host has it")
		}
		_, err := b.dial(haproxyPort)
		return err
	})
	return holder
}

// connection is one connection to a backend, through a proxy.
type connection struct {
	b      *balancers
	port   int
	client *http.Client
	name   string // of who answers
	local  string // its own end
}

// dial connects through the virtual address.
func (b *balancers) dial(port int) (*connection, error) {
	c := &connection{b: b, port: port, client: &http.Client{
		Timeout:   2 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}}
	return c, c.get()
}

// connect connects to the backend of that name, or to any for "".
func (b *balancers) connect(port int, name string) *connection {
	b.Helper()
	var c *connection
	b.waitFor(fmt.Sprintf("a connection to %q on port %d", name, port), func() (err error) {
		if c, err = b.dial(port); err == nil && name != "" && c.name != name {
			err = fmt.Errorf("%s answers", c.name)
		}
		return err
	})
	return c
}

// get asks who is there over the connection; a new one is an error.
func (c *connection) get() error {
	var local string
	ctx := httptrace.WithClientTrace(c.b.Context(), &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { local = i.Conn.LocalAddr().String() },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+at(c.b.vip, c.port), nil)
	if err != nil {
		return err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	name, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if c.local != "" && c.local != local {
		return fmt.Errorf("the connection to %s was cut", c.name)
	}
	c.name, c.local = string(name), local
	return nil
}

// demand wants the connection to be the one that it was.
func (c *connection) demand() {
	c.b.Helper()
	if err := c.get(); err != nil {
		c.b.Errorf("port %d: %v", c.port, err)
	}
}

// waitFor tries until it succeeds.
func (b *balancers) waitFor(what string, try func() error) {
	b.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("no %s: %v", strings.TrimPrefix(what, "a "), err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (b *balancers) exec(h *hosts.Host, argv ...string) {
	b.Helper()
	_, err := h.Exec(b.Context(), argv...)
	b.must(err)
}

func (b *balancers) snapshots() []hosts.Snapshot {
	b.Helper()
	var all []hosts.Snapshot
	for _, h := range b.pool.Hosts {
		s, err := h.Snapshot(b.Context())
		b.must(err)
		all = append(all, s)
	}
	return all
}

func (b *balancers) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func at(address string, port int) string { return net.JoinHostPort(address, strconv.Itoa(port)) }

func onlyError[T any](_ T, err error) error { return err }
