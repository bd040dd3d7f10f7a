// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/backup"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// restoreOptions are the flags of "etcd restore".
type restoreOptions struct {
	source
	store
	from, ofCluster        string
	withoutManifest, again bool
	dryRun, yes            bool
}

func (a *app) etcdRestore() *cobra.Command {
	o := &restoreOptions{}
	cmd := &cobra.Command{
		Use:   "restore -f config.yaml --from BACKUP",
		Short: "Restore etcd from a backup, on all its hosts",
		Long: `Restores the cluster from a backup: all that was written later is lost, and the API is away until it is done. Pods go on; those that the
backup does not know are ended, and those that it knows and that are gone are made again.

The snapshot is sent to all hosts first. Then all API servers end, etcd ends, its data is set aside (replaced.ID in the data directory) and
restored as a new etcd cluster of all declared hosts, and all is started again. When a run is interrupted or fails, the same command
resumes; until it is done, kubexm create cluster changes none of these hosts' etcd.

BACKUP is a snapshot's file on this machine, HOST:PATH on one of the hosts, or s3://BUCKET/PREFIX/NAME.db. Beside it must be its manifest, which says whose it is.`,
		Example: "  kubexm etcd restore -f config.yaml --from .kubexm/prod/etcd-backups/etcd-prod-20261123T210000Z-cp1.db\n" +
			"  kubexm etcd restore -f config.yaml --from cp1:" + pipeline.BackupDir + "/etcd-prod-20261123T210000Z-cp1.db --dry-run",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.restoreEtcd(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "file", "f", "", "the config file that declares the cluster")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml") // the flag is there
	o.addKeyFlags(cmd)
	o.addSerialFlag(cmd)
	flags.StringVar(&o.from, "from", "", "the snapshot: a file on this machine, HOST:PATH, or s3://BUCKET/PREFIX/NAME.db")
	o.addStoreFlags(flags)
	flags.StringVar(&o.ofCluster, "of-cluster", "", "take the backup of the cluster with this name, which is another one or had other certificate authorities")
	flags.BoolVar(&o.withoutManifest, "without-manifest", false, "take a snapshot of which nothing says whose it is")
	flags.BoolVar(&o.again, "again", false, "start over an interrupted restore of the same snapshot, instead of resuming it")
	flags.BoolVar(&o.dryRun, "dry-run", false, "fetch the backup, show what would be done, and change no host")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return cmd
}

// underWay is a restore that has begun, as the cluster's state remembers it.
type underWay struct {
	ID     string    `json:"id"`
	SHA256 string    `json:"sha256"`
	Asked  time.Time `json:"asked"`
	// Members are the hosts that it restores: with others, it is another one.
	Members []string `json:"members"`
}

const underWayFile = "etcd-restore.json"

func (a *app) restoreEtcd(ctx context.Context, o *restoreOptions) error {
	began := time.Now()
	if o.from == "" {
		return usage("give the backup: --from FILE, --from HOST:PATH, or --from s3://BUCKET/PREFIX/NAME.db (kubexm etcd backups list)")
	}
	m, err := a.membersOf(&o.source)
	if err != nil {
		return err
	}
	unlock, err := m.dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	file, err := m.snapshot(ctx, &o.store, o.from)
	if err != nil {
		return err
	}
	sum, size, err := a.fitting(m, o, file)
	if err != nil {
		return err
	}
	run, resumed, err := beginRestore(m, sum, o.again)
	if err != nil {
		return err
	}
	p, err := pipeline.RestoreEtcd(m.Name, m.targets, component.Restore{Digest: "sha256:" + sum, Size: size, ID: run.ID, Asked: run.Asked})
	if err != nil {
		return err
	}
	if o.dryRun {
		return a.showSteps(p)
	}
	if !o.yes {
		what := fmt.Sprintf("%s: all that was written after %s was saved will be lost, and the API is away until it is restored.", m.Name, path.Base(file))
		if err := a.confirm(ctx, what); err != nil {
			return err
		}
	}
	if resumed {
		a.note(fmt.Sprintf("The restore %s that began at %s goes on.", run.ID, run.Asked.Format(time.RFC3339)))
	}
	text, err := json.Marshal(run)
	if err != nil {
		return err
	}
	if err := m.dir.Write(append(text, '\n'), underWayFile); err != nil {
		return err
	}
	return a.showing(m.about, func(reader event.Reader) (string, error) {
		tools := m.tools(reader, file)
		tools.Trust = &planner.Trust{Cluster: m.Name, Server: planner.Server(m.Cluster)}
		var err error
		if tools.Trust.Authorities, err = m.dir.Authorities(false); err != nil {
			return "", err
		}
		if err := a.guard(m.dir, tools, o.stateIsCurrent).Begin(ctx, nil); err != nil {
			return "", err
		}
		if _, err := tools.Engine().Run(ctx, p); err != nil {
			return "", fmt.Errorf("%w\nThe restore is under way on the hosts: the same command goes on with it", err)
		}
		if err := os.Remove(m.dir.Path(underWayFile)); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s has etcd as in %s: %s restored in %s.", m.Name, path.Base(file), count(len(m.have()), "member"),
			seconds(time.Since(began))), nil
	})
}

