// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	_ "embed"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// keptReplaced are the last data directories that restores have set aside.
const keptReplaced = 2

var (
	//go:embed restore.sh
	restoring string
	//go:embed restore-prepare.sh
	restorePrepare string
	//go:embed restore-stop.sh
	restoreStop string
	//go:embed restore-stopped.sh
	restoreStopped string
	//go:embed restore-data.sh
	restoreData string
	//go:embed restore-start.sh
	restoreStart string
	//go:embed restore-verify.sh
	restoreVerify string
	//go:embed restore-end.sh
	restoreEnd string
)

// Restore is one that is done on all members' hosts.
type Restore struct {
	// ID tells it from others, and is a part of the restored cluster's token.
	ID string
	// Snapshot is sent to each host.
	Snapshot step.Artifact
	// Bump is by how much the revision of what is restored is more than the snapshot's, so that no revision is given twice.
	Bump int64
}

func (s Settings) restore(r Restore, text string) []string {
	var initial []string
	for _, m := range s.Members {
		initial = append(initial, m.Name+"="+peerURL(m))
	}
	return s.script(cluster+run+restoring+text,
		"restore="+component.RestoreDir, "id="+r.ID, "snapshot="+r.path(), "sum="+strings.TrimPrefix(r.Snapshot.Digest, "sha256:"),
		"initial="+strings.Join(initial, ","), "token="+s.Cluster+"-"+r.ID, "bump="+strconv.FormatInt(r.Bump, 10), "keep="+strconv.Itoa(keptReplaced))
}

func (r Restore) path() string { return component.RestoreDir + "/snapshot.db" }

// step is one that is done once in each restore, and again where check, if it is not "", does not hold.
func (r Restore) step(s Settings, about step.Meta, check, text string, before ...step.Step) step.Step {
	done := step.Done{SameInput: true}
	if check != "" {
		done.Check = s.restore(r, check)
	}
	return step.New(about, append(before, step.Command{Title: about.Description, Argv: s.restore(r, text)})...).Until(done)
}

// PrepareRestore sends the snapshot to the host, and finds out whether it can be restored there. Nothing ends for it.
func PrepareRestore(s Settings, r Restore, prepared string) step.Step {
	snapshot := r.Snapshot
	return r.step(s, step.Meta{
		Name: "etcd/restore-prepare", Description: "send the snapshot, and find out whether it can be restored",
		Timeout: step.Duration(snapshotTimeout), Makes: []string{prepared},
	}, "", restorePrepare,
		step.Directory{Path: component.RestoreDir, Mode: 0o700},
		step.File{Path: r.path(), Mode: 0o600, From: &snapshot},
	)
}

// StopForRestore ends the host's etcd. after are those who used it and have ended.
func StopForRestore(s Settings, r Restore, after ...string) step.Step {
	return r.step(s, step.Meta{
		Name: "etcd/restore-stop", Description: "end etcd, whose data is restored", Timeout: step.Duration(4 * time.Minute),
		Takes: after, Disrupts: "ends this host's etcd",
	}, restoreStopped, restoreStop)
}

// RestoreData puts the snapshot's data in the place of the host's, which is set aside.
func RestoreData(s Settings, r Restore, restored string) step.Step {
	return r.step(s, step.Meta{
		Name: "etcd/restore-data", Description: "restore etcd's data from the snapshot", Timeout: step.Duration(snapshotTimeout),
		Makes: []string{restored},
	}, "", restoreData)
}

// StartRestored starts the host's etcd with what is restored, once that is so on all hosts, and does not wait for it.
func StartRestored(s Settings, r Restore, started string, after ...string) step.Step {
	return r.step(s, step.Meta{
		Name: "etcd/restore-start", Description: "start etcd with the restored data", Timeout: step.Duration(2 * time.Minute),
		Takes: after, Makes: []string{started},
	}, "", restoreStart)
}

// VerifyRestored waits until the host's etcd is well, after all have been started.
func VerifyRestored(s Settings, r Restore, done string, after ...string) step.Step {
	return r.step(s, step.Meta{
		Name: "etcd/restore-verify", Description: "wait until the restored etcd has quorum", Timeout: step.Duration(5 * time.Minute),
		Retry: step.Retry{Attempts: 2, Delay: step.Duration(5 * time.Second)},
		Takes: after, Makes: []string{done},
	}, "", restoreVerify)
}

// EndRestore releases the host to be made what it must be.
func EndRestore(s Settings, r Restore, after ...string) step.Step {
	return r.step(s, step.Meta{Name: "etcd/restore-end", Description: "end the restore", Takes: after}, "", restoreEnd)
}
