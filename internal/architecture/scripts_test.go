// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// waiting are scripts of steps that wait, and for what. To wait is a step's own matter (step.WaitFor), which has a name, a time and a retry
// in the plan: a script may where the wait and the act are one under a lock. The list only gets shorter.
var waiting = map[string]string{
	"pkg/component/etcd/asked-restart.sh":  "for its member, in one turn with the restart",
	"pkg/component/etcd/asked.sh":          "for an answer, which the others of this list take in",
	"pkg/component/etcd/cluster.sh":        "for the lock of etcd's members",
	"pkg/component/etcd/maintain.sh":       "for a member to be well again before the next is defragmented",
	"pkg/component/etcd/maintenance.sh":    "for the lock of etcd's members",
	"pkg/component/etcd/member.sh":         "for the cluster that it joins",
	"pkg/component/etcd/members.sh":        "for a learner to be promoted",
	"pkg/component/etcd/restart.sh":        "for its member, in one turn with the restart",
	"pkg/component/etcd/restore-verify.sh": "for etcd to answer after a restore",
	"pkg/component/etcd/restore.sh":        "for etcd to have ended",
	"pkg/component/etcd/run.sh":            "for etcd to answer",
	"pkg/component/kubeadm/etcd-alone.sh":  "for the lock of etcd's members",
	"pkg/component/kubeadm/halt.sh":        "for static pods to have ended",
	"pkg/component/kubeadm/ready.sh":       "for a static pod, which the others of this list take in",
	"pkg/component/kubeadm/withdraw.sh":    "for the API server to have ended",
	"pkg/host/internal/posix/lib/core.sh":  "for a process that it has signalled",
	"pkg/host/internal/posix/lib/stage.sh": "for content that is on its way",
	"pkg/host/internal/posix/lib/unit.sh":  "for systemd to answer, and for a unit to settle",
}

func TestScriptsDoNotWait(t *testing.T) {
	waits, seen := regexp.MustCompile(`(?m)^[^#\n]*\b(sleep|await)\b`), map[string]bool{}
	err := filepath.WalkDir("../../pkg", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".sh" {
			return err
		}
		content, err := os.ReadFile(path)
		if name := filepath.ToSlash(path[len("../../"):]); waits.Match(content) {
			if seen[name] = true; waiting[name] == "" {
				t.Errorf("%s waits: let a step.WaitFor do so, which is seen in the plan", name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range waiting {
		if !seen[name] {
			t.Errorf("%s does not wait any more: take it off the list", name)
		}
	}
}
