// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package hosts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

const password = "correct horse: battery"

func TestHosts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	name := fmt.Sprintf("hoststest-%d", os.Getpid())
	dir := t.TempDir()
	pool, err := hosts.Start(ctx, hosts.Options{Name: name, Count: 2, Dir: dir, SudoPassword: password, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := pool.Stop(ctx); err != nil {
			t.Error(err)
		}
		if _, err := hosts.Open(ctx, name, ""); !errors.Is(err, hosts.ErrNotFound) {
			t.Errorf("after Stop, Open gives %v", err)
		}
	})
	first, second := pool.Hosts[0], pool.Hosts[1]

	t.Run("starts once", func(t *testing.T) {
		if _, err := hosts.Start(ctx, hosts.Options{Name: name, Count: 2}); !errors.Is(err, hosts.ErrExists) {
			t.Errorf("a second Start gives %v", err)
		}
	})
	t.Run("idle snapshots are equal", func(t *testing.T) {
		before := snapshot(t, ctx, first)
		began := time.Now()
		after := snapshot(t, ctx, first)
		t.Logf("snapshot of %d files in %s", len(after["file"]), time.Since(began).Round(time.Millisecond))
		if differences := hosts.Diff(before, after); len(differences) != 0 {
			t.Errorf("an idle host differs:\n%s", strings.Join(differences, "\n"))
		}
	})
	t.Run("snapshots see what changes", func(t *testing.T) { testSnapshotSees(t, ctx, second) })
	t.Run("hosts are not alike", func(t *testing.T) {
		for _, file := range []string{"/etc/machine-id", "/etc/hostname", "/etc/ssh/ssh_host_ed25519_key.pub"} {
			if a, b := run(t, ctx, first, "cat", file), run(t, ctx, second, "cat", file); a == b || a == "" {
				t.Errorf("%s is %q on one and %q on the other", file, a, b)
			}
		}
	})
	t.Run("Docker's files are ordinary", func(t *testing.T) {
		for _, file := range []string{"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"} {
			run(t, ctx, second, "sh", "-c", `cp -p "$0" "$0.new" && mv "$0.new" "$0"`, file)
		}
	})
	t.Run("overlayfs works in var", func(t *testing.T) {
		run(t, ctx, second, "sh", "-euc", `cd $(mktemp -d -p /var/tmp)
			mkdir lower upper work merged
			mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged
			umount merged && rm -r "$PWD"`)
	})
	t.Run("accounts", func(t *testing.T) { testAccounts(t, ctx, dir, first) })
	t.Run("host key is the pinned one", func(t *testing.T) {
		for _, host := range pool.Hosts {
			client := dial(t, ctx, host, host.HostKey)
			defer client.Close()
		}
		if _, err := tryDial(ctx, first, second.HostKey); err == nil {
			t.Error("another host's key is accepted")
		}
	})
	t.Run("pause", func(t *testing.T) {
		must(t, first.Pause(ctx))
		if err := greeting(ctx, first, 500*time.Millisecond); err == nil {
			t.Error("a paused host answers")
		}
		must(t, first.Unpause(ctx))
		must(t, first.WaitReady(ctx))
	})
	t.Run("disconnect", func(t *testing.T) {
		run(t, ctx, second, "bash", "-c", "</dev/tcp/"+first.Address+"/22")
		must(t, first.Disconnect(ctx))
		if err := greeting(ctx, first, 500*time.Millisecond); err == nil {
			t.Error("a host that is cut off answers")
		}
		must(t, first.Connect(ctx))
		must(t, first.WaitReady(ctx))
		run(t, ctx, second, "bash", "-c", "</dev/tcp/"+first.Address+"/22")
		run(t, ctx, first, "bash", "-c", "</dev/tcp/"+second.Address+"/22")
	})
	t.Run("restart keeps the host", func(t *testing.T) { testRestart(t, ctx, first) })
	t.Run("open", func(t *testing.T) {
		must(t, second.Kill(ctx))
		opened, err := hosts.Open(ctx, name, t.TempDir()) // a new directory, so a new key
		if err != nil {
			t.Fatal(err)
		}
		for i, host := range opened.Hosts {
			if host.Address != pool.Hosts[i].Address || !bytes.Equal(host.HostKey.Marshal(), pool.Hosts[i].HostKey.Marshal()) {
				t.Errorf("%s has another address or key", host.Name)
			}
			dial(t, ctx, host, host.HostKey).Close()
			dial(t, ctx, pool.Hosts[i], host.HostKey).Close() // the first key is still good
		}
	})
}

