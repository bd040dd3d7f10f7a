// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// EtcdBackup is how etcd's hosts save backups by themselves.
type EtcdBackup struct {
	// schedule is when, in UTC, as cron has it: minute, hour, day of the month, month, day of the week, such as "0 3 * * *" for each
	// day at three.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Schedule string `json:"schedule,omitempty"`

	// directory is the absolute path of the directory on the hosts, which stays when a host is reset. If unset,
	// /var/lib/kubexm/etcd-backups, which does not.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=512
	Directory string `json:"directory,omitempty"`

	// keep is how many of the cluster's backups stay in the directory. If unset, 5.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Keep int32 `json:"keep,omitempty"`
}

// Kept is how many backups stay.
func (b *EtcdBackup) Kept() int32 { return cmp.Or(b.Keep, 5) }

// star is how the parser marks a field that says nothing.
const star = 1 << 63

// Calendar is the schedule as systemd's timers have it.
func (b *EtcdBackup) Calendar() (string, error) {
	if strings.Contains(b.Schedule, "=") { // the parser takes a zone there
		return "", errors.New("the time is UTC")
	}
	parsed, err := fields.Parse(b.Schedule)
	if err != nil {
		return "", err
	}
	s, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return "", errors.New("it is no schedule of five fields")
	}
	days, dates := "", each(s.Dom, 1, 31)
	if s.Dow&star == 0 {
		if s.Dom&star == 0 {
			return "", errors.New("it names days of the month and of the week, which would be either for cron, and is both for systemd's timers: name one of them")
		}
		var names []string
		for i, name := range []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"} {
			if s.Dow&(1<<i) != 0 {
				names = append(names, name)
			}
		}
		days = strings.Join(names, ",") + " "
	}
	return fmt.Sprintf("%s*-%s-%s %s:%s:00 UTC", days, each(s.Month, 1, 12), dates, each(s.Hour, 0, 23), each(s.Minute, 0, 59)), nil
}

// each are the numbers that are set, with two digits, and * for all of them.
func each(bits uint64, least, most int) string {
	var all []string
	for i := least; i <= most; i++ {
		if bits&(1<<i) != 0 {
			all = append(all, fmt.Sprintf("%02d", i))
		}
	}
	if len(all) == most-least+1 {
		return "*"
	}
	return strings.Join(all, ",")
}

func (b *EtcdBackup) validate(path *field.Path, dataDir string) field.ErrorList {
	if *b == (EtcdBackup{}) {
		return nil
	}
	var errs field.ErrorList
	if b.Schedule == "" {
		errs = append(errs, field.Required(path.Child("schedule"), `say when backups are saved, such as "0 3 * * *" for each day at three (UTC)`))
	} else if _, err := b.Calendar(); err != nil {
		errs = append(errs, field.Invalid(path.Child("schedule"), b.Schedule, fmt.Sprintf(
			`%v: use the five fields of cron, such as "0 3 * * *" for each day at three (UTC)`, err)))
	}
	if b.Directory != "" {
		at := path.Child("directory")
		errs = append(errs, validateDataDir(at, b.Directory)...)
		if isWithin(b.Directory, dataDir) || isWithin(dataDir, b.Directory) {
			errs = append(errs, field.Invalid(at, b.Directory, "it is in etcd's data directory, or that in it: a backup there would be lost with the data"))
		}
	}
	return errs
}
