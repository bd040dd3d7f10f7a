// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"context"
	"errors"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// A full disk is named, with its host and step, and the next run goes on from there once there is space.
func TestDiskFull(t *testing.T) {
	const (
		programs = "runtime/containerd/containerd/programs"
		images   = "runtime/images/containerd/images"
	)
	for _, disk := range []struct {
		name, path, size string
		// from is the node before which the disk is there, until the one that it is too small for.
		from, until string
		// own says that the disk is in a directory of ours, which a reset cannot remove with a disk in it.
		own bool
	}{
		{name: "Staging", path: host.StateDir + "/staging", size: "8m", until: programs, own: true},
		{name: "Programs", path: "/usr/local/bin", size: "16m", until: programs},
		{name: "Images", path: "/var/lib/containerd", size: "64m", from: programs, until: images},
	} {
		t.Run(disk.name, func(t *testing.T) {
			tr := newTrial(t)
			p := tr.plan(1)
			h := pool.Hosts[0]
			if disk.from != "" {
				tr.runUntil(subject.options(nil), p, disk.from)
			}
			tr.exec(h, "mkdir", "-p", disk.path)
			tr.exec(h, "mount", "-t", "tmpfs", "-o", "size="+disk.size, "none", disk.path)
			unmount := func() { tr.exec(h, "sh", "-c", "! mountpoint -q $0 || umount -l $0", disk.path) }
			t.Cleanup(unmount)

			_, err := engine.New(subject.options(nil)).Run(t.Context(), p)
			f := onlyFailure(t, err)
			if host.KindOf(f.Err) != host.KindDiskFull || f.Node != h.Name+"/"+disk.until || f.Remedy == "" {
				t.Errorf("kind %q at node %q, remedy %q: %v", host.KindOf(f.Err), f.Node, f.Remedy, err)
			}

			tr.exec(h, "mount", "-o", "remount,size=4g", disk.path)
			tr.runUntil(subject.options(nil), p, disk.until)
			if disk.own {
				unmount()
			}
			if _, err = subject.reset(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			unmount()
			tr.demandReset()
		})
	}
}

// exec runs a command on a host, not by way of what is tested.
func (tr *trial) exec(h *hosts.Host, argv ...string) string {
	tr.Helper()
	out, err := h.Exec(context.WithoutCancel(tr.Context()), argv...)
	if err != nil {
		tr.Errorf("%v on %s: %v", argv, h.Name, err)
	}
	return out
}

// onlyFailure is the one root cause of an engine's error.
func onlyFailure(t *testing.T, err error) engine.Failure {
	t.Helper()
	var e *engine.Error
	if !errors.As(err, &e) || len(e.Failures) != 1 {
		t.Fatalf("not an error with one root cause: %v", err)
	}
	return e.Failures[0]
}