func testSnapshotSees(t *testing.T, ctx context.Context, host *hosts.Host) {
	changes := []struct{ want, change string }{ // the beginning of a line of Diff, and what causes it
		{"file /etc/kubexm-test: added: file 600", `umask 077; echo x >/etc/kubexm-test`},
		{"file /etc/networks: changed from file 644", `chmod 600 /etc/networks`},
		{"file /etc/services: changed", `sed -i 's/^ssh/SSH/' /etc/services`},
		{"file /etc/protocols: removed", `rm /etc/protocols`},
		{"file /tmp/left-over: added", `mkdir /tmp/left-over`},
		{"unit chrony.service: removed", `systemctl disable --now chrony`},
		{"file /etc/systemd/system/multi-user.target.wants/chrony.service: removed", ``},
		{"process chronyd: removed", ``},
		{"sysctl net/ipv4/ip_forward: changed", `echo $((1 - $(cat /proc/sys/net/ipv4/ip_forward))) >/proc/sys/net/ipv4/ip_forward`},
		{"mount /mnt: added", `mount -t tmpfs tmpfs /mnt`},
		{"iptables filter -A INPUT -s 192.0.2.1/32 -j DROP: added", `iptables -A INPUT -s 192.0.2.1 -j DROP`},
		{"nft ip filter chain INPUT: added", ``},
		{"link bridge9: added", `ip link add bridge9 type bridge`},
		{"address bridge9 192.0.2.9/24: added", `ip address add 192.0.2.9/24 dev bridge9`},
		{`route {"dev":"eth0","dst":"198.51.100.0/24","gateway"`, `ip route add 198.51.100.0/24 via $(ip route | sed -n 's/^default via \([^ ]*\).*/\1/p')`},
		{"account stranger: added", `useradd stranger`},
		{"process sleep: added", `setsid sleep 300 >/dev/null 2>&1 </dev/null &`},
		{"cgroup ", `mkdir /sys/fs/cgroup/memory/stranger 2>/dev/null || mkdir -p /sys/fs/cgroup/stranger`},
	}
	before := snapshot(t, ctx, host)
	for _, test := range changes {
		if test.change != "" {
			run(t, ctx, host, "sh", "-euc", test.change)
		}
	}
	differences := hosts.Diff(before, snapshot(t, ctx, host))
	for _, test := range changes {
		if !hasPrefix(differences, test.want) {
			t.Errorf("nothing begins with %q in:\n%s", test.want, strings.Join(differences, "\n"))
		}
	}
}

func hasPrefix(all []string, prefix string) bool {
	for _, line := range all {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// testAccounts logs in with the system's OpenSSH client, by the pool's files alone.
func testAccounts(t *testing.T, ctx context.Context, dir string, host *hosts.Host) {
	for _, test := range []struct {
		account, command, stdin, want string
	}{
		{hosts.Ops, "id -un", "", hosts.Ops},
		{hosts.Ops, "sudo -n id -un", "", "root"},
		{hosts.Root, "id -un", "", "root"},
		{hosts.SudoPW, "sudo -n id -un || echo refused", "", "refused"},
		{hosts.SudoPW, "sudo -S -p '' id -un", password + "\n", "root"},
		{hosts.SudoPW, "sudo -S -p '' id -un || echo refused", "wrong\n", "refused"},
		{hosts.NoSudo, "id -un; sudo -n true || echo refused", "", "nosudo\nrefused"},
	} {
		cmd := exec.CommandContext(ctx, "ssh", "-F", filepath.Join(dir, "ssh_config"), "-o", "BatchMode=yes",
			"-l", test.account, host.Name, test.command)
		cmd.Stdin = strings.NewReader(test.stdin)
		out, err := cmd.Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != test.want {
			t.Errorf("%s: %s: got %q, error %v; want %q", test.account, test.command, got, err, test.want)
		}
	}
}

func testRestart(t *testing.T, ctx context.Context, host *hosts.Host) {
	run(t, ctx, host, "sh", "-c", `echo kept >/var/lib/kept; echo "192.0.2.1 kept" >>/etc/hosts`)
	boot := run(t, ctx, host, "systemctl", "show", "--property=UserspaceTimestampMonotonic")
	before := snapshot(t, ctx, host)
	must(t, host.Restart(ctx))
	must(t, host.WaitReady(ctx))
	if again := run(t, ctx, host, "systemctl", "show", "--property=UserspaceTimestampMonotonic"); again == boot {
		t.Error("the host has not booted anew")
	}
	if differences := hosts.Diff(before, snapshot(t, ctx, host)); len(differences) != 0 {
		t.Errorf("differs after a restart:\n%s", strings.Join(differences, "\n"))
	}
	if kept := run(t, ctx, host, "sh", "-c", "cat /var/lib/kept; tail -n 1 /etc/hosts"); kept != "kept\n192.0.2.1 kept" {
		t.Errorf("files after a restart: %q", kept)
	}
	dial(t, ctx, host, host.HostKey).Close()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, ctx context.Context, host *hosts.Host, argv ...string) string {
	t.Helper()
	out, err := host.Exec(ctx, argv...)
	must(t, err)
	return out
}

func snapshot(t *testing.T, ctx context.Context, host *hosts.Host) hosts.Snapshot {
	t.Helper()
	s, err := host.Snapshot(ctx)
	must(t, err)
	return s
}

func dial(t *testing.T, ctx context.Context, host *hosts.Host, key ssh.PublicKey) *ssh.Client {
	t.Helper()
	client, err := tryDial(ctx, host, key)
	must(t, err)
	return client
}

func tryDial(ctx context.Context, host *hosts.Host, key ssh.PublicKey) (*ssh.Client, error) {
	deadline, _ := ctx.Deadline()
	return ssh.Dial("tcp", net.JoinHostPort(host.Address, fmt.Sprint(host.Port)), &ssh.ClientConfig{
		User:              host.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(host.Signer)},
		HostKeyCallback:   ssh.FixedHostKey(key),
		HostKeyAlgorithms: []string{key.Type()},
		Timeout:           time.Until(deadline),
	})
}

// greeting waits for sshd's first bytes, for at most the given time.
func greeting(ctx context.Context, host *hosts.Host, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host.Address, fmt.Sprint(host.Port)))
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}
