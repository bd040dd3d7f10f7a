// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package ssh

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// configureSSHD gives a host's sshd a part of its configuration, with the files that it names, until the test ends.
func configureSSHD(t *testing.T, h *hosts.Host, config string, files map[string]string) {
	t.Helper()
	const part = "/etc/ssh/sshd_config.d/certificates.conf"
	run := func(ctx context.Context, stdin string, argv ...string) {
		t.Helper()
		cmd := h.Command(ctx, argv...)
		cmd.Stdin = strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", argv, err, out)
		}
	}
	write := func(path, content string) {
		t.Helper()
		run(t.Context(), content, "sh", "-c", `mkdir -p "${1%/*}" && cat >"$1"`, "sh", path)
	}
	restart := func(ctx context.Context) {
		t.Helper()
		run(ctx, "", "systemctl", "reset-failed", "ssh") // or systemd refuses to restart it so often
		run(ctx, "", "systemctl", "restart", "ssh")      // waits for it to be ready
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		run(ctx, "", "rm", "-f", part)
		for path := range files {
			run(ctx, "", "rm", "-f", path)
		}
		restart(ctx)
	})
	for path, content := range files {
		write(path, content)
	}
	write(part, config)
	run(t.Context(), "", "sshd", "-t")
	restart(t.Context())
}

// TestCertificateLogin: sshd lets those in whom our authority has signed for a principal of the account, and runs their commands.
func TestCertificateLogin(t *testing.T) {
	ca, otherCA := newUserCA(t), newUserCA(t)
	const trust = "TrustedUserCAKeys /etc/ssh/users_ca.pub\nAuthorizedPrincipalsFile /etc/ssh/principals/%u\n"
	configureSSHD(t, pool.Hosts[0], trust, map[string]string{
		"/etc/ssh/users_ca.pub":   ca.PublicKey() + "\n",
		"/etc/ssh/principals/ops": "cluster-1\n",
	})
	now := time.Now()
	for name, test := range map[string]struct {
		ca        *UserCA
		principal string
		at        time.Time
		user      string
		kind      host.Kind
	}{
		"minted":               {ca, "cluster-1", now, hosts.Ops, ""},
		"expired":              {ca, "cluster-1", now.Add(-time.Hour), hosts.Ops, host.KindAuth},
		"not yet valid":        {ca, "cluster-1", now.Add(time.Hour), hosts.Ops, host.KindAuth},
		"another principal":    {ca, "cluster-2", now, hosts.Ops, host.KindAuth},
		"another account":      {ca, "cluster-1", now, hosts.Root, host.KindAuth},
		"by another authority": {otherCA, "cluster-1", now, hosts.Ops, host.KindAuth},
	} {
		t.Run(name, func(t *testing.T) {
			login, err := NewLogin(test.ca, test.principal, 5*time.Minute, test.at, "run-1")
			if err != nil {
				t.Fatal(err)
			}
			c := config(test.user)
			c.Auth = login
			h, err := Dial(t.Context(), c)
			if host.KindOf(err) != test.kind {
				t.Fatalf("got %v, want kind %q", err, test.kind)
			}
			if err != nil {
				return
			}
			defer h.Close()
			if f, err := h.Observe(t.Context(), host.Query{}); err != nil || f.System.Hostname != pool.Hosts[0].Name {
				t.Errorf("what it may run: %v", err)
			}
		})
	}
}

// TestCertificateJump: a certificate leads through a jump host if it permits that.
func TestCertificateJump(t *testing.T) {
	ca := newUserCA(t)
	configureSSHD(t, pool.Hosts[1], "TrustedUserCAKeys /etc/ssh/users_ca.pub\n", map[string]string{
		"/etc/ssh/users_ca.pub": ca.PublicKey() + "\n",
	})
	for name, test := range map[string]struct {
		permits []Permit
		kind    host.Kind
	}{"permitted": {[]Permit{PermitPortForwarding}, ""}, "not permitted": {nil, host.KindUnreachable}} {
		t.Run(name, func(t *testing.T) {
			login, err := NewLogin(ca, hosts.NoSudo, 5*time.Minute, time.Now(), "run-1", test.permits...)
			if err != nil {
				t.Fatal(err)
			}
			jump, c := configOf(1, hosts.NoSudo), config(hosts.Ops)
			jump.Auth, c.Jump = login, &jump
			h, err := Dial(t.Context(), c)
			if err == nil {
				defer h.Close()
			}
			if host.KindOf(err) != test.kind {
				t.Errorf("got %v, want kind %q", err, test.kind)
			}
		})
	}
}

// TestCertificateOfHost: sshd shows the certificate, which is right for as long as it is valid.
func TestCertificateOfHost(t *testing.T) {
	h := pool.Hosts[0]
	_, ca := newKey(t)
	now := time.Now()
	for name, test := range map[string]struct {
		principal string
		until     time.Time
		kind      host.Kind
	}{
		"for its name":     {h.Name, now.Add(time.Hour), ""},
		"for its address":  {h.Address, now.Add(time.Hour), ""},
		"for another host": {pool.Hosts[1].Name, now.Add(time.Hour), host.KindHostKey},
		"expired":          {h.Name, now.Add(-time.Minute), host.KindHostKey},
	} {
		t.Run(name, func(t *testing.T) {
			cert := &ssh.Certificate{
				Key: h.HostKey, CertType: ssh.HostCert, KeyId: h.Name, ValidPrincipals: []string{test.principal},
				ValidAfter: uint64(now.Add(-time.Hour).Unix()), ValidBefore: uint64(test.until.Unix()),
			}
			if err := cert.SignCert(rand.Reader, ca); err != nil {
				t.Fatal(err)
			}
			configureSSHD(t, h, "HostCertificate /etc/ssh/certificate.pub\n", map[string]string{
				"/etc/ssh/certificate.pub": authorizedLine(cert) + "\n",
			})
			c := config(hosts.Ops)
			c.HostKey = HostKey{Authorities: []string{lineOf(ca)}}
			conn, err := Dial(t.Context(), c)
			if err == nil {
				_ = conn.Close()
			}
			if host.KindOf(err) != test.kind {
				t.Errorf("got %v, want kind %q", err, test.kind)
			}
			c.HostKey.Pinned = []string{ssh.FingerprintSHA256(h.HostKey)}
			connect(t, c)
		})
	}
}

// TestCandidatesOfPool: among the addresses of a pool the host is found by its key, directly and through a jump host.
func TestCandidatesOfPool(t *testing.T) {
	c := config(hosts.Ops)
	c.Address, c.Candidates = pool.Hosts[1].Address, []string{pool.Hosts[2].Address, pool.Hosts[0].Address}
	jump := configOf(1, hosts.NoSudo)
	for name, over := range map[string]*Config{"directly": nil, "through a jump host": &jump} {
		t.Run(name, func(t *testing.T) {
			c := c
			c.Jump = over
			h := connect(t, c)
			f, err := h.Observe(t.Context(), host.Query{})
			if err != nil || f.System.Hostname != pool.Hosts[0].Name || h.Address() != pool.Hosts[0].Address {
				t.Errorf("found at %s: %v", h.Address(), err)
			}
		})
	}
}
