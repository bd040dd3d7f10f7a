// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/internal/golden"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

func restoreOf(id string) component.Restore {
	return component.Restore{Digest: "sha256:" + strings.Repeat("a", 64), Size: 4096, ID: id, Asked: asked}
}

// hasMembers reports whether etcd is one that is backed up and restored here.
func hasMembers(targets []spec.Target) bool { return targets[0].Cluster.Etcd.Type != spec.EtcdExternal }

// TestBackupEtcd keeps the plan of a backup for each way to run Kubernetes with each etcd.
func TestBackupEtcd(t *testing.T) {
	var text strings.Builder
	for _, way := range ways {
		for _, etcd := range etcds {
			targets := targetsOf(members(t, way, etcd.set, endpoints[0].set))
			at := slices.IndexFunc(targets, func(t spec.Target) bool { return t.Host.Role == spec.RoleEtcd })
			if at < 0 {
				at = slices.IndexFunc(targets, func(t spec.Target) bool { return t.Host.Role == spec.RoleControlPlane })
			}
			p, err := pipeline.BackupEtcd(targets[at], component.Backup{Keep: 5, Asked: asked})
			if !hasMembers(targets) {
				if err == nil || !strings.Contains(err.Error(), "it has no member of etcd") {
					t.Errorf("of an external etcd: %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "===== %s with etcd %s\n", config.Word(way), etcd.name)
			if err := p.Text(&text); err != nil {
				t.Fatal(err)
			}
			roundTrip(t, p)
		}
	}
	golden.File(t, "testdata/backup-etcd.golden", text.String())

	target := node("cp1", "192.168.0.11", spec.RoleControlPlane, machine).Target
	name, err := pipeline.BackupName(target, component.Backup{Asked: asked.Add(time.Second)})
	if want := "etcd-prod-20261121T120001Z-cp1"; err != nil || name != want {
		t.Errorf("its name is %q (%v), want %q", name, err, want)
	}
}

// TestRestoreEtcd keeps the plan of a restore: who waits for whom.
func TestRestoreEtcd(t *testing.T) {
	var text strings.Builder
	for _, way := range ways {
		for _, etcd := range etcds {
			targets := targetsOf(members(t, way, etcd.set, endpoints[0].set))
			p, err := pipeline.RestoreEtcd("prod", targets, restoreOf("0123456789abcdef"))
			if !hasMembers(targets) {
				if err == nil || !strings.Contains(err.Error(), "etcd is external") {
					t.Errorf("an external etcd: %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "===== %s with etcd %s\n", config.Word(way), etcd.name)
			if err := p.Text(&text); err != nil {
				t.Fatal(err)
			}
			roundTrip(t, p)
		}
	}
	golden.File(t, "testdata/restore-etcd.golden", text.String())
}

func TestRestoreEtcdRefuses(t *testing.T) {
	targets := targetsOf(members(t, spec.KubernetesKubeadm, etcds[0].set, endpoints[0].set))
	for _, id := range []string{"", "short", "with space", strings.Repeat("a", 33), "0123456A", "../../etc"} {
		if _, err := pipeline.RestoreEtcd("prod", targets, restoreOf(id)); err == nil || !strings.Contains(err.Error(), "is no ID of a restore") {
			t.Errorf("%q: %v", id, err)
		}
	}
	workers := slices.DeleteFunc(slices.Clone(targets), func(t spec.Target) bool { return t.Host.Role != spec.RoleWorker })
	if _, err := pipeline.RestoreEtcd("prod", workers, restoreOf("01234567")); err == nil || !strings.Contains(err.Error(), "no host with a member of etcd") {
		t.Errorf("of workers alone: %v", err)
	}
}

// answering is a cluster whose API server answers.
type answering struct{ step.Cluster }

func (answering) Healthy(context.Context) error { return nil }

// anything is content with the digest that it must have.
type anything string

func (a anything) Open(context.Context, step.Artifact) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(string(a))), nil
}

// TestRestoreRuns on three hosts at once: each waits for all others where it must, a host that fails lets none begin too early, the same
// restore goes on where it was, and does nothing once it is done.
func TestRestoreRuns(t *testing.T) {
	targets := targetsOf(members(t, spec.KubernetesKubeadm, etcds[1].set, endpoints[0].set))
	order := []string{
		"send the snapshot, and find out whether it can be restored", "end the control plane", "end etcd, whose data is restored",
		"restore etcd's data from the snapshot", "start etcd with the restored data", "wait until the restored etcd has quorum",
		"start the control plane", "end the restore",
	}
	var mu sync.Mutex
	var ran []string // what ran on which host, in order
	failing := "cp2 restore etcd's data from the snapshot"
	machines := map[string]*fake.Machine{}
	for _, target := range targets {
		name := target.Host.Name
		m := fake.New(name)
		m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
			mu.Lock()
			defer mu.Unlock()
			if what := name + " " + c.Title; what == failing {
				return host.Result{ExitCode: 1}
			} else if slices.Contains(order, c.Title) { // checks run too
				ran = append(ran, what)
			}
			return host.Result{}
		}
		machines[name] = m
	}
	content := "snapshot"
	sum := sha256.Sum256([]byte(content))
	e := engine.New(engine.Options{
		Holder: "test", Artifacts: anything(content),
		Dial:    func(_ context.Context, name string) (host.Host, error) { return machines[name].Connect(), nil },
		Cluster: func(context.Context) (step.Cluster, error) { return answering{}, nil },
	})
	r := restoreOf("0123456789abcdef")
	r.Digest, r.Size = "sha256:"+hex.EncodeToString(sum[:]), int64(len(content))
	run := func() error {
		p, err := pipeline.RestoreEtcd("prod", targets, r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Run(t.Context(), p)
		return err
	}
	count := func(what string) (n int) {
		for _, line := range ran {
			if strings.HasSuffix(line, what) {
				n++
			}
		}
		return n
	}
	if err := run(); err == nil {
		t.Fatal("a host that fails is not told of")
	}
	if count("end etcd, whose data is restored") != 3 || count("start etcd with the restored data") != 0 {
		t.Errorf("one has no data yet, and there ran\n%s", strings.Join(ran, "\n"))
	}
	failing = ""
	if err := run(); err != nil {
		t.Fatal(err)
	}
	last := map[string]int{}
	first := map[string]int{}
	for i, line := range ran {
		_, what, _ := strings.Cut(line, " ")
		if _, seen := first[what]; !seen {
			first[what] = i
		}
		last[what] = i
	}
	for i, what := range order {
		if count(what) != 3 {
			t.Errorf("%s: it ran %d times on three hosts", what, count(what))
		}
		// Ending etcd and restoring its data is each host's own affair.
		if i > 0 && what != "restore etcd's data from the snapshot" && first[what] < last[order[i-1]] {
			t.Errorf("%s: it ran on a host before all had done this: %s", what, order[i-1])
		}
	}
	before := len(ran)
	if err := run(); err != nil || len(ran) != before {
		t.Errorf("what is done was done again: %v (%v)", ran[before:], err)
	}
}
