// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ssh is host.Host over SSH: one connection per host, with a channel for each thing that runs there.
//
// The host's key is always verified, before anything secret is sent: against a pinned key, known_hosts files, or, for a
// host never seen, by the caller's own consent. Commands have no terminal. Who logs in as somebody else than root becomes
// root by sudo.
package ssh

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/internal/posix"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// Config says how to reach a host and be root on it.
type Config struct {
	// Name of the host in plans, events and errors; empty means Address.
	Name string
	// Address is a DNS name or an IP address. Port 0 means 22.
	Address string
	Port    int32
	// User who logs in; empty means root. Anybody but root becomes root by sudo: without being asked, or with SudoPassword.
	User         string
	SudoPassword secret.Value

	Auth    Auth
	HostKey HostKey

	// Jump is a host to go through (a bastion); its Name, SudoPassword and own timeouts do not matter.
	Jump *Config

	// DialTimeout bounds connecting and logging in, on each hop; 0 means 20 s.
	DialTimeout time.Duration
	// KeepAlive is how often a silent peer is asked for a sign of life; it is given up, and the connection with it, after
	// KeepAliveMax times without one. 0 means 10 s and 3.
	KeepAlive    time.Duration
	KeepAliveMax int

	// For tests: how often sessions beat, how long what was cancelled may take to stop, and where to be killed.
	heartbeat time.Duration
	stopGrace time.Duration
	cut       func() int
}

// Stats is what a host has cost so far.
type Stats = posix.Stats

// Host is a host at the end of one SSH connection.
type Host struct {
	*posix.Host
	conn *connection
}

var _ host.Host = (*Host)(nil)

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = c.Address
	}
	if c.Port == 0 {
		c.Port = 22
	}
	if c.User == "" {
		c.User = "root"
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = 20 * time.Second
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = 10 * time.Second
	}
	if c.KeepAliveMax == 0 {
		c.KeepAliveMax = 3
	}
	return c
}

func (c Config) endpoint() string { return net.JoinHostPort(c.Address, strconv.Itoa(int(c.Port))) }

// Dial connects to the host and logs in. Errors are *host.Error: KindUnreachable, KindHostKey, KindAuth, KindTimeout, or
// KindInvalid for a Config that cannot work. Whether the user may become root shows with the first exchange.
func Dial(ctx context.Context, c Config) (*Host, error) {
	c = c.withDefaults()
	conn, err := dial(ctx, c, c.Name)
	if err != nil {
		return nil, err
	}
	return &Host{conn: conn, Host: posix.New(conn, posix.Config{
		Name: c.Name, User: c.User, Sudo: c.User != "root", SudoPassword: c.SudoPassword, Heartbeat: c.heartbeat, StopGrace: c.stopGrace, Cut: c.cut,
	})}, nil
}

// Close ends the connection and with it every session.
func (h *Host) Close() error { return h.conn.close() }

// dial connects to c, through its jumps, for the host called name.
func dial(ctx context.Context, c Config, name string) (*connection, error) {
	c = c.withDefaults()
	if c.Address == "" {
		return nil, &host.Error{Kind: host.KindInvalid, Host: name, Message: "no address is given"}
	}
	var through *connection
	if c.Jump != nil {
		var err error
		if through, err = dial(ctx, *c.Jump, name); err != nil {
			return nil, jumpError(err, c.Jump.Address)
		}
	}
	conn, err := dialHop(ctx, c, name, through)
	if err != nil && through != nil {
		_ = through.close()
	}
	return conn, err
}

func jumpError(err error, address string) error {
	var e *host.Error
	if errors.As(err, &e) {
		e.Message = "jump host " + address + ": " + e.Message
	}
	return err
}

// dialHop connects to c alone. A pinned fingerprint does not tell the key's type, so a host that shows us another of its
// keys is asked for those of other types before it is refused.
func dialHop(ctx context.Context, c Config, name string, through *connection) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, c.DialTimeout)
	defer cancel()
	methods, done, err := c.Auth.methods(ctx)
	if err != nil {
		return nil, &host.Error{Kind: host.KindAuth, Host: name, Message: "the credentials cannot be used", Err: err, Remedy: "correct the SSH credentials of the host"}
	}
	defer done()
	check, err := c.HostKey.checker(c.endpoint())
	if err != nil {
		return nil, &host.Error{Kind: host.KindInvalid, Host: name, Message: "the host key to expect cannot be read", Err: err}
	}
	for {
		conn, err := dialOnce(ctx, c, name, through, methods, check)
		if err == nil || !check.tryOthers() {
			return conn, err
		}
	}
}

func dialOnce(ctx context.Context, c Config, name string, through *connection, methods []ssh.AuthMethod, check *keyCheck) (*connection, error) {
	raw, err := through.dialTCP(ctx, c.endpoint())
	if err != nil {
		return nil, dialError(ctx, name, c, err)
	}
	raw = gather(raw)
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	check.reset()
	config := &ssh.ClientConfig{
		User: c.User, Auth: methods, HostKeyCallback: check.verify, HostKeyAlgorithms: check.algorithms(),
		// The cheapest first: on a machine with AES instructions GCM costs a third of what the others do.
		Config: ssh.Config{Ciphers: []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherChaCha20Poly1305,
			ssh.CipherAES128CTR, ssh.CipherAES192CTR, ssh.CipherAES256CTR}},
	}
	sshConn, channels, requests, err := ssh.NewClientConn(raw, c.endpoint(), config)
	if err != nil {
		_ = raw.Close()
		return nil, loginError(ctx, name, c, check, err)
	}
	return newConnection(name, ssh.NewClient(sshConn, channels, requests), through, c.KeepAlive, c.KeepAliveMax), nil
}

func dialError(ctx context.Context, name string, c Config, err error) error {
	e := &host.Error{Kind: host.KindUnreachable, Host: name, Message: "cannot connect to " + c.endpoint(), Err: err,
		Remedy: "check that the host is up, that sshd listens there and that no firewall is in between"}
	if ctx.Err() != nil {
		e.Err = ctx.Err()
	}
	return e
}

// loginError tells apart what can go wrong between the connection and the login. x/crypto has no types for most of it, but
// the host key is checked before authentication starts.
func loginError(ctx context.Context, name string, c Config, check *keyCheck, err error) error {
	e := &host.Error{Host: name, Err: err}
	var negotiation *ssh.AlgorithmNegotiationError
	var network net.Error
	switch {
	case check.failure != nil:
		e.Kind, e.Message, e.Err = host.KindHostKey, check.failure.message, check.failure.cause
		e.Remedy = check.failure.remedy
	case ctx.Err() != nil:
		e.Kind, e.Err, e.Message = host.KindUnreachable, ctx.Err(), c.endpoint()+" did not finish the SSH handshake in time"
		e.Remedy = "check that the host is up and not overloaded"
	case errors.As(err, &negotiation) && !check.passed && check.restricted():
		e.Kind, e.Message = host.KindHostKey, "the host has no key of the expected type"
		e.Remedy = "compare the host's keys (ssh-keyscan " + c.Address + ") with the pinned one, and correct the pin if the host was set up anew"
	case errors.As(err, &network), isCut(err), !check.passed:
		e.Kind, e.Message = host.KindUnreachable, c.endpoint()+" broke off the SSH handshake"
		e.Remedy = "check sshd on the host (its MaxStartups, its log)"
	default:
		e.Kind, e.Message = host.KindAuth, "user "+c.User+" may not log in with the credentials given"
		e.Remedy = "authorise the key for " + c.User + " on the host, or correct user, key or password"
	}
	return e
}
