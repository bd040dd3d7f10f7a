// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	_ "embed"
	"strconv"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	// SnapshotDir is where a host keeps snapshots, with mode 0700: in the host's state, so that a reset takes them along.
	SnapshotDir = host.StateDir + "/etcd-snapshots"
	// keptSnapshots are the last of them.
	keptSnapshots = 3
	// snapshotTimeout is enough for some gigabytes.
	snapshotTimeout = 25 * time.Minute
)

var (
	//go:embed snapshot.sh
	snapshot string
	//go:embed snapshot-check.sh
	snapshotCheck string
)

// Access is how a host reaches etcd.
type Access struct {
	// Endpoints are URLs of members, the first of which that answers is asked.
	Endpoints []string
	// CA, Certificate and Key are files on the host; none where etcd has no TLS.
	CA, Certificate, Key string
	// Foreign is whether others run etcd, and may not let us have its data.
	Foreign bool
}

// Access is how the host of a member reaches etcd as its administrator: its own member first.
func (s Settings) Access() Access {
	own := "https://" + host.InURL(s.Address) + ":2379"
	a := Access{Endpoints: []string{own}, CA: caFile, Certificate: s.certificate("admin"), Key: s.key("admin")}
	for _, other := range s.others() {
		a.Endpoints = append(a.Endpoints, "https://"+other+":2379")
	}
	return a
}

// ClientAccess is how an API server's host reaches an etcd that runs elsewhere.
func ClientAccess(c component.EtcdClient, foreign bool) Access {
	return Access{Endpoints: c.Endpoints, CA: c.CA, Certificate: c.Certificate, Key: c.Key, Foreign: foreign}
}

// Save saves a snapshot of etcd to SnapshotDir, whose sum is verified, and removes all but the last ones. On a host that has no
// etcdctl yet, which was never finished, it does nothing.
func (a Access) Save() step.Command {
	return step.Command{
		Title: "save a snapshot of etcd in " + SnapshotDir, Argv: a.script(snapshot), Timeout: step.Duration(snapshotTimeout),
	}
}

// Snapshot saves a snapshot before another etcd is installed on a host that has nothing but a member: programs come after it.
func Snapshot(s Settings, programs []step.Artifact) step.Step {
	save, wanted := s.Access().Save(), ""
	for _, p := range step.ProgramsIn(bin, programs) {
		if p.Path == bin+"/etcd" {
			wanted = p.Digest
		}
	}
	save.Done = step.Done{Check: s.Access().script(snapshotCheck, "program="+bin+"/etcd", "wanted="+wanted)}
	return step.New(step.Meta{
		Name: "etcd/snapshot", Description: "save a snapshot of etcd before its programs are replaced",
		Timeout: step.Duration(snapshotTimeout + time.Minute),
	}, save)
}

// SaveAsked saves a snapshot once for each time at which somebody asks for it, whatever else becomes of the host.
func (a Access) SaveAsked(asked time.Time) step.Step {
	save := a.Save()
	save.Argv, save.Done = a.script(snapshot, "asked="+asked.UTC().Format(time.RFC3339)), step.Done{SameInput: true}
	return step.New(step.Meta{
		Name: "etcd/snapshot", Description: "save a snapshot of etcd, as was asked for", Timeout: step.Duration(snapshotTimeout + time.Minute),
	}, save)
}

func (a Access) script(text string, also ...string) []string {
	argv := append([]string{
		"/usr/bin/env", "endpoints=" + words(a.Endpoints), "ca=" + a.CA, "cert=" + a.Certificate, "key=" + a.Key,
		"foreign=" + strconv.FormatBool(a.Foreign), "dir=" + SnapshotDir, "keep=" + strconv.Itoa(keptSnapshots),
	}, also...)
	return append(argv, "/bin/sh", "-uc", text, "etcd")
}
