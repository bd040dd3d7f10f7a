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

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// Options say which host keys are trusted.
type Options struct {
	// KnownHosts are files in OpenSSH's format, asked for hosts without a key of their own in the config. Files that are not
	// there are passed over.
	KnownHosts []string
	// AcceptNew is the file to which the key of a host that nobody knows is added. Without it, such hosts are refused.
	AcceptNew string
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
	config.Host
	key secret.Value
	mu  sync.Mutex
	pin string
}

// New reads the keys that hosts name, and finds the host keys that are known.
func New(hosts []config.Host, o Options) (*Hosts, error) {
	var err error
	if o.KnownHosts, err = existing(o.KnownHosts); err != nil {
		return nil, err
	}
	known, err := ssh.ReadKnown(o.KnownHosts...)
	if err != nil {
		return nil, err
	}
	h := &Hosts{options: o, record: &ssh.Recorder{File: o.AcceptNew}, byName: make(map[string]*entry, len(hosts))}
	var errs []error
	for _, declared := range hosts {
		e := &entry{Host: declared, pin: declared.HostKey}
		if declared.PrivateKeyPath != "" {
			content, err := os.ReadFile(declared.PrivateKeyPath)
			if err != nil {
				errs = append(errs, fmt.Errorf("host %s: private key: %w", declared.Name, err))
			}
			e.key = secret.New(content)
		}
		if e.pin == "" {
			e.pin = known.Pin(e.config())
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

// config is how the host is reached, but for the key that it must show.
func (e *entry) config() ssh.Config {
	c := ssh.Config{
		Name: e.Name, Address: e.Address, Port: e.Port, User: e.User, SudoPassword: e.Password,
		Auth: ssh.Auth{Password: e.Password},
	}
	switch {
	case !e.key.IsZero():
		c.Auth.PrivateKeys = []secret.Value{e.key}
	case e.Password.IsZero():
		c.Auth.AgentSocket = os.Getenv("SSH_AUTH_SOCK")
	}
	return c
}

// Dial connects to a host. Errors are those of ssh.Dial.
func (h *Hosts) Dial(ctx context.Context, name string) (host.Host, error) {
	e, found := h.byName[name]
	if !found {
		return nil, &host.Error{Kind: host.KindInvalid, Host: name, Message: "it is not known how to reach it", Remedy: "give the config file that has it (-f)"}
	}
	c := e.config()
	if pin := e.hostKey(); pin != "" {
		c.HostKey = ssh.HostKey{Pinned: []string{pin}}
	} else {
		c.HostKey = ssh.HostKey{KnownHosts: h.options.KnownHosts, AcceptNew: ssh.Refuse}
		if h.options.AcceptNew != "" {
			c.HostKey.AcceptNew = h.record.Accept(c, e.accepted)
		}
	}
	connected, err := ssh.Dial(ctx, c)
	if err != nil {
		var refused *host.Error
		if errors.Is(err, ssh.ErrUnknownKey) && errors.As(err, &refused) {
			refused.Remedy = "compare it with the host's own (there: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), then set hostKey in the config file, add it to known_hosts, or give --accept-new-host-keys"
		}
		return nil, err // not a nil *ssh.Host in an interface
	}
	return connected, nil
}

func (e *entry) accepted(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pin = key
}

func (e *entry) hostKey() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pin
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

// Address is where a host is reached, for messages.
func (h *Hosts) Address(name string) string {
	if e, found := h.byName[name]; found {
		return e.Host.Address
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
