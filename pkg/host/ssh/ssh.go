// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ssh is host.Host over SSH: one connection per host, with a channel for each thing that runs there.
//
// The host's key is always verified, before anything secret is sent: against a pinned key, known_hosts files, or, for a
// host never seen, by the caller's own consent. Commands have no terminal. Who logs in as somebody else than root becomes
// root by sudo.
package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
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
	// Candidates are further addresses at which the host may be, with the same Port; 16 addresses in all at most. All are dialled
	// at once, and the first that shows a key that HostKey knows and lets us log in is the host. A machine that shows another
	// key gets nothing. AcceptNew is not asked: a key that nobody knows does not tell the host from another machine.
	Candidates []string
	// User who logs in; empty means root. Anybody but root becomes root by sudo: without being asked, or with SudoPassword.
	User         string
	SudoPassword secret.Value

	Auth    Auth
	HostKey HostKey

	// Jump is a host to go through (a bastion); its SudoPassword and own timeouts do not matter, its Name only for its certificate.
	Jump *Config

	// Accept, if it is set, waits for a connection that the host has opened to us, in the place of dialling it (SSH Call Home, RFC 8071):
	// Address is what the host is called in messages then. There is no Jump and there are no Candidates. Who opens a connection is nobody
	// until it shows the host's key, so Accept is called again after one that does not, and beside one that is silent, until DialTimeout.
	Accept func(context.Context) (net.Conn, error)

	// DialTimeout bounds connecting and logging in, on each hop, at all addresses; 0 means 20 s.
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
// KindInvalid for a Config that cannot work. Of several addresses, none of which is right, the kind is the most telling one:
// KindAuth before KindHostKey before KindUnreachable. Whether the user may become root shows with the first exchange.
func Dial(ctx context.Context, c Config) (*Host, error) {
	c = c.withDefaults()
	conn, err := dial(ctx, c, c.Name)
	if err != nil {
		return nil, err
	}
	return &Host{conn: conn, Host: posix.New(conn, posix.Config{
		Name: c.Name, User: c.User, Sudo: c.User != "root", SudoPassword: c.SudoPassword,
		Heartbeat: c.heartbeat, StopGrace: c.stopGrace, Cut: c.cut,
	})}, nil
}

// Address is the address at which the host was found: Config.Address, or one of the Candidates.
func (h *Host) Address() string { return h.conn.address }

// Close ends the connection and with it every session.
func (h *Host) Close() error { return h.conn.close() }

// dial connects to c, through its jumps, for the host called name.
func dial(ctx context.Context, c Config, name string) (*connection, error) {
	c = c.withDefaults()
	if c.Accept != nil {
		return accept(ctx, c, name)
	}
	addresses, err := c.addresses()
	if err != nil {
		return nil, &host.Error{Kind: host.KindInvalid, Host: name, Message: err.Error()}
	}
	var through *connection
	if c.Jump != nil {
		if through, err = dial(ctx, *c.Jump, name); err != nil {
			return nil, JumpError(err, c.Jump.Address)
		}
	}
	conn, err := dialHop(ctx, c, addresses, name, through)
	if err != nil && through != nil {
		_ = through.close()
	}
	return conn, err
}

// JumpError is an error of a jump host, and says so.
func JumpError(err error, address string) error {
	var e *host.Error
	if errors.As(err, &e) {
		e.Message = "jump host " + address + ": " + e.Message
	}
	return err
}

// dialAt connects to the one address of c. A pinned fingerprint does not tell the key's type, so a host that shows us another of
// its keys is asked for those of other types before it is refused.
func dialAt(ctx context.Context, c Config, name string, through *connection, l *login, check *keyCheck) (*connection, error) {
	var refused error // the first time, where that says more than that the host has no other key
	for {
		conn, err := dialOnce(ctx, c, name, through, l, check)
		var negotiation *ssh.AlgorithmNegotiationError
		if refused != nil && errors.As(err, &negotiation) {
			return nil, refused
		}
		_, certificate := check.shown.(*ssh.Certificate)
		if err == nil || !check.tryOthers() {
			return conn, err
		}
		if certificate || len(c.Candidates) > 0 { // of some other machine, its key tells which
			refused = cmp.Or(refused, err)
		}
	}
}

