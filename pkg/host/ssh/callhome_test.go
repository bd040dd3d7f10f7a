// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh/sshtest"
)

// mute is a caller who says nothing.
var mute = &sshtest.Server{}

// calls are those who connect to us, one after the other; after the last, nobody does.
func calls(servers ...*sshtest.Server) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		if len(servers) == 0 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		next := servers[0]
		servers = servers[1:]
		if next == nil { // one that ends at once
			ours, theirs := net.Pipe()
			return ours, theirs.Close()
		}
		if next == mute {
			ours, _ := net.Pipe()
			return ours, nil
		}
		var dialer net.Dialer
		return dialer.DialContext(ctx, "tcp", net.JoinHostPort(rightAt, strconv.Itoa(int(next.Port))))
	}
}

// home is how the host with the server's key is met where these connect to us.
func home(server *sshtest.Server, connect ...*sshtest.Server) Config {
	c := among(server, rightAt)
	c.Accept, c.DialTimeout = calls(connect...), 2*time.Second
	return c
}

func TestAcceptTakesTheHost(t *testing.T) {
	leavesNothing(t)
	host, other := machine(t, letIn(everybody)), machine(t, letIn(everybody))
	// By a fingerprint, which does not tell a type: after another has shown a key of the host's type, that is not asked for at first.
	fingerprint := home(host, other, host, host, host, host, host)
	key := func(connect ...*sshtest.Server) Config {
		c := home(host, connect...)
		c.HostKey.Pinned = []string{string(ssh.MarshalAuthorizedKey(host.Signer().PublicKey()))}
		return c
	}
	// As many as are kept of one Machine's, the host's the oldest.
	silent := append(slices.Repeat([]*sshtest.Server{mute}, 15), host)
	for name, c := range map[string]Config{
		"alone": key(host), "after another machine": key(other, other, host),
		"after one that was cut": key(nil, host), "by its fingerprint": fingerprint,
		"after silent ones": key(silent...), "after silent ones and others": key(mute, other, mute, nil, mute, host),
	} {
		t.Run(name, func(t *testing.T) {
			h, err := Dial(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAcceptTakesNobodyElse(t *testing.T) {
	leavesNothing(t)
	server, other := machine(t, letIn(everybody)), machine(t, letIn(everybody))
	strict := machine(t, letIn(func(ssh.ConnMetadata) error { return errRefused }))
	several := home(server, server)
	several.Candidates = []string{otherAt}
	through := home(server, server)
	through.Jump = &Config{Address: otherAt}
	anyKey := home(server, server)
	anyKey.HostKey = HostKey{}
	for name, test := range map[string]struct {
		config Config
		kind   host.Kind
		says   string
	}{
		"nobody connects":             {home(server), host.KindUnreachable, "has not connected to the manager"},
		"others connect":              {home(server, nil, other), host.KindHostKey, "none of those who connected"},
		"a silent one connects":       {home(server, mute), host.KindUnreachable, "none of those who connected"},
		"one that ends connects":      {home(server, nil), host.KindUnreachable, "none of those who connected"},
		"the host does not let us in": {home(strict, strict, strict), host.KindAuth, "may not log in"},
		"several addresses":           {several, host.KindInvalid, "at no other address"},
		"a jump host":                 {through, host.KindInvalid, "behind no jump host"},
		"no key is known":             {anyKey, host.KindInvalid, "anybody may connect"},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := Dial(t.Context(), test.config)
			if err == nil {
				t.Fatal(errors.Join(errors.New("it was let in"), h.Close()))
			}
			if host.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.says) {
				t.Errorf("it is %s: %v, want %s with %q", host.KindOf(err), err, test.kind, test.says)
			}
		})
	}
}
