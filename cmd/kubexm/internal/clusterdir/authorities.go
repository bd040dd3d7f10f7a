// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

const secretsDir = "secrets"

// MissingAuthoritiesError says that a cluster of which something is known lacks key pairs. They are never made anew then: hosts that
// run would be cut off from each other.
type MissingAuthoritiesError struct {
	// Cluster is the cluster's name, and Dir its directory.
	Cluster, Dir string
	// Files are the files that are missing, relative to Dir.
	Files []string
	// Found is what is known of the cluster, relative to Dir.
	Found []string
}

// Error names the files, what else is there, and what to do.
func (e *MissingAuthoritiesError) Error() string {
	return fmt.Sprintf("key pairs of cluster %s are missing in %s: %s. The cluster is known (%s), so no others are made: hosts that run "+
		"would lose each other. Restore the files from a backup, or read them back from a control plane host: "+
		"kubexm certs recover %s -f config.yaml",
		e.Cluster, e.Dir, strings.Join(e.Files, ", "), strings.Join(e.Found, ", "), e.Cluster)
}

// Authorities reads the cluster's certificate authorities and service account keys, and the encryption key if there is one. The error is
// a *MissingAuthoritiesError if one is not there; an encryption key must be there if the cluster encrypts, as encrypted says, or as was
// remembered.
func (d Dir) Authorities(encrypted bool) (pki.Authorities, error) {
	a, missing, err := d.ReadAuthorities()
	if err == nil && a.Encryption.IsZero() {
		var known *Inventory
		if known, err = d.Inventory(); encrypted || known != nil && known.Encryption.IsOn() {
			missing = append(missing, filepath.Join(secretsDir, encryptionFile))
		}
	}
	switch {
	case err != nil:
		return a, d.ofAuthorities(err)
	case len(missing) > 0:
		found, err := d.known()
		if err != nil {
			return a, d.ofAuthorities(err)
		}
		if len(found) == 0 {
			found = []string{"nothing else"}
		}
		return a, &MissingAuthoritiesError{Cluster: d.Cluster, Dir: d.path, Files: missing, Found: found}
	}
	if err := a.Check(time.Now()); err != nil {
		return a, d.ofAuthorities(err)
	}
	return a, nil
}

// CheckAuthorities is the error of Authorities, if anything is known of the cluster.
func (d Dir) CheckAuthorities(encrypted bool) error {
	known, err := d.Known()
	if err == nil && known {
		_, err = d.Authorities(encrypted)
	}
	return err
}

// EnsureAuthorities is Authorities, but for a cluster of which nothing is known: all pairs are made then as ca says, and an encryption key
// if encrypted says so, at once or not at all. It is called with the lock held.
func (d Dir) EnsureAuthorities(ca pki.CARequest, encrypted bool) (pki.Authorities, error) {
	if known, err := d.Known(); err != nil {
		return pki.Authorities{}, d.ofAuthorities(err)
	} else if known {
		return d.Authorities(encrypted)
	}
	a, err := pki.NewAuthorities(ca)
	if encrypted {
		a.CompleteEncryption()
	}
	if err == nil {
		err = d.writeAll(a)
	}
	if err != nil {
		return a, d.ofAuthorities(err)
	}
	return d.Authorities(encrypted)
}

// encryptionFile has the encryption key, in base64 and without a line's end.
const encryptionFile = pki.EncryptionName + ".key"

// ReadAuthorities reads the pairs that are whole, and says which files are missing. A pair of which one file is missing is left out. An
// encryption key is read if it is there, and never missing.
func (d Dir) ReadAuthorities() (a pki.Authorities, missing []string, err error) {
	for _, name := range AuthorityNames() {
		pair := pki.KeyPair{}
		key, err := d.Read(secretsDir, name+".key")
		if err != nil {
			return a, nil, err
		}
		if pair.Cert, err = d.Read(secretsDir, name+".crt"); err != nil {
			return a, nil, err
		}
		pair.Key = secret.New(key)
		if len(pair.Cert) > 0 && len(key) > 0 {
			a.Set(name, pair)
			continue
		}
		if len(pair.Cert) == 0 {
			missing = append(missing, filepath.Join(secretsDir, name+".crt"))
		}
		if len(key) == 0 {
			missing = append(missing, filepath.Join(secretsDir, name+".key"))
		}
	}
	key, err := d.Read(secretsDir, encryptionFile)
	a.Encryption.Key = secret.New(key)
	return a, missing, err
}

// WriteAuthority replaces one pair, or the encryption key: the key first, so that a certificate is never there without it.
func (d Dir) WriteAuthority(name string, pair pki.KeyPair) error {
	if err := d.Write(pair.Key.Reveal(), secretsDir, name+".key"); err != nil {
		return d.ofAuthorities(err)
	}
	if name == pki.EncryptionName {
		return nil
	}
	if err := d.Write(pair.Cert, secretsDir, name+".crt"); err != nil {
		return d.ofAuthorities(err)
	}
	return nil
}

// writeAll writes all pairs beside their place and moves them there together: a process that is killed leaves none.
func (d Dir) writeAll(a pki.Authorities) error {
	if err := d.Make(); err != nil {
		return err
	}
	made, err := os.MkdirTemp(d.path, unfinished+"*") // 0700
	if err != nil {
		return err
	}
	for _, name := range AuthorityNames() {
		pair, _ := a.Get(name)
		err = errors.Join(err,
			d.Write(pair.Key.Reveal(), filepath.Base(made), name+".key"),
			d.Write(pair.Cert, filepath.Base(made), name+".crt"))
	}
	if key := a.Encryption.Key; !key.IsZero() {
		err = errors.Join(err, d.Write(key.Reveal(), filepath.Base(made), encryptionFile))
	}
	if err == nil {
		// There is nothing of use in it, or the cluster would be known; and a directory is not renamed over one that is there.
		err = os.RemoveAll(d.Path(secretsDir))
	}
	if err == nil {
		err = os.Rename(made, d.Path(secretsDir))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(made))
	}
	return nil
}

func (d Dir) ofAuthorities(err error) error {
	return fmt.Errorf("certificate authorities of cluster %s in %s: %w", d.Cluster, d.Path(secretsDir), err)
}

// unfinished begins the names of what a process that was killed has left.
const unfinished = ".tmp-"

// Known reports whether anything is kept of the cluster: a key pair or half of one, an inventory, a kubeconfig, a management plane. What
// a command leaves before it has changed anything does not count: its lock, and keys of hosts. Nor do backups, which outlive a cluster.
func (d Dir) Known() (bool, error) {
	found, err := d.known()
	return len(found) > 0, err
}

func (d Dir) known() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		switch name := e.Name(); {
		case name == lockFile || name == knownHostsFile || name == backupsDir || strings.HasPrefix(name, unfinished):
		case name == secretsDir:
			inside, err := os.ReadDir(d.Path(secretsDir))
			if err != nil {
				return nil, err
			}
			for _, e := range inside {
				if !strings.HasPrefix(e.Name(), unfinished) {
					found = append(found, filepath.Join(secretsDir, e.Name()))
				}
			}
		default:
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, nil
}

// AuthorityNames are the names of a cluster's key pairs, as Cluster API has them. The encryption key is none.
func AuthorityNames() []string {
	return []string{pki.ClusterName, pki.EtcdName, pki.FrontProxyName, pki.ServiceAccountName}
}

// HasAuthorities reports whether all of the cluster's key pairs are here.
func (d Dir) HasAuthorities() bool {
	_, missing, err := d.ReadAuthorities()
	return err == nil && len(missing) == 0
}
