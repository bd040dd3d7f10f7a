// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestBackup saves one backup for each time at which it is asked for, where scheduled ones go, and says which file it is.
func TestBackup(t *testing.T) {
	m, backup := fake.New("cp1"), backupEtcd.do
	var saved []string
	full := false
	m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
		if !strings.Contains(strings.Join(c.Argv, " "), "snapshot save") {
			return host.Result{}
		}
		if full {
			return host.Result{ExitCode: 1, Stderr: []byte("etcd gives no snapshot: there is no space\n")}
		}
		saved = append(saved, strings.Join(c.Argv, " "))
		return host.Result{}
	}
	options := engine.Options{
		Dial:   func(context.Context, string) (host.Host, error) { return m.Connect(), nil },
		Holder: "test", Reader: event.ReaderFunc(func(event.Event) {}),
	}
	target := saver()
	target.Cluster.Etcd.Backup = spec.EtcdBackup{Schedule: "0 3 * * *", Directory: "/data/backups", Keep: 3}
	first := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		what  string
		asked time.Time
		want  int
		file  string
	}{
		{"asked for", first, 1, "/data/backups/etcd-prod-20261123T120000Z-cp1.db"},
		{"asked for once", first, 1, "/data/backups/etcd-prod-20261123T120000Z-cp1.db"},
		{"asked for again", first.Add(time.Minute), 2, "/data/backups/etcd-prod-20261123T120100Z-cp1.db"},
	} {
		out := backup(t.Context(), options, target, step.asked)
		if out.err != nil || !out.asked.Equal(step.asked) || len(saved) != step.want || out.note != "saved as "+step.file {
			t.Errorf("%s: %d backups, want %d; %q: %v", step.what, len(saved), step.want, out.note, out.err)
		}
	}
	if !strings.Contains(saved[0], "keep=3") {
		t.Errorf("it keeps other than three: %s", saved[0])
	}
	unset := target
	unset.Cluster.Etcd.Backup = spec.EtcdBackup{}
	if out := backup(t.Context(), options, unset, first.Add(time.Minute*2)); out.err != nil || !strings.Contains(saved[2], "keep=5") {
		t.Errorf("where nothing is set, it keeps other than five: %v, %q", out.err, saved)
	}
	full = true
	out := backup(t.Context(), options, target, first.Add(time.Hour))
	if out.err == nil || !strings.Contains(out.err.Error(), "there is no space") || out.note != "" {
		t.Errorf("it says %v, and %q is saved", out.err, out.note)
	}
	target.Host.Role = spec.RoleWorker
	if out := backup(t.Context(), options, target, first); out.err == nil || !strings.Contains(out.err.Error(), "no member of etcd") {
		t.Errorf("a worker says %v", out.err)
	}
}

// TestBackupResult keeps the file's name, or why there is none, and what was interrupted is not done.
func TestBackupResult(t *testing.T) {
	asked := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		out  outcome
		want bootstrapv1.RunOutcome
		says string
	}{
		"saved":       {outcome{asked: asked, note: "saved as /b/etcd.db"}, bootstrapv1.RunSucceeded, "saved as /b/etcd.db"},
		"failed":      {outcome{asked: asked, err: errors.New("no space")}, bootstrapv1.RunFailed, "no space"},
		"interrupted": {outcome{asked: asked, err: &engine.Error{Cause: errors.New("the manager ends")}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := &KubexmConfigReconciler{Runner: NewRunner(t.Context(), 1, time.Second), Events: events.NewFakeRecorder(9)}, testScope()
			s.job = &hostrun.State[outcome]{
				What: string(bootstrapv1.BackupEtcdOperation), Started: asked, Ended: asked.Add(time.Second), Result: tc.out,
			}
			if goOn, _, err := r.collectResult(t.Context(), s); goOn || err != nil {
				t.Fatalf("goes on %v, %v", goOn, err)
			}
			if last := s.config.Status.Operation(bootstrapv1.BackupEtcdOperation); last.Outcome != tc.want || last.Message != tc.says {
				t.Errorf("it is noted as %s: %q", last.Outcome, last.Message)
			}
		})
	}
}
