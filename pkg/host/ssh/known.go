// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// ErrUnknownKey refuses the key of a host that nobody knows. It is for AcceptNew; see Refuse.
var ErrUnknownKey = errors.New("it is neither pinned nor in known_hosts")

// Refuse is the AcceptNew of callers who accept nothing and want to tell such a refusal from others.
func Refuse(ssh.PublicKey) error { return ErrUnknownKey }

// Known is what known_hosts files say. The nil Known knows nobody.
type Known struct{ db *knownhosts.HostKeyDB }

// ReadKnown reads files in OpenSSH's format, all of which must be there.
func ReadKnown(files ...string) (*Known, error) {
	if len(files) == 0 {
		return nil, nil
	}
	db, err := knownhosts.NewDB(files...)
	if err != nil {
		return nil, fmt.Errorf("known_hosts: %w", err)
	}
	return &Known{db: db}, nil
}

// Pin is the key to pin for the host at c, as in authorized_keys, or "" if it is not known: of several keys the one that
// the host would be asked for first.
func (k *Known) Pin(c Config) string {
	if k == nil {
		return ""
	}
	known := k.db.HostKeys(c.withDefaults().endpoint())
	for _, t := range keyTypes {
		for _, key := range known {
			if key.Type() == t && !key.Cert {
				return authorizedLine(key)
			}
		}
	}
	return ""
}

func authorizedLine(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// lookUp asks known_hosts files about the key that the host called hostname, with its port, shows. The error is as of the library, which
// cannot find what a pattern with * has for an IPv6 address with another port than 22: it drops the brackets and the port, as OpenSSH does,
// and asks about something that is no address.
func lookUp(db *knownhosts.HostKeyDB, hostname string, remote net.Addr, key ssh.PublicKey) error {
	err := db.HostKeyCallback()(hostname, remote, key)
	address, port, split := net.SplitHostPort(hostname)
	var other *xknownhosts.KeyError
	var revoked *xknownhosts.RevokedError
	if err == nil || errors.As(err, &other) || errors.As(err, &revoked) || split != nil || port == "22" || !strings.Contains(address, ":") {
		return err
	}
	err = db.HostKeyCallback()(net.JoinHostPort(address, "22"), remote, key)
	if errors.As(err, &other) {
		return &xknownhosts.KeyError{Want: slices.DeleteFunc(other.Want, func(k xknownhosts.KnownKey) bool { return !hasPattern(k) })}
	}
	return err
}

// hasPattern reports whether the line that has a key is for a pattern with *, whatever the port: the others are for port 22.
func hasPattern(k xknownhosts.KnownKey) bool {
	content, err := os.ReadFile(k.Filename)
	if err != nil {
		return true // as far as anyone knows: the key is refused then
	}
	lines := strings.Split(string(content), "\n")
	if k.Line < 1 || k.Line > len(lines) {
		return true
	}
	line := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(lines[k.Line-1]), "@cert-authority"))
	hosts, _, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	_, after, found := strings.Cut(hosts, "*")
	return found && !strings.Contains(after, "]:")
}

// Recorder adds keys that were accepted to a known_hosts file, which it makes when it is not there. Of one machine, such as a jump host
// that is dialled for many hosts at once, it accepts one key. It is safe for concurrent use.
type Recorder struct {
	File string
	mu   sync.Mutex
	// added are the keys by where they were accepted.
	added map[string]ssh.PublicKey
}

// Accept is an AcceptNew for the host at c. It tells, if told is not nil, the key as in authorized_keys.
func (r *Recorder) Accept(c Config, told func(line string)) func(ssh.PublicKey) error {
	return func(key ssh.PublicKey) error {
		if err := r.add(c.withDefaults().endpoint(), key); err != nil {
			return fmt.Errorf("remember it: %w", err)
		}
		if told != nil {
			told(authorizedLine(key))
		}
		return nil
	}
}

func (r *Recorder) add(endpoint string, key ssh.PublicKey) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before := r.added[endpoint]; before != nil {
		if !bytes.Equal(before.Marshal(), key.Marshal()) {
			return fmt.Errorf("the key %s was accepted there just now", ssh.FingerprintSHA256(before))
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(r.File), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(r.File, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, knownhosts.Line([]string{endpoint}, key))
	if err = errors.Join(err, f.Close()); err == nil {
		if r.added == nil {
			r.added = map[string]ssh.PublicKey{}
		}
		r.added[endpoint] = key
	}
	return err
}
