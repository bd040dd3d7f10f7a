// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/backup"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
)

// backupOptions are the flags of "etcd backup".
type backupOptions struct {
	source
	store
	host, directory, output, upload string
	keep                            int
	keepSet, hostOnly, dryRun       bool
}

// complete takes from what the config file declares of scheduled backups what no flag says: otherwise this one would lie elsewhere, and
// remove those.
func (o *backupOptions) complete(declared *spec.EtcdBackup) {
	if !o.keepSet {
		o.keep = int(declared.Kept())
	}
	o.directory = cmp.Or(o.directory, declared.Directory)
}

// store is how an object store is reached. Its keys come from the environment or AWS's file of credentials: a flag would be seen by all
// who list processes.
type store struct{ backup.BucketOptions }

func (s *store) addStoreFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.Endpoint, "s3-endpoint", "", "the object store's URL (default AWS's)")
	flags.StringVar(&s.Region, "s3-region", "", "the bucket's region (default us-east-1)")
	flags.StringVar(&s.Authorities, "s3-ca-file", "", "the file with the certificates that the object store is trusted by (default what this machine trusts)")
}

// bucket is the place of a flag.
func (s *store) bucket(flag, at string) (*backup.Bucket, error) {
	b, err := backup.OpenBucket(at, s.BucketOptions)
	if err != nil {
		return nil, usage("%s: %w", flag, err)
	}
	return b, nil
}

