// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"strings"
	"testing"
)

func TestCalendar(t *testing.T) {
	for schedule, want := range map[string]string{
		"0 3 * * *":        "*-*-* 03:00:00 UTC",
		"*/20 * * * *":     "*-*-* *:00,20,40:00 UTC",
		"30 1-3 * * 1,FRI": "Mon,Fri *-*-* 01,02,03:30:00 UTC",
		"0 0 1 */6 *":      "*-01,07-01 00:00:00 UTC",
		"* * * * *":        "*-*-* *:*:00 UTC",
		"0 0 1 * 1":        "error: it names days of the month and of the week",
		"@every 1h":        "error: ",
		"0 3 * *":          "error: ",
		"60 3 * * *":       "error: ",
		"TZ=UTC 0 3 * * *": "error: the time is UTC",
	} {
		b := EtcdBackup{Schedule: schedule}
		got, err := b.Calendar()
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want && (!strings.HasPrefix(want, "error: ") || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q, want %q", schedule, got, want)
		}
	}
}

func TestEtcdBackupIsRefused(t *testing.T) {
	for what, c := range map[string]struct {
		EtcdBackup
		want string
	}{
		"nothing":      {EtcdBackup{}, ""},
		"a schedule":   {EtcdBackup{Schedule: "0 3 * * *"}, ""},
		"all":          {EtcdBackup{Schedule: "0 3 * * *", Directory: "/data/backups", Keep: 3}, ""},
		"no schedule":  {EtcdBackup{Keep: 3}, "backup.schedule: Required value"},
		"bad schedule": {EtcdBackup{Schedule: "often"}, "backup.schedule: Invalid value"},
		"relative":     {EtcdBackup{Schedule: "0 3 * * *", Directory: "backups"}, "backup.directory: Invalid value"},
		"in the data":  {EtcdBackup{Schedule: "0 3 * * *", Directory: "/var/lib/etcd/backups"}, "a backup there would be lost with the data"},
		"quotes":       {EtcdBackup{Schedule: "0 3 * * *", Directory: "/data/it's"}, "backup.directory: Invalid value"},
		"too many":     {EtcdBackup{Schedule: "0 3 * * *", Keep: 10001}, "backup.keep: Invalid value"},
	} {
		cluster := Cluster{Etcd: Etcd{Backup: c.EtcdBackup}}
		cluster.Default()
		errs := cluster.Validate(nil)
		if (len(errs) > 0) != (c.want != "") || c.want != "" && !strings.Contains(errs.ToAggregate().Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, errs.ToAggregate(), c.want)
		}
	}
}
