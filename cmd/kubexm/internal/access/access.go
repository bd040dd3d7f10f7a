// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access reaches the hosts of a config file or an inventory over SSH: with whose credentials, and trusting which
// key.
package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/openssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// Options say which host keys are trusted, and what there is to log in with.
type Options struct {
	// KnownHosts are files in OpenSSH's format, asked for hosts without a key of their own in the config, and for all hosts which keys
	// are @revoked. Files that are not there are passed over.
	KnownHosts []string
	// AcceptNew is the file to which the key of a host that nobody knows is added. Without it, such hosts are refused.
	AcceptNew string
	// OpenSSH has what is logged in with where a host has neither key nor password.
	OpenSSH *openssh.Client
}

// DefaultKnownHosts are the files that OpenSSH itself asks.
func DefaultKnownHosts() []string {
	files := []string{"/etc/ssh/ssh_known_hosts"}
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".ssh", "known_hosts"))
	}
	return files
}

// Hosts is how a cluster's hosts are reached. It is safe for concurrent use.
type Hosts struct {
	options Options
	record  *ssh.Recorder
	byName  map[string]*entry
}

type entry struct {
	peer
	jump *peer // the jump host, nil if the host is reached directly
}

// peer is a machine that is logged in to.
type peer struct {
	ssh.Config // but for the key that it must show
	key        secret.Value
	mu         sync.Mutex
	pin        string
}

// New reads the keys that hosts and their jump hosts name, and finds the host keys that are known.
func New(hosts []config.Host, o Options) (*Hosts, error) {
	var err error
	if o.KnownHosts, err = existing(o.KnownHosts); err != nil {
		return nil, err
	}
	known, err := ssh.ReadKnown(o.KnownHosts...)
	if err != nil {
		return nil, err
	}
	if o.OpenSSH == nil {
		o.OpenSSH = &openssh.Client{}
	}
	h := &Hosts{options: o, record: &ssh.Recorder{File: o.AcceptNew}, byName: make(map[string]*entry, len(hosts))}
	var errs []error
	// complete reads the key, if there is one, and finds the host key.
	complete := func(p *peer, of, keyPath, hostKey string) {
		if keyPath != "" {
			content, err := os.ReadFile(keyPath)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: private key: %w", of, err))
			}
			p.key = secret.New(content)
			p.Auth.PrivateKeys = []secret.Value{p.key}
		}
		if p.pin = hostKey; hostKey == "" {
			p.pin = known.Pin(p.Config)
		}
	}
	jumps := map[config.ProxyJump]*peer{} // hosts that share one share what is learned of it
	for _, declared := range hosts {
		e := &entry{peer: peer{Config: ssh.Config{
			Name: declared.Name, Address: declared.Address, Port: declared.Port, User: declared.User, SudoPassword: declared.Password,
			Auth: ssh.Auth{Password: declared.Password},
		}}}
		complete(&e.peer, "host "+declared.Name, declared.PrivateKeyPath, declared.HostKey)
		if j := declared.ProxyJump; !j.IsZero() {
			if jumps[j] == nil {
				jump := &peer{Config: ssh.Config{Name: j.Host, Address: j.Host, Port: j.Port, User: j.User}}
				jump.Auth.Password = j.Password
				complete(jump, "jump host "+j.Host, j.PrivateKeyPath, j.HostKey)
				jumps[j] = jump
			}
			e.jump = jumps[j]
		}
		h.byName[declared.Name] = e
	}
	return h, errors.Join(errs...)
}

// existing are the files that are there.
func existing(files []string) ([]string, error) {
	var there []string
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			there = append(there, file)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("known hosts: %w", err)
		}
	}
	return there, nil
}

// config is how a machine is reached, with the key that it must show.
func (h *Hosts) config(p *peer) ssh.Config {
	c := p.Config
	if pin := p.hostKey(); pin != "" {
		// The pin alone is right. known_hosts may say since when it is not: by @revoked.
		c.HostKey = ssh.HostKey{Pinned: []string{pin}, KnownHosts: h.options.KnownHosts}
		return c
	}
	c.HostKey = ssh.HostKey{KnownHosts: h.options.KnownHosts, AcceptNew: ssh.Refuse}
	if h.options.AcceptNew != "" {
		c.HostKey.AcceptNew = h.record.Accept(c, p.accepted)
	}
	return c
}

// Dial connects to a host, through its jump host if it has one. Errors are those of ssh.Dial.
func (h *Hosts) Dial(ctx context.Context, name string) (host.Host, error) {
	e, found := h.byName[name]
	if !found {
		return nil, &host.Error{Kind: host.KindInvalid, Host: name, Message: "it is not known how to reach it", Remedy: "give the config file that has it (-f)"}
	}
	c := h.config(&e.peer)
	if e.jump != nil {
		jump := h.config(e.jump)
		c.Jump = &jump
	}
	if err := h.options.OpenSSH.Complete(ctx, &c); err != nil {
		return nil, err
	}
	connected, err := ssh.Dial(ctx, c)
	if err != nil {
		var refused *host.Error
		if errors.Is(err, ssh.ErrUnknownKey) && errors.As(err, &refused) {
			whose, where := "the host's own", "hostKey"
			if e.jump != nil && e.jump.hostKey() == "" { // it comes first
				whose, where = "the jump host's own", "proxyJump.hostKey"
			}
			refused.Remedy = fmt.Sprintf("compare it with %s (there: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), "+
				"then set %s in the config file, add it to known_hosts, or give --accept-new-host-keys", whose, where)
		}
		return nil, err // not a nil *ssh.Host in an interface
	}
	return connected, nil
}

func (p *peer) accepted(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pin = key
}

func (p *peer) hostKey() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pin
}

// HostKey is the key that a host must show, "" while nobody knows it.
func (h *Hosts) HostKey(name string) string {
	if e, found := h.byName[name]; found {
		return e.hostKey()
	}
	return ""
}

// PrivateKey is the content of the private key that a host is reached with, zero where there is none.
func (h *Hosts) PrivateKey(name string) secret.Value {
	if e, found := h.byName[name]; found {
		return e.key
	}
	return secret.Value{}
}

// JumpHostKey is the key that a host's jump host must show, "" while nobody knows it, and where there is none.
func (h *Hosts) JumpHostKey(name string) string {
	if e, found := h.byName[name]; found && e.jump != nil {
		return e.jump.hostKey()
	}
	return ""
}

// JumpPrivateKey is the content of the private key that a host's jump host is reached with, zero where there is none.
func (h *Hosts) JumpPrivateKey(name string) secret.Value {
	if e, found := h.byName[name]; found && e.jump != nil {
		return e.jump.key
	}
	return secret.Value{}
}

// Address is where a host is reached, for messages.
func (h *Hosts) Address(name string) string {
	if e, found := h.byName[name]; found {
		return e.Config.Address
	}
	return ""
}

// Fingerprint is that of a key as HostKey has it, "" for "".
func Fingerprint(key string) string {
	if key == "" {
		return ""
	}
	return ssh.Fingerprint(key)
}

// SharedKeys are groups of hosts that show one key, by name: addresses that have moved are not noticed by it.
func (h *Hosts) SharedKeys() [][]string {
	byKey := map[string][]string{}
	for name, e := range h.byName {
		if pin := e.hostKey(); pin != "" {
			byKey[ssh.Fingerprint(pin)] = append(byKey[ssh.Fingerprint(pin)], name)
		}
	}
	var shared [][]string
	for _, names := range byKey {
		if len(names) > 1 {
			slices.Sort(names)
			shared = append(shared, names)
		}
	}
	slices.SortFunc(shared, slices.Compare)
	return shared
}
