// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"testing"
)

// waiting are scripts that wait, and for what. Where a plan waits, a step.WaitFor does, which has a name, a time and a retry there.
var waiting = exempt{
	"bootstrap/door/gone.sh":               "for the session that closes the door to have ended",
	"bootstrap/door/home.sh":               "in a unit of the host's, which calls until somebody takes the call",
	"bootstrap/door/settle.sh":             "for sshd to have read its configuration",
	"pkg/step/system.go":                   "for a unit to have reloaded that says so itself",
	"test/bench/six.sh":                    "for the machines that it measures",
	"test/bench/upgrade.sh":                "for the machines that it measures",
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
	kept(t, waits,
		plant{"pkg/kube/planted.sh waits", "pkg/kube/planted.sh", "until true; do sleep 1; done\n"},
		plant{"cmd/planted.sh waits", "cmd/planted.sh", "true || sleep 1\n"},
		plant{"pkg/kube/planted.go:2 waits", "pkg/kube/planted.go", "const planted = `until [ -e /a ]; do sleep 0.2; done`"},
		plant{"bootstrap/door/gone.sh breaks the rule no more", "bootstrap/door/gone.sh", "set -e\n"},
	)
}

func waits(in *tree, report func(string, ...any)) {
	wait, inGo := regexp.MustCompile(`(?m)^[^#\n]*\b(sleep|await)\b`), regexp.MustCompile("\\bsleep [0-9$\"`]")
	broken, end := waiting.but(report)
	defer end()
	for _, f := range in.texts {
		if path.Ext(f.path) == ".sh" && wait.Match(f.content) {
			broken(f.path, "%s waits: let a step.WaitFor do so, which is seen in the plan", f.path)
		}
	}
	for _, f := range in.files {
		if f.isTest() || within(f.dir, "test/...") {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			if text, ok := node.(*ast.BasicLit); ok && text.Kind == token.STRING && inGo.MatchString(text.Value) {
				broken(f.path, "%s waits: let a step.WaitFor do so, which is seen in the plan", f.at(text))
			}
			return true
		})
	}
}
