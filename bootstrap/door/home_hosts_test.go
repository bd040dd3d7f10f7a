// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package door_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/callhome"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/door"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestCallHome is a host whose own sshd is masked, and that connects to us from its bootstrap data on: it is known by its key, gets
// another, is the same after a boot, and is as it was when its door is closed.
func TestCallHome(t *testing.T) {
	t.Parallel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("home-%d", os.Getpid()), Count: 1})
	h := pool.Hosts[0]
	listener, err := net.Listen("tcp", net.JoinHostPort(pool.Subnet.Masked().Addr().Next().String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	manager := callhome.NewServer("", listener.Addr().String())
	ctx, stop := context.WithCancel(ctrl.LoggerInto(t.Context(), logr.Discard()))
	ended := make(chan error, 1)
	go func() { ended <- manager.Serve(ctx, listener) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	v := visit(t, h, "sha256:0c")
	v.options.Manager = manager.Address()
	v.sh("systemctl -q mask --now ssh.socket ssh.service 2>/dev/null; ! systemctl -q is-active ssh")
	before, err := h.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	meet := func(key string, within time.Duration) (host.Host, error) {
		return ssh.Dial(t.Context(), ssh.Config{
			Name: h.Name, Address: h.Address, User: v.options.User, Auth: v.login, HostKey: ssh.HostKey{Pinned: []string{key}},
			DialTimeout: within,
			Accept:      func(ctx context.Context) (net.Conn, error) { return manager.Accept(ctx, v.options.Nonce) },
		})
	}
	as := func(key string, do func(context.Context, host.Host) error) {
		t.Helper()
		c, err := meet(key, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := do(t.Context(), c); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}

	v.open("bash")
	unit := v.sh("cat /etc/systemd/system/kubexm-call-home.service; systemctl show -P NRestarts kubexm-call-home")
	v.open("sh") // again: the connection that there is stays
	if again := v.sh("cat /etc/systemd/system/kubexm-call-home.service; systemctl show -P NRestarts kubexm-call-home"); again != unit {
		t.Errorf("run twice, the unit is\n%s\nwant\n%s", again, unit)
	}
	public := ""
	as(v.birth, func(ctx context.Context, c host.Host) error {
		if nonce, err := door.Nonce(ctx, c); err != nil || nonce != v.options.Nonce {
			t.Errorf("it is the door of %q (%v)", nonce, err)
		}
		var err error
		public, err = door.Rekey(ctx, c)
		return err
	})
	as(public, door.Retire)
	if c, err := meet(v.birth, 5*time.Second); host.KindOf(err) != host.KindHostKey {
		t.Errorf("known by the key that was retired: %v, %v", c, err)
	}

	c, err := meet(public, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := h.WaitReady(t.Context()); err == nil {
		t.Error("its sshd answers, which is masked")
	}
	as(public, func(ctx context.Context, c host.Host) error {
		r, err := c.Exec(ctx, host.Command{Title: "greet", Argv: []string{"id", "-un"}})
		if err == nil && strings.TrimSpace(string(r.Stdout)) != "root" {
			t.Errorf("it is %s after a boot", r.Stdout)
		}
		return err
	})

	as(public, door.Close)
	if c, err := meet(public, 10*time.Second); host.KindOf(err) != host.KindUnreachable {
		t.Errorf("it connects with its door closed: %v, %v", c, err)
	}
	v.clean(before)
	if out := v.sh("systemctl --failed --no-legend; systemctl is-active kubexm-call-home || :"); out != "inactive" {
		t.Errorf("the unit is %s", out)
	}
}
