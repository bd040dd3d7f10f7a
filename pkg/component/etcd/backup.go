// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// backupStamp is how the time of a backup stands in its name.
const backupStamp = "20060102T150405Z"

//go:embed backup.sh
var backup string

// Backup is one that is made on the host of a member.
type Backup struct {
	// Directory is where it is saved, and Keep how many of the cluster's stay there; 0 is all.
	Directory string
	Keep      int32
	// KubernetesVersion is the cluster's.
	KubernetesVersion string
}

// BackupName is the name of the files of a backup on the host of this member, without their endings: .db is a snapshot, and .json says what
// it is.
func (s Settings) BackupName(asked time.Time) string {
	return "etcd-" + s.Cluster + "-" + asked.UTC().Format(backupStamp) + "-" + s.Name
}

func (s Settings) backup(b Backup, also ...string) []string {
	return s.script(cluster+backup, append([]string{
		"into=" + b.Directory, "keep=" + strconv.Itoa(int(b.Keep)), "kubernetes=" + b.KubernetesVersion, "owner=" + host.StateDir + "/owner",
	}, also...)...)
}

// SaveBackup saves a backup, once for each time at which somebody asks for it.
func SaveBackup(s Settings, b Backup, asked time.Time) step.Step {
	return step.New(step.Meta{
		Name: "etcd/backup", Description: "save a backup of etcd", Timeout: step.Duration(snapshotTimeout + time.Minute),
	}, step.Command{
		Title: "save a backup of etcd in " + b.Directory, Argv: s.backup(b, "asked="+asked.UTC().Format(backupStamp)),
		Timeout: step.Duration(snapshotTimeout), Done: step.Done{SameInput: true},
	})
}

const (
	backupUnit   = "kubexm-etcd-backup"
	backupScript = dir + "/backup.sh"
	unitsDir     = "/etc/systemd/system/"
	// backupStampFile is what systemd remembers of a timer that makes up for what it has missed.
	backupStampFile = "/var/lib/systemd/timers/stamp-" + backupUnit + ".timer"
)

// Backups has the host save backups by itself, when calendar says so. Hosts take turns by a lock in etcd.
func Backups(s Settings, b Backup, calendar string) step.Step {
	argv := s.backup(b)
	var script strings.Builder
	script.WriteString("#!/bin/sh -u\n")
	for _, word := range argv[1:slices.Index(argv, "/bin/sh")] {
		name, value, _ := strings.Cut(word, "=")
		script.WriteString(name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'\n")
	}
	script.WriteString(argv[len(argv)-2])
	service := `[Unit]
Description=a backup of etcd
After=etcd.service

[Service]
Type=oneshot
Environment="ETCDCTL_CACERT=` + caFile + `" "ETCDCTL_CERT=` + s.certificate("admin") + `" "ETCDCTL_KEY=` + s.key("admin") + `"
# One host of the cluster at a time.
ExecStart=` + bin + `/etcdctl --endpoints=https://` + host.InURL(s.Address) + `:2379 --dial-timeout=5s lock --ttl=20 kubexm/backup -- /bin/sh -u ` + backupScript + `
TimeoutStartSec=2h
UMask=0077
Nice=10
IOSchedulingClass=idle
`
	timer := `[Unit]
Description=when a backup of etcd is saved

[Timer]
OnCalendar=` + calendar + `
Persistent=true

[Install]
WantedBy=timers.target
`
	return step.New(step.Meta{
		Name: "etcd/backups", Description: "save backups of etcd by a timer",
	},
		step.Claim{Paths: []string{backupStampFile}},
		step.File{Path: backupScript, Mode: 0o700, Content: step.Literal(script.String())},
		step.File{Path: unitsDir + backupUnit + ".service", Mode: 0o644, Content: step.Literal(service)},
		step.File{Path: unitsDir + backupUnit + ".timer", Mode: 0o644, Content: step.Literal(timer)},
		step.Service{Name: backupUnit + ".timer", Watches: []string{unitsDir + backupUnit + ".timer", unitsDir + backupUnit + ".service"}},
	)
}

// NoBackups has a host that has saved backups by itself do so no more. What it has saved stays.
func NoBackups() step.Step {
	return step.New(step.Meta{Name: "etcd/no-backups", Description: "save no backups of etcd by a timer"}, step.Command{
		Title: "end the timer of etcd's backups",
		Argv: []string{
			"/bin/sh", "-euc", `systemctl disable --now "$1.timer" 2>&1 && rm -f "$2" "$3" "$4" && systemctl daemon-reload`, "etcd",
			backupUnit, unitsDir + backupUnit + ".service", backupScript, unitsDir + backupUnit + ".timer",
		},
		Done: step.Done{Check: []string{
			"/bin/sh", "-c", `[ ! -e "$1" ] || { echo "$1 is there"; exit 1; }`, "sh", unitsDir + backupUnit + ".timer",
		}},
	})
}
