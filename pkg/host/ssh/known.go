// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package ssh

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
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

// Recorder adds keys that were accepted to a known_hosts file, which it makes when it is not there. It is safe for
// concurrent use.
type Recorder struct {
	File string
	mu   sync.Mutex
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
	if err := os.MkdirAll(filepath.Dir(r.File), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(r.File, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, knownhosts.Line([]string{endpoint}, key))
	return errors.Join(err, f.Close())
}