func dialOnce(ctx context.Context, c Config, name string, through *connection, l *login, check *keyCheck) (*connection, error) {
	check.reset() // before all that may fail: what was shown at an earlier connection is not to be asked about again
	raw, err := through.dialTCP(ctx, c.endpoint())
	if err != nil {
		return nil, dialError(ctx, name, c, err)
	}
	return logIn(ctx, c, name, gather(raw), l, check)
}

// logIn does the handshake on a connection, which is closed if that fails.
func logIn(ctx context.Context, c Config, name string, raw net.Conn, l *login, check *keyCheck) (*connection, error) {
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	config := &ssh.ClientConfig{
		User: c.User, Auth: l.methods(), HostKeyCallback: check.verify, HostKeyAlgorithms: check.algorithms(),
		// The cheapest first: on a machine with AES instructions GCM costs a third of what the others do.
		Config: ssh.Config{Ciphers: []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherChaCha20Poly1305,
			ssh.CipherAES128CTR, ssh.CipherAES192CTR, ssh.CipherAES256CTR}},
	}
	sshConn, channels, requests, err := ssh.NewClientConn(raw, c.endpoint(), config)
	if err != nil {
		_ = raw.Close()
		return nil, loginError(ctx, name, c, l, check, err)
	}
	conn := newConnection(name, ssh.NewClient(sshConn, channels, requests), c.KeepAlive, c.KeepAliveMax)
	conn.address = c.Address
	if !stop() { // too late, raw is closed
		_ = conn.close()
		return nil, loginError(ctx, name, c, l, check, ctx.Err())
	}
	return conn, nil
}

func dialError(ctx context.Context, name string, c Config, err error) error {
	e := &host.Error{Kind: host.KindUnreachable, Host: name, Message: "cannot connect to " + c.endpoint(), Err: &said{err},
		Remedy: "check that the host is up, that sshd listens there and that no firewall is in between"}
	if c.Jump != nil {
		e.Message += " through the jump host " + c.Jump.Address
		e.Remedy += ", and that the jump host may forward to it (AllowTcpForwarding and PermitOpen in its sshd_config)"
	}
	if ctx.Err() != nil {
		e.Err = ctx.Err()
	}
	return e
}

// loginError tells apart what can go wrong between the connection and the login. x/crypto has no types for most of it, but
// the host key is checked before authentication starts.
func loginError(ctx context.Context, name string, c Config, l *login, check *keyCheck, err error) error {
	e := &host.Error{Host: name, Err: &said{err}}
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
		certificates := l.certificates()
		if len(certificates) > 0 {
			e.Remedy = "let the host trust the certificate's authority, and its principal for " + c.User +
				" (TrustedUserCAKeys and AuthorizedPrincipalsFile in its sshd_config), or correct user, key or password"
		}
		now := time.Now()
		if i := slices.IndexFunc(certificates, func(c *ssh.Certificate) bool { return !validAt(c, now) }); i >= 0 {
			e.Message += fmt.Sprintf(": the certificate %q is valid %s", host.Word(certificates[i].KeyId, maxKeyID), validity(certificates[i]))
			e.Remedy = "have a new certificate signed"
		}
	}
	return e
}

// said is an error in words some of which may be a host's, of whatever length and for whatever terminal.
type said struct{ error }

// maxSaid bounds them, in bytes.
const maxSaid = 512

// Error is one line.
func (s *said) Error() string { return host.Word(s.error.Error(), maxSaid) }

// Unwrap returns the error as it is.
func (s *said) Unwrap() error { return s.error }
