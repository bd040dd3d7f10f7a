// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup is what is done with backups of etcd outside of the hosts that save them: they are fetched from hosts, listed and
// verified, stored in a bucket, and kept as many as should be; and they are read where they lie, to be restored from there.
package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/atomicfile"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Manifest is what is said of a snapshot beside it. Hosts write it.
type Manifest struct {
	// Cluster is whose etcd it is of, and Authority the fingerprint of that cluster's certificate authority.
	Cluster           string `json:"cluster"`
	Authority         string `json:"authority"`
	KubernetesVersion string `json:"kubernetesVersion"`
	EtcdVersion       string `json:"etcdVersion"`
	EtcdClusterID     string `json:"etcdClusterID"`
	// Host is the member's that gave it.
	Host     string    `json:"host"`
	Time     time.Time `json:"time"`
	Revision int64     `json:"revision"`
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256"`
}

const (
	snapshotEnding = ".db"
	manifestEnding = ".json"
)

// Backup is one that is whole, in a directory of this machine.
type Backup struct {
	Manifest
	// Name is that of its files, without their endings.
	Name string `json:"name"`
	// Path is the snapshot's.
	Path string `json:"path"`
}

var digest = regexp.MustCompile(`^[0-9a-f]{64}$`)

func parse(content []byte) (Manifest, error) {
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, errors.New("it is no manifest of a backup: " + err.Error()) // not wrapped: its unexpected EOF is not that of a connection
	}
	if m.Cluster == "" || m.Authority == "" || m.Size <= 0 || m.Revision <= 0 || !digest.MatchString(m.SHA256) {
		return m, errors.New("it is no manifest of a backup: cluster, authority, size, revision or sha256 is missing or wrong")
	}
	return m, nil
}

// Read reads the manifest of the snapshot at a path, and verifies that the snapshot is what it says. The error wraps fs.ErrNotExist where
// there is no manifest.
func Read(path string) (Manifest, error) {
	at := strings.TrimSuffix(path, snapshotEnding) + manifestEnding
	content, err := os.ReadFile(at)
	if err != nil {
		return Manifest{}, err
	}
	m, err := parse(content)
	if err != nil {
		return m, fmt.Errorf("%s: %w", at, err)
	}
	sum, size, err := Sum(path)
	if err != nil {
		return m, err
	}
	if size != m.Size || sum != m.SHA256 {
		return m, fmt.Errorf("%s is damaged: it has %d bytes with the sum %s, and %s says %d and %s", path, size, sum, at, m.Size, m.SHA256)
	}
	return m, nil
}

// Sum is the SHA-256 of a file, in hexadecimal digits, and its size.
func Sum(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }() // only read
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// List are the backups in a directory that are whole, the newest first. A directory that is not there has none.
func List(dir string) ([]Backup, error) {
	found, err := filepath.Glob(filepath.Join(dir, "etcd-*"+manifestEnding))
	if err != nil {
		return nil, err
	}
	var all []Backup
	for _, at := range found {
		content, err := os.ReadFile(at)
		if err != nil {
			return nil, err
		}
		path := strings.TrimSuffix(at, manifestEnding) + snapshotEnding
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		m, err := parse(content)
		if err != nil || m.Size != info.Size() {
			continue // of somebody else, or not whole
		}
		all = append(all, Backup{Manifest: m, Name: strings.TrimSuffix(filepath.Base(at), manifestEnding), Path: path})
	}
	slices.SortFunc(all, func(a, b Backup) int { return b.Time.Compare(a.Time) })
	return all, nil
}

// surplus are the backups of a cluster that are more than should be kept, out of all, the newest of which are first. The one that was just
// saved is one of those that are kept, although a clock may say that it is older than others: whoever asked for it would have none.
func surplus(all []Backup, cluster, authority, saved string, keep int) []Backup {
	if keep == 0 {
		return nil
	}
	of := slices.DeleteFunc(all, func(b Backup) bool { return b.Cluster != cluster || b.Authority != authority || b.Name == saved })
	return of[min(keep-1, len(of)):]
}

// Prune removes all but the newest backups of a cluster in a directory; keep 0 keeps all. The one with the name saved, which was just saved
// there, is one of those that stay. Others' stay, and what is not whole.
func Prune(dir, cluster, authority, saved string, keep int) error {
	all, err := List(dir)
	if err != nil {
		return err
	}
	var failed error
	for _, old := range surplus(all, cluster, authority, saved, keep) {
		failed = errors.Join(failed, os.Remove(strings.TrimSuffix(old.Path, snapshotEnding)+manifestEnding), os.Remove(old.Path))
	}
	return failed
}

// chunk is how much of a snapshot one exchange brings.
const chunk = 1 << 20

// Fetch copies the backup whose snapshot is at a path on a host to a directory of this machine, and verifies it. It is there under its
// name when all of it is.
func Fetch(ctx context.Context, h host.Host, path, dir string) (Backup, error) {
	name := strings.TrimSuffix(filepath.Base(path), snapshotEnding)
	text, err := read(ctx, h, "cat", strings.TrimSuffix(path, snapshotEnding)+manifestEnding)
	if err != nil {
		return Backup{}, fmt.Errorf("the backup %s is not fetched: %w", name, err)
	}
	return take(h.Name(), dir, name, text, func(w io.Writer, size int64) error {
		for at := int64(0); at*chunk < size; at++ {
			part, err := readPart(ctx, h, path, at)
			if err != nil {
				return err
			}
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return nil
	})
}

// take writes a backup that is elsewhere into a directory of this machine, and verifies it. text is its manifest; content writes the
// snapshot, which should have this size.
func take(where, dir, name string, text []byte, content func(w io.Writer, size int64) error) (Backup, error) {
	b := Backup{Name: name, Path: filepath.Join(dir, name+snapshotEnding)}
	var err error
	if b.Manifest, err = parse(text); err != nil {
		return b, fmt.Errorf("the backup %s on %s: %w", name, where, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return b, err
	}
	err = atomicfile.Write(b.Path, 0o600, func(f *os.File) error {
		sum := sha256.New()
		if err := content(io.MultiWriter(f, sum), b.Size); err != nil {
			return fmt.Errorf("the backup %s is not fetched: %w", name, err)
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != b.SHA256 {
			return fmt.Errorf("the backup %s came from %s with the sum %s, and should have %s: it is damaged there", name, where, got, b.SHA256)
		}
		return nil
	})
	if err != nil {
		return b, err
	}
	return b, atomicfile.WriteBytes(filepath.Join(dir, name+manifestEnding), 0o600, text)
}

// read is what a command on a host prints.
func read(ctx context.Context, h host.Host, argv ...string) ([]byte, error) {
	r, err := h.Exec(ctx, host.Command{Argv: argv, Timeout: 5 * time.Minute})
	if err != nil {
		return nil, err
	}
	if r.ExitCode != 0 {
		return nil, fmt.Errorf("host %s: %s: %s", h.Name(), argv[0], host.Text(string(r.Stderr), 300))
	}
	return r.Stdout, nil
}
