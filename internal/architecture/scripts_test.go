// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// waiting are scripts that wait, and for what. Where a plan waits, a step.WaitFor does, which has a name, a time and a retry there. The
// list only gets shorter.
var waiting = map[string]string{
	"pkg/component/etcd/asked-restart.sh":  "for quorum, after the restart and before the turn ends",
	"pkg/component/etcd/asked.sh":          "for the kubelet to have started another Pod",
	"pkg/component/etcd/cluster.sh":        "for etcd to take another change of members; has the function that the others of etcd take in",
	"pkg/component/etcd/maintain.sh":       "for the alarm that its own lock has raised",
	"pkg/component/etcd/maintenance.sh":    "for a member to answer after it was defragmented",
	"pkg/component/etcd/member.sh":         "for the member to answer, to vote, and to have quorum",
	"pkg/component/etcd/members.sh":        "for quorum, after each member that is removed",
	"pkg/component/etcd/restart.sh":        "for quorum, after the restart and before the turn ends",
	"pkg/component/etcd/restore-verify.sh": "for quorum of the members that were restored",
	"pkg/component/etcd/restore.sh":        "for etcd to have ended, before its data is replaced",
	"pkg/component/etcd/run.sh":            "for the kubelet to have started another Pod, or to have ended one",
	"pkg/component/kubeadm/etcd-alone.sh":  "for the Pod to be back, before the lock is released",
	"pkg/component/kubeadm/halt.sh":        "for the API server to have ended, before its etcd does",
	"pkg/component/kubeadm/ready.sh":       "has the function that halt.sh and withdraw.sh take in",
	"pkg/component/kubeadm/withdraw.sh":    "for the API server to have ended, before its etcd member is removed",
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