func (a *app) etcdBackup() *cobra.Command {
	o := &backupOptions{}
	cmd := &cobra.Command{
		Use:   "backup -f config.yaml",
		Short: "Save a backup of etcd, and fetch it",
		Long: `Saves a snapshot of etcd on the host of a member that answers with quorum, verifies it, and copies it to this machine. Beside each
snapshot (.db) is a manifest (.json): which cluster's it is, at which revision, and its SHA-256. Of the cluster's own backups the last --keep
stay, on the host, here and in the bucket; others' are not touched.

With --upload it is stored in a bucket, too, read back and compared. The keys are those that AWS's own programs use: AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY in the environment, or the file of credentials. Hosts need no way to the object store and have none of its keys.

A backup has all that is in the cluster, Secrets too. Who has Secrets encrypted at rest needs the key beside it (kubexm certs recover).`,
		Example: "  kubexm etcd backup -f config.yaml\n  kubexm etcd backup -f config.yaml --output /mnt/backups --keep 30\n" +
			"  kubexm etcd backup -f config.yaml --upload s3://backups/prod --s3-endpoint https://s3.example:9000",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.keepSet = cmd.Flags().Changed("keep")
			return a.backUpEtcd(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "file", "f", "", "the config file that declares the cluster")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml") // the flag is there
	o.addKeyFlags(cmd)
	flags.StringVar(&o.host, "host", "", "the host of the member whose snapshot is saved (default the first that answers)")
	flags.StringVar(&o.directory, "directory", "", "the directory on the host (default spec.etcd.backup.directory, or "+pipeline.BackupDir+
		", which goes when the host is reset)")
	flags.StringVarP(&o.output, "output", "o", "", "the directory on this machine that it is copied to (default the cluster's state)")
	flags.StringVar(&o.upload, "upload", "", "the bucket that it is stored in, too (s3://BUCKET/PREFIX)")
	o.addStoreFlags(flags)
	flags.BoolVar(&o.hostOnly, "host-only", false, "leave it on the host, and copy nothing")
	flags.IntVar(&o.keep, "keep", 0, "how many of the cluster's backups stay in each of these directories; 0 is all (default "+
		"spec.etcd.backup.keep, or 5)")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what would be done, and do nothing")
	return cmd
}

// members is a cluster whose etcd is backed up or restored.
type members struct {
	*config.Cluster
	dir     clusterdir.Dir
	hosts   *access.Hosts
	targets []spec.Target
}

// membersOf reads the config file. Nothing is touched.
func (a *app) membersOf(s *source) (*members, error) {
	c, err := a.load(s)
	if err != nil {
		return nil, err
	}
	m := &members{Cluster: c}
	if m.dir, err = clusterdir.Of(a.stateRoot, c.Name); err != nil {
		return nil, usageError{err}
	}
	if known, err := m.dir.Known(); err != nil {
		return nil, err
	} else if !known {
		return nil, usage("nothing is known of cluster %s in %s: run this where it was made, or read its key pairs back first (kubexm certs recover)",
			c.Name, a.stateRoot)
	}
	if c.Spec.Etcd.IsExternal() {
		return nil, usage("spec.etcd.type: etcd of %s is external: those who run it back it up and restore it", c.Name)
	}
	if m.targets, err = planner.Targets(c); err != nil {
		return nil, usageError{err}
	}
	m.hosts, err = access.New(c.Hosts, a.trusting(s, m.dir))
	return m, err
}

func (m *members) tools(reader event.Reader, snapshot string) planner.Tools {
	return planner.Tools{Hosts: m.hosts, Owners: owners(m.dir, rolesOf(m.targets), nil), Reader: reader, Snapshot: snapshot}
}

// about says what a host is.
func (m *members) about(name string) string {
	for _, t := range m.targets {
		if t.Host.Name == name {
			return roleName(t.Host.Role)
		}
	}
	return ""
}

// have are the targets that have a member.
func (m *members) have() []spec.Target {
	var all []spec.Target
	for _, t := range m.targets {
		if slices.ContainsFunc(t.EtcdMembers(), func(e spec.Member) bool { return e.Name == t.Host.Name }) {
			all = append(all, t)
		}
	}
	return all
}

// one is the target of the member that is asked for or, if none is, of the first whose host answers.
func (m *members) one(ctx context.Context, name string) (spec.Target, error) {
	all := m.have()
	var names []string
	for _, t := range all {
		if t.Host.Name == name {
			return t, nil
		}
		names = append(names, t.Host.Name)
	}
	if name != "" {
		return spec.Target{}, usage("--host: %s has no member of etcd; the hosts that have are %s", name, strings.Join(names, ", "))
	}
	facts, err := m.tools(nil, "").Engine().Look(ctx, names, func(string) host.Query { return host.Query{} })
	for _, t := range all {
		if f := facts[t.Host.Name]; f != nil && f.Changed() {
			return t, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("none of %s was made a part of the cluster yet: kubexm create cluster", strings.Join(names, ", "))
	}
	return spec.Target{}, err
}

func (a *app) backUpEtcd(ctx context.Context, o *backupOptions) error {
	began := time.Now()
	switch {
	case o.keep < 0:
		return usage("--keep: %d is no number of backups", o.keep)
	case o.directory != "" && (!path.IsAbs(o.directory) || path.Clean(o.directory) != o.directory || o.directory == "/"):
		return usage("--directory: %s is no absolute path of a directory", o.directory)
	case o.hostOnly && o.output != "":
		return usage("--output and --host-only exclude each other")
	case o.hostOnly && o.upload != "":
		return usage("--upload and --host-only exclude each other")
	}
	var bucket *backup.Bucket
	if o.upload != "" {
		var err error
		if bucket, err = o.bucket("--upload", o.upload); err != nil {
			return err
		}
	}
	m, err := a.membersOf(&o.source)
	if err != nil {
		return err
	}
	o.complete(&m.Spec.Etcd.Backup)
	target, err := m.one(ctx, o.host)
	if err != nil {
		return err
	}
	b := component.Backup{Directory: o.directory, Keep: int32(min(o.keep, 1<<30)), Asked: began}
	p, err := pipeline.BackupEtcd(target, b)
	if err != nil {
		return err
	}
	if o.dryRun {
		return a.showSteps(p)
	}
	name, err := pipeline.BackupName(target, b)
	if err != nil {
		return err
	}
	at := path.Join(cmp.Or(o.directory, pipeline.BackupDir), name+".db")
	unlock, err := m.dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	return a.showing(m.about, func(reader event.Reader) (string, error) {
		if _, err := m.tools(reader, "").Engine().Run(ctx, p); err != nil {
			return "", err
		}
		if o.hostOnly {
			return fmt.Sprintf("etcd of %s is saved in %s:%s in %s.", m.Name, target.Host.Name, at, seconds(time.Since(began))), nil
		}
		fetched, err := m.fetch(ctx, target.Host.Name, at, cmp.Or(o.output, m.dir.Backups()))
		if err != nil {
			return "", err
		}
		if err := backup.Prune(filepath.Dir(fetched.Path), m.Name, fetched.Authority, fetched.Name, o.keep); err != nil {
			return "", fmt.Errorf("%s is saved, and older ones cannot be removed: %w", fetched.Path, err)
		}
		if bucket != nil {
			if err := upload(ctx, bucket, m.Name, fetched, o.keep); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("etcd of %s is saved in %s (revision %d, %d KiB), and in %s:%s, in %s.", m.Name, fetched.Path, fetched.Revision,
			fetched.Size/1024, target.Host.Name, at, seconds(time.Since(began))), nil
	})
}

// upload stores a backup in a bucket.
func upload(ctx context.Context, to *backup.Bucket, cluster string, b backup.Backup, keep int) error {
	if err := to.Put(ctx, b); err != nil {
		return fmt.Errorf("the backup is saved in %s, and is not stored in %s: %w", b.Path, to, err)
	}
	if err := to.Prune(ctx, cluster, b.Authority, b.Name, keep); err != nil {
		return fmt.Errorf("the backup is stored in %s, and older ones cannot be removed: %w", to, err)
	}
	return nil
}

// fetch copies a backup from a host.
func (m *members) fetch(ctx context.Context, name, at, dir string) (backup.Backup, error) {
	h, err := m.hosts.Dial(ctx, name)
	if err != nil {
		return backup.Backup{}, err
	}
	defer func() { _ = h.Close() }()
	return backup.Fetch(ctx, h, at, dir)
}

// showSteps lists the steps of a plan, and what they disrupt.
func (a *app) showSteps(p *plan.Plan) error {
	type row struct{ host, step, description, disrupts string }
	var rows []row
	for i := range p.Graph().Len() {
		n := p.Graph().Node(i).Value
		about := n.Step.Meta()
		rows = append(rows, row{cmp.Or(n.Host, "controller"), about.Name, about.Description, cmp.Or(about.Disrupts, "-")})
	}
	return list(a.Out, newFormat(), rows, table[row]{
		{name: "HOST", value: func(r row) string { return r.host }},
		{name: "STEP", value: func(r row) string { return r.step }},
		{name: "DESCRIPTION", value: func(r row) string { return r.description }},
		{name: "DISRUPTS", value: func(r row) string { return r.disrupts }},
	})
}

// list are the backups in a directory or a bucket.
func (s *store) list(ctx context.Context, at string) ([]backup.Backup, error) {
	if !strings.HasPrefix(at, backup.Scheme) {
		return backup.List(at)
	}
	bucket, err := s.bucket("--directory", at)
	if err != nil {
		return nil, err
	}
	return bucket.List(ctx)
}

func (a *app) etcdBackupsList() *cobra.Command {
	f, dir, from := newFormat(), "", store{}
	cmd := &cobra.Command{
		Use:     "list [CLUSTER]",
		Short:   "List the backups of etcd on this machine or in a bucket (of the only cluster if none is named)",
		Example: "  kubexm etcd backups list\n  kubexm etcd backups list prod --directory /mnt/backups -o json\n  kubexm etcd backups list prod --directory s3://backups/prod",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := a.onlyCluster(strings.Join(args, ""))
			if err != nil {
				return err
			}
			of, err := clusterdir.Of(a.stateRoot, name)
			if err != nil {
				return usageError{err}
			}
			all, err := from.list(cmd.Context(), cmp.Or(dir, of.Backups()))
			if err != nil {
				return err
			}
			all = slices.DeleteFunc(all, func(b backup.Backup) bool { return b.Cluster != name })
			return list(a.Out, f, all, table[backup.Backup]{
				{name: "NAME", value: func(b backup.Backup) string { return b.Name }},
				{name: "TIME", value: func(b backup.Backup) string { return b.Time.Format(time.DateTime) }},
				{name: "REVISION", value: func(b backup.Backup) string { return fmt.Sprint(b.Revision) }},
				{name: "KIB", value: func(b backup.Backup) string { return fmt.Sprint(b.Size / 1024) }},
				{name: "KUBERNETES", value: func(b backup.Backup) string { return b.KubernetesVersion }},
				{name: "FROM", value: func(b backup.Backup) string { return b.Host }},
				{name: "SHA256", wide: true, value: func(b backup.Backup) string { return b.SHA256 }},
				{name: "AUTHORITY", wide: true, value: func(b backup.Backup) string { return b.Authority }},
				{name: "PATH", wide: true, value: func(b backup.Backup) string { return b.Path }},
			})
		},
	}
	cmd.Flags().StringVar(&dir, "directory", "", "the directory on this machine, or the bucket (s3://BUCKET/PREFIX), that has them (default the cluster's state)")
	from.addStoreFlags(cmd.Flags())
	f.addFlag(cmd)
	cmd.ValidArgsFunction = a.completeClusters
	return cmd
}
