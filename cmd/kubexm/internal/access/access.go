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
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
	cryptossh "golang.org/x/crypto/ssh"

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
	byName  map[string]*entry
	mu      sync.Mutex // AcceptNew's file
}

type entry struct {
	config.Host
	key secret.Value
	mu  sync.Mutex
	pin string
}

// New reads the keys that hosts name, and finds the host keys that are known.
func New(hosts []config.Host, o Options) (*Hosts, error) {
	var files []string
	for _, file := range o.KnownHosts {
		if _, err := os.Stat(file); err == nil {
			files = append(files, file)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("known hosts: %w", err)
		}
	}
	o.KnownHosts = files
	var known *knownhosts.HostKeyDB
	if len(files) > 0 {
		var err error
		if known, err = knownhosts.NewDB(files...); err != nil {
			return nil, fmt.Errorf("known hosts: %w", err)
		}
	}
	h := &Hosts{options: o, byName: make(map[string]*entry, len(hosts))}
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
		if e.pin == "" && known != nil {
			e.pin = pinOf(known.HostKeys(endpoint(declared)))
		}
		h.byName[declared.Name] = e
	}
	return h, errors.Join(errs...)
}

func endpoint(h config.Host) string { return net.JoinHostPort(h.Address, strconv.Itoa(int(h.Port))) }

// pinOf is the key to pin of those that are known for a host: the one that a host with several would show us first.
func pinOf(keys []knownhosts.PublicKey) string {
	for _, kind := range []string{cryptossh.KeyAlgoED25519, cryptossh.KeyAlgoECDSA256, cryptossh.KeyAlgoECDSA384, cryptossh.KeyAlgoECDSA521, cryptossh.KeyAlgoRSA} {
		for _, key := range keys {
			if key.Type() == kind && !key.Cert {
				return line(key)
			}
		}
	}
	return ""
}

// line is a key as in authorized_keys, without a comment.
func line(key cryptossh.PublicKey) string {
	return strings.TrimSpace(string(cryptossh.MarshalAuthorizedKey(key)))
}

// Dial connects to a host. Errors are those of ssh.Dial.
func (h *Hosts) Dial(ctx context.Context, name string) (host.Host, error) {
	e, found := h.byName[name]
	if !found {
		return nil, &host.Error{Kind: host.KindInvalid, Host: name, Message: "it is not known how to reach it", Remedy: "give the config file that has it (-f)"}
	}
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
	if pin := e.hostKey(); pin != "" {
		c.HostKey = ssh.HostKey{Pinned: []string{pin}}
	} else {
		c.HostKey = h.unknown(e)
	}
	connected, err := ssh.Dial(ctx, c)
	if err != nil {
		var e *host.Error
		if errors.As(err, &e) && e.Kind == host.KindHostKey && e.Remedy != "" && c.HostKey.Pinned == nil {
			e.Remedy = "compare it with the host's own (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), then set hostKey, add it to known_hosts, or give --accept-new-host-keys"
		}
		return nil, err
	}
	return connected, nil
}

// unknown is the policy for a host that nobody knows.
func (h *Hosts) unknown(e *entry) ssh.HostKey {
	return ssh.HostKey{KnownHosts: h.options.KnownHosts, AcceptNew: func(key cryptossh.PublicKey) error {
		if h.options.AcceptNew == "" {
			return errors.New("nobody knows it")
		}
		if err := h.record(endpoint(e.Host), key); err != nil {
			return err
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.pin = line(key)
		return nil
	}}
}

func (e *entry) hostKey() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.pin
}

// record adds a key to the file for keys that were accepted.
func (h *Hosts) record(endpoint string, key cryptossh.PublicKey) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(h.options.AcceptNew), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.options.AcceptNew, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, knownhosts.Line([]string{endpoint}, key))
	return errors.Join(err, f.Close())
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
