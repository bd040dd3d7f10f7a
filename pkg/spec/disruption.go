// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a zone that is accepted in one place is known in all

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Approval is whether somebody has to agree to an act.
//
// +kubebuilder:validation:Enum=None;Required
type Approval string

const (
	// ApprovalNone has nobody asked.
	ApprovalNone Approval = "None"
	// ApprovalRequired has an act wait until somebody has agreed to it, and to nothing else.
	ApprovalRequired Approval = "Required"
)

// Disruption is what an act that disrupts a host in use waits for: a restart of its components, a drain, its replacement. What was
// begun is finished. A host that is not in use yet waits for nothing, nor does what mends an unhealthy Machine, nor a deletion that
// somebody asks for.
//
// +kubebuilder:validation:MinProperties=1
type Disruption struct {
	// approval is Required, where somebody has to agree to what the object's condition DisruptionAllowed shows, or None.
	// If unset, None.
	// +optional
	Approval Approval `json:"approval,omitempty"`

	// maintenanceWindows are the times in which such an act may begin. If unset, at any time.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	MaintenanceWindows []MaintenanceWindow `json:"maintenanceWindows,omitempty"`

	// maxUnavailable is how many workers of one pool may be unavailable at once because of such acts, those included whose Nodes are
	// not Ready anyway. If unset, as many as the MachineDeployment's spec.rollout.strategy.rollingUpdate.maxUnavailable says, at least one,
	// and one where there is none. Of the hosts of the control plane, of etcd and of load balancers it is always one.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxUnavailable int32 `json:"maxUnavailable,omitempty"`
}

// MaintenanceWindow is a time that comes again and again.
type MaintenanceWindow struct {
	// start is when it opens, in the five fields of cron: minute, hour, day of month, month, day of week, such as
	// "0 22 * * SAT".
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	Start string `json:"start,omitempty"`

	// durationMinutes is how long it stays open.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10080
	DurationMinutes int32 `json:"durationMinutes,omitempty"`

	// timeZone is the zone that start is meant in, by its name in the database of IANA, such as Europe/Berlin. If unset, UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// DisruptionOf is what disruptions of a host wait for: what the host's own part says, and where that says nothing, what the cluster
// says.
func DisruptionOf(c *Cluster, n *Node) *Disruption {
	if n.Disruption.Approval != "" || len(n.Disruption.MaintenanceWindows) > 0 {
		return &n.Disruption
	}
	return &c.Disruption
}

// MaxUnavailableOf is how many workers of a host's pool may be unavailable at once, 0 where neither the host's own part nor the cluster
// says.
func MaxUnavailableOf(c *Cluster, n *Node) int32 {
	return cmp.Or(n.Disruption.MaxUnavailable, c.Disruption.MaxUnavailable)
}

// IsZero reports whether it says nothing.
func (d *Disruption) IsZero() bool {
	return d.Approval == "" && len(d.MaintenanceWindows) == 0 && d.MaxUnavailable == 0
}

// Restricts reports whether anything has to wait.
func (d *Disruption) Restricts() bool {
	return d.Approval == ApprovalRequired || len(d.MaintenanceWindows) > 0
}

// Wait is what an act waits for.
//
// +kubebuilder:object:generate=false
type Wait struct {
	// Approval is whether somebody has to agree to it.
	Approval bool
	// Until is when it may begin, if nothing else stands in the way. It is not set where that may be at any time.
	Until time.Time
}

// Awaits is what an act waits for at a time, nil if it may begin. digest is that of the act, and approved the one that somebody
// has agreed to.
func (d *Disruption) Awaits(digest, approved string, now time.Time) *Wait {
	w := &Wait{Approval: d.Approval == ApprovalRequired && approved != digest}
	if opens := d.opens(now); opens.After(now) {
		w.Until = opens
	}
	if !w.Approval && w.Until.IsZero() {
		return nil
	}
	return w
}

// String says what is waited for.
func (w *Wait) String() string {
	var parts []string
	if w.Approval {
		parts = append(parts, "for approval")
	}
	if !w.Until.IsZero() {
		parts = append(parts, "for the maintenance window that opens at "+w.Until.Format("Mon 2006-01-02 15:04 MST"))
	}
	return "waits " + strings.Join(parts, " and then ")
}

// opens is when a window is open next: now, if one is or there is none.
func (d *Disruption) opens(now time.Time) time.Time {
	first := now
	for i := range d.MaintenanceWindows {
		opens, err := d.MaintenanceWindows[i].opens(now)
		if err != nil || opens.IsZero() {
			continue // it was refused
		}
		if !opens.After(now) {
			return now
		}
		if first.Equal(now) || opens.Before(first) {
			first = opens
		}
	}
	if first.Equal(now) && len(d.MaintenanceWindows) > 0 {
		return now.AddDate(1, 0, 0) // none that ever opens: nobody meant that something may begin at any time
	}
	return first
}

func (w *MaintenanceWindow) opens(now time.Time) (time.Time, error) {
	schedule, zone, err := w.parse()
	if err != nil {
		return time.Time{}, err
	}
	// The last one that opened may be open still.
	if last := schedule.Next(now.In(zone).Add(-time.Duration(w.DurationMinutes) * time.Minute)); !last.After(now) {
		return now, nil
	}
	return schedule.Next(now.In(zone)), nil
}

// fields are those of a start. Intervals such as @every have no beginning, and other words for times are not needed.
var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

func (w *MaintenanceWindow) parse() (cron.Schedule, *time.Location, error) {
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		return nil, nil, err
	}
	if strings.Contains(w.Start, "=") { // the parser takes a zone there
		return nil, nil, fmt.Errorf("%q: a zone belongs in timeZone", w.Start)
	}
	schedule, err := fields.Parse(w.Start)
	return schedule, zone, err
}

// Digest is the digest of an act, short enough to be copied by hand. What says of the act is what somebody agrees to.
func Digest(what ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", what))
	return hex.EncodeToString(sum[:])[:16]
}

func (d *Disruption) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("maintenanceWindows")
	for i := range d.MaintenanceWindows {
		errs = append(errs, d.MaintenanceWindows[i].validate(at.Index(i))...)
	}
	return errs
}

func (w *MaintenanceWindow) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	start, zone := path.Child("start"), path.Child("timeZone")
	if _, err := time.LoadLocation(w.TimeZone); err != nil || w.TimeZone == "Local" {
		return append(errs, field.Invalid(zone, w.TimeZone, "use the name of a time zone, such as Europe/Berlin, or leave it out for UTC"))
	}
	if w.Start == "" {
		return append(errs, field.Required(start, `say when it opens, such as "0 22 * * SAT": minute, hour, day of month, month, day of week`))
	}
	schedule, _, err := w.parse()
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(start, w.Start, fmt.Sprintf(
			`use the five fields of cron, minute, hour, day of month, month and day of week, such as "0 22 * * SAT": %v`, err)))
	case schedule.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero():
		errs = append(errs, field.Invalid(start, w.Start, "there is no such day: use one that comes"))
	}
	return errs
}
