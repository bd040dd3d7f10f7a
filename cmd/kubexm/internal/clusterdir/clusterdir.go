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

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/atomicfile"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Root is where clusters are kept, relative to the working directory, unless a flag says otherwise.
const Root = ".kubexm"

// Files that a command leaves before it has changed anything.
const (
	lockFile       = "lock"
	knownHostsFile = "known_hosts"
)

// backupsDir has the backups of etcd that were fetched. They outlive the cluster.
const backupsDir = "etcd-backups"

// Dir is one cluster's directory. It need not exist.
type Dir struct {
	// Cluster is the cluster's name.
	Cluster string
	path    string
}

// Of is the directory of a cluster below root. A name that no cluster can have is refused.
func Of(root, cluster string) (Dir, error) {
	if errs := spec.ValidateClusterName(cluster, field.NewPath("name")); len(errs) > 0 {
		return Dir{}, errs.ToAggregate()
	}
	return Dir{Cluster: cluster, path: filepath.Join(root, cluster)}, nil
}

// List returns the clusters below root, by name. Directories without an inventory are none.
func List(root string) ([]Dir, error) {
	found, err := filepath.Glob(filepath.Join(root, "*", inventoryFile))
	if err != nil {
		return nil, err
	}
	dirs := make([]Dir, 0, len(found))
	for _, file := range found {
		path := filepath.Dir(file)
		dirs = append(dirs, Dir{Cluster: filepath.Base(path), path: path})
	}
	slices.SortFunc(dirs, func(a, b Dir) int { return strings.Compare(a.Cluster, b.Cluster) })
	return dirs, nil
}

// Path is the path of a file or directory in d.
func (d Dir) Path(name ...string) string { return filepath.Join(append([]string{d.path}, name...)...) }

// Plane is the directory of the embedded management plane.
func (d Dir) Plane() string { return d.Path("plane") }

// Kubeconfig is the path of the cluster's kubeconfig.
func (d Dir) Kubeconfig() string { return d.Path("kubeconfig") }

// KnownHosts is the path of the host keys that were accepted.
func (d Dir) KnownHosts() string { return d.Path(knownHostsFile) }

// Backups is the directory of the backups of etcd that were fetched. It stays when the cluster is deleted.
func (d Dir) Backups() string { return d.Path(backupsDir) }

// Exists reports whether d is there.
func (d Dir) Exists() bool {
	info, err := os.Stat(d.path)
	return err == nil && info.IsDir()
}

// Make makes d, or what is missing of it.
func (d Dir) Make() error {
	if err := errors.Join(os.MkdirAll(d.path, 0o700), os.Chmod(d.path, 0o700)); err != nil {
		return fmt.Errorf("state of cluster %s: %w", d.Cluster, err)
	}
	return nil
}

// Remove removes d with all that is in it but backups of etcd: they may be all that is left of what was in a cluster. It reports whether
// there are any.
func (d Dir) Remove() (kept bool, err error) {
	if err := d.clear(); err != nil {
		return false, err
	}
	for _, name := range []string{knownHostsFile, lockFile} { // whose lock is held goes last
		if err := os.RemoveAll(d.Path(name)); err != nil {
			return false, err
		}
	}
	_ = os.Remove(d.Backups()) // if nothing is in it
	err = os.Remove(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, unix.ENOTEMPTY):
		return true, nil
	}
	return false, err
}

// Read returns the content of a file in d, nil if it is not there.
func (d Dir) Read(name ...string) ([]byte, error) {
	content, err := os.ReadFile(d.Path(name...))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// Write replaces a file in d, which only its owner may read.
func (d Dir) Write(content []byte, name ...string) error {
	path := d.Path(name...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.WriteBytes(path, 0o600, content)
}
