// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	gossh "golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// Somebody who answers in the place of a host is refused at once, for everybody's sake: they see no credential.
func TestHostKeyWrong(t *testing.T) {
	tr := newTrial(t)
	p := tr.plan(len(subject.hosts))
	impostor := newImpostor(t)
	o := subject.options(event.ReaderFunc(func(ev event.Event) {
		if ev.Type == event.Retrying {
			t.Errorf("tried again: %s", ev)
		}
	}))
	o.Dial = func(ctx context.Context, name string) (host.Host, error) {
		if name != subject.hosts[1].Name {
			return subject.dial(ctx, name)
		}
		config, err := subject.config(name)
		if err != nil {
			return nil, err
		}
		config.Address, config.Port, config.Auth.Password = "127.0.0.1", impostor.port, secret.New(sudoPassword)
		h, err := ssh.Dial(ctx, config)
		if err != nil {
			return nil, err
		}
		return h, nil
	}
	_, err := engine.New(o).Check(t.Context(), p)
	f := onlyFailure(t, err)
	if host.KindOf(f.Err) != host.KindHostKey || f.Host != subject.hosts[1].Name || f.Remedy == "" {
		t.Errorf("check: kind %q of host %q, remedy %q: %v", host.KindOf(f.Err), f.Host, f.Remedy, err)
	}

	// Of a cluster with only this host: nothing else is to be waited for.
	_, err = engine.New(o).Undo(t.Context(), engine.Undo{Intent: "ResetNode", Hosts: []string{subject.hosts[1].Name}})
	if f := onlyFailure(t, err); host.KindOf(f.Err) != host.KindHostKey {
		t.Errorf("undo: %v", err)
	}
	if impostor.asked.Load() == 0 {
		t.Error("nobody came to the impostor")
	}
	if n := impostor.tried.Load(); n > 0 {
		t.Errorf("%d credentials were shown to the impostor", n)
	}
	tr.demandReset()
}

// impostor is an SSH server with a key of its own that takes every credential.
type impostor struct {
	port int32
	// asked counts connections, tried credentials.
	asked, tried atomic.Int32
}

func newImpostor(t *testing.T) *impostor {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := gossh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	i := &impostor{}
	config := &gossh.ServerConfig{
		PasswordCallback: func(gossh.ConnMetadata, []byte) (*gossh.Permissions, error) {
			i.tried.Add(1)
			return &gossh.Permissions{}, nil
		},
		PublicKeyCallback: func(gossh.ConnMetadata, gossh.PublicKey) (*gossh.Permissions, error) {
			i.tried.Add(1)
			return &gossh.Permissions{}, nil
		},
	}
	config.AddHostKey(key)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	i.port = int32(listener.Addr().(*net.TCPAddr).Port)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			i.asked.Add(1)
			// That the handshake fails is what is expected.
			_, _, _, _ = gossh.NewServerConn(conn, config)
			_ = conn.Close()
		}
	}()
	return i
}

// Anyone who may not become root learns so, with the remedy, before anything is changed or a secret is asked for.
func TestSudoRefused(t *testing.T) {
	for _, c := range []struct{ name, user, password string }{
		{"NoSudo", hosts.NoSudo, ""},
		{"NoPassword", hosts.SudoPW, ""},
		{"WrongPassword", hosts.SudoPW, "wr0ng-" + sudoPassword},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTrial(t)
			p := tr.plan(1)
			o := subject.as(c.user, c.password).options(nil)
			o.Secrets = func(ref step.SecretRef) ([]byte, error) {
				t.Errorf("asked for %s", ref)
				return subject.secret(ref)
			}
			_, err := engine.New(o).Run(t.Context(), p)
			f := onlyFailure(t, err)
			if host.KindOf(f.Err) != host.KindPrivilege || f.Attempt != 1 || f.Remedy == "" {
				t.Errorf("kind %q, attempt %d, remedy %q: %v", host.KindOf(f.Err), f.Attempt, f.Remedy, err)
			}
			if c.password != "" && strings.Contains(f.Error(), c.password) {
				t.Error("the password is in the error")
			}
			tr.demandReset()
		})
	}
}