// snapshot is the file on this machine of what is restored. What is on a host or in a bucket is fetched.
func (m *members) snapshot(ctx context.Context, s *store, from string) (string, error) {
	if strings.HasPrefix(from, backup.Scheme) {
		place, name, err := backup.Split(from)
		if err != nil {
			return "", usage("--from: %w", err)
		}
		bucket, err := s.bucket("--from", place)
		if err != nil {
			return "", err
		}
		fetched, err := bucket.Get(ctx, name, m.dir.Backups())
		return fetched.Path, err
	}
	name, at, onHost := strings.Cut(from, ":")
	if !onHost || strings.Contains(name, "/") {
		info, err := os.Stat(from)
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("it is no file")
		}
		if err != nil {
			return "", usage("--from: %w", err)
		}
		return from, nil
	}
	if !slices.ContainsFunc(m.Hosts, func(h config.Host) bool { return h.Name == name }) || !path.IsAbs(at) {
		return "", usage("--from: %s is neither a file on this machine nor a host of %s and an absolute path there", from, m.Name)
	}
	fetched, err := m.fetch(ctx, name, at, m.dir.Backups())
	return fetched.Path, err
}

// fitting refuses a snapshot that is damaged, or that is not this cluster's.
func (a *app) fitting(m *members, o *restoreOptions, file string) (sum string, size int64, err error) {
	is, err := backup.Read(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.withoutManifest:
		a.warn("nothing says whose snapshot " + file + " is")
		return backup.Sum(file)
	case errors.Is(err, fs.ErrNotExist):
		return "", 0, usage("--from: %w: nothing says whose snapshot %s is. To take it all the same, add --without-manifest", err, file)
	case err != nil:
		return "", 0, usage("--from: %w", err)
	}
	authority, err := m.dir.Authority()
	if err != nil {
		return "", 0, err
	}
	err = is.Fits(backup.Wanted{
		Cluster: m.Name, Authority: authority, KubernetesVersion: m.KubernetesVersion, OfCluster: o.ofCluster, Override: "--of-cluster",
	})
	if err != nil {
		return "", 0, usage("--from: %s: %w", file, err)
	}
	return is.SHA256, is.Size, nil
}

// beginRestore is the restore of a snapshot on the same hosts that was cut, if there is one, or else another one.
func beginRestore(m *members, sum string, again bool) (run underWay, resumed bool, err error) {
	var names []string
	for _, t := range m.have() {
		names = append(names, t.Host.Name)
	}
	text, err := m.dir.Read(underWayFile)
	if err != nil {
		return run, false, err
	}
	if len(text) > 0 && !again {
		if err := json.Unmarshal(text, &run); err != nil {
			return run, false, fmt.Errorf("%s: %w: start over with --again", m.dir.Path(underWayFile), err)
		}
		if run.SHA256 == sum && slices.Equal(run.Members, names) {
			return run, true, nil
		}
	}
	id := make([]byte, 8)
	_, _ = rand.Read(id) // it never fails
	return underWay{ID: hex.EncodeToString(id), SHA256: sum, Asked: time.Now().UTC(), Members: names}, false, nil
}
