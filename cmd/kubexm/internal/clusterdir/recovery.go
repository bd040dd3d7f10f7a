// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
)

// recovering has, below the root, what is read back of clusters whose state is lost. It is no cluster's name.
const recovering = ".recovering"

// KnownError refuses to write a state over what there is of it.
type KnownError struct {
	Cluster, Dir string
	// Found is what is known of the cluster, relative to Dir.
	Found []string
	// Missing is what is not, in the words of who reads.
	Missing []string
}

// Error names what is there and, where that is not all, what completes it.
func (e *KnownError) Error() string {
	text := fmt.Sprintf("there is a state of cluster %s in %s (%s), and it is not overwritten", e.Cluster, e.Dir, strings.Join(e.Found, ", "))
	switch {
	case slices.Contains(e.Missing, secretsDir):
		return text + fmt.Sprintf(": its key pairs are incomplete: read them back with: kubexm certs recover %s -f config.yaml", e.Cluster)
	case len(e.Missing) > 0:
		return text + ": what is missing (" + strings.Join(e.Missing, ", ") + ") is written by: kubexm create cluster -f config.yaml"
	}
	return text + ": nothing is missing. If it is of no use, move it away first"
}

// Recovering is where the state of the cluster is gathered that is read back from its hosts. No command takes it for the cluster's.
func (d Dir) Recovering() Dir {
	return Dir{Cluster: d.Cluster, path: filepath.Join(filepath.Dir(d.path), recovering, d.Cluster)}
}

// CheckUnknown returns a *KnownError if anything is kept of the cluster.
func (d Dir) CheckUnknown() error {
	found, err := d.known()
	if err != nil || len(found) == 0 {
		return err
	}
	known := &KnownError{Cluster: d.Cluster, Dir: d.path, Found: found}
	if !d.HasAuthorities() {
		known.Missing = append(known.Missing, secretsDir)
	}
	if i, err := d.Inventory(); err != nil || i == nil {
		known.Missing = append(known.Missing, inventoryFile)
	}
	return known
}

// Recovery is a state that is gathered, in a directory of its own, until it is moved to the cluster's.
type Recovery struct {
	Dir
	to     Dir
	unlock func()
	moved  bool
}

// BeginRecovery makes and locks the directory where the state is gathered, and clears it of what a process that was killed has left
// there; keys of hosts that were accepted stay, and those that d has are added. End must be called.
func (d Dir) BeginRecovery() (*Recovery, error) {
	r := &Recovery{Dir: d.Recovering(), to: d}
	var err error
	if r.unlock, err = r.Lock(); err != nil {
		return nil, err
	}
	if err := errors.Join(r.clear(), r.addKnownHosts(d)); err != nil {
		r.unlock()
		return nil, fmt.Errorf("%s: %w", r.path, err)
	}
	return r, nil
}

// End leaves nothing of a state that was not moved but keys of hosts, if any were accepted.
func (r *Recovery) End() {
	defer r.unlock()
	if r.moved || r.clear() != nil {
		return
	}
	if keys, err := r.Read(knownHostsFile); err == nil && keys == nil {
		_, _ = r.Remove()
		_ = os.Remove(filepath.Dir(r.path)) // unless another cluster's is there
	}
}

// clear removes all but the lock, the keys of hosts and backups of etcd.
func (d Dir) clear() error {
	entries, err := os.ReadDir(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if name := e.Name(); name != lockFile && name != knownHostsFile && name != backupsDir {
			err = errors.Join(err, os.RemoveAll(d.Path(name)))
		}
	}
	return err
}

// addKnownHosts adds the keys of hosts that another directory has.
func (d Dir) addKnownHosts(from Dir) error {
	more, err := from.Read(knownHostsFile)
	if err != nil || len(more) == 0 {
		return err
	}
	own, err := d.Read(knownHostsFile)
	if err != nil {
		return err
	}
	all := bytes.Clone(own)
	for line := range bytes.Lines(more) {
		if line = append(bytes.TrimSuffix(bytes.Clone(line), []byte("\n")), '\n'); !bytes.Contains(all, line) {
			all = append(all, line...)
		}
	}
	return d.Write(all, knownHostsFile)
}

// Move moves what was gathered to where the cluster's state is, all at once: whenever a process is killed, that has all of it or is as it
// was. The error is a *KnownError if anything is kept of the cluster by now, and a *LockedError if another command is at work there.
func (r *Recovery) Move() error {
	if r.to.Exists() {
		unlock, err := r.to.Lock()
		if err != nil {
			return err
		}
		defer unlock()
		if err := r.to.CheckUnknown(); err != nil {
			return err
		}
		if err := r.addKnownHosts(r.to); err != nil {
			return err
		}
		if err := os.Rename(r.to.Backups(), r.Backups()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("backups of cluster %s: %w", r.Cluster, err)
		}
		// A directory is not renamed over one that has anything in it, such as what another process has made by then.
		if _, err := r.to.Remove(); err != nil {
			return err
		}
	}
	if err := os.Rename(r.path, r.to.path); err != nil {
		return fmt.Errorf("state of cluster %s: %w", r.Cluster, err)
	}
	r.moved = true
	_ = os.Remove(filepath.Dir(r.path)) // unless another cluster's is there
	return nil
}

// WriteAuthorities writes all key pairs and, if there is one, the encryption key: at once or not at all. What was there is replaced.
func (d Dir) WriteAuthorities(a pki.Authorities) error {
	if err := d.writeAll(a); err != nil {
		return d.ofAuthorities(err)
	}
	return nil
}
