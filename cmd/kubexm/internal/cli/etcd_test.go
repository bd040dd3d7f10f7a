// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/backup"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestBeginRestore: a restore that was cut goes on, unless it is of another snapshot, for other hosts, or not wanted.
func TestBeginRestore(t *testing.T) {
	dir, err := clusterdir.Of(t.TempDir(), "prod")
	if err != nil {
		t.Fatal(err)
	}
	of := func(names ...string) *members {
		m := &members{dir: dir}
		var all []spec.Member
		for _, name := range names {
			all = append(all, spec.Member{Name: name, Role: spec.RoleControlPlane, Address: "192.168.0.11"})
		}
		for _, name := range names {
			m.targets = append(m.targets, spec.Target{Host: spec.Host{Name: name, Role: spec.RoleControlPlane}, Members: all})
		}
		return m
	}
	first, resumed, err := beginRestore(of("cp1", "cp2"), "aa", false)
	if err != nil || resumed || len(first.ID) != 16 {
		t.Fatalf("%+v, %t, %v", first, resumed, err)
	}
	if err := dir.Write([]byte(`{"id": "0123456789abcdef", "sha256": "aa", "asked": "2026-11-23T21:00:00Z", "members": ["cp1", "cp2"]}`), underWayFile); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		m     *members
		sum   string
		again bool
		want  bool
	}{
		"the same":         {of("cp1", "cp2"), "aa", false, true},
		"another snapshot": {of("cp1", "cp2"), "bb", false, false},
		"other hosts":      {of("cp1"), "aa", false, false},
		"from the start":   {of("cp1", "cp2"), "aa", true, false},
	} {
		run, resumed, err := beginRestore(c.m, c.sum, c.again)
		if err != nil || resumed != c.want || (run.ID == "0123456789abcdef") != c.want {
			t.Errorf("%s: %+v, %t, %v", what, run, resumed, err)
		}
	}
	if err := dir.Write([]byte("{"), underWayFile); err != nil {
		t.Fatal(err)
	}
	if _, _, err := beginRestore(of("cp1"), "aa", false); err == nil || !strings.Contains(err.Error(), "start over with --again") {
		t.Errorf("what cannot be read: %v", err)
	}
}

// TestBackupAsDeclared: a backup is saved where scheduled ones are, and leaves as many of them, unless a flag says otherwise.
func TestBackupAsDeclared(t *testing.T) {
	declared := spec.EtcdBackup{Schedule: "0 3 * * *", Directory: "/data/etcd-backups", Keep: 14}
	for what, c := range map[string]struct {
		flags     backupOptions
		declared  spec.EtcdBackup
		keep      int
		directory string
	}{
		"no flags":               {backupOptions{}, declared, 14, "/data/etcd-backups"},
		"flags":                  {backupOptions{keep: 3, keepSet: true, directory: "/mnt"}, declared, 3, "/mnt"},
		"all are to stay":        {backupOptions{keepSet: true}, declared, 0, "/data/etcd-backups"},
		"nothing is declared":    {backupOptions{}, spec.EtcdBackup{}, 5, ""},
		"a schedule is declared": {backupOptions{}, spec.EtcdBackup{Schedule: "0 3 * * *"}, 5, ""},
	} {
		c.flags.complete(&c.declared)
		if c.flags.keep != c.keep || c.flags.directory != c.directory {
			t.Errorf("%s: keep %d in %q, want %d in %q", what, c.flags.keep, c.flags.directory, c.keep, c.directory)
		}
	}
}

// TestBucketFlags: what names no bucket, or would send Secrets in clear, is refused before anything is touched.
func TestBucketFlags(t *testing.T) {
	inClear := store{backup.BucketOptions{Endpoint: "http://s3.example"}}
	for want, act := range map[string]func(a *app) error{
		"--upload and --host-only exclude each other": func(a *app) error {
			return a.backUpEtcd(t.Context(), &backupOptions{hostOnly: true, upload: "s3://backups/prod"})
		},
		"--upload: backups/prod is no place in a bucket": func(a *app) error {
			return a.backUpEtcd(t.Context(), &backupOptions{upload: "backups/prod"})
		},
		"--upload: http://s3.example would have all Secrets of the cluster cross the network in clear": func(a *app) error {
			return a.backUpEtcd(t.Context(), &backupOptions{upload: "s3://backups/prod", store: inClear})
		},
		"--directory: s3:///x is no place in a bucket": func(*app) error {
			_, err := (&store{}).list(t.Context(), "s3:///x")
			return err
		},
		"--from: s3://backups/prod is no backup in a bucket": func(*app) error {
			_, err := (&members{}).snapshot(t.Context(), &store{}, "s3://backups/prod")
			return err
		},
		"--from: http://s3.example": func(*app) error {
			_, err := (&members{}).snapshot(t.Context(), &inClear, "s3://backups/prod/a.db")
			return err
		},
	} {
		err := act(&app{})
		var misuse usageError
		if !errors.As(err, &misuse) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
