// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

func TestMaintenanceWindows(t *testing.T) {
	nights := spec.MaintenanceWindow{Start: "0 22 * * SAT", DurationMinutes: 180}
	berlin := spec.MaintenanceWindow{Start: "30 2 * * *", DurationMinutes: 60, TimeZone: "Europe/Berlin"}
	for name, tc := range map[string]struct {
		windows []spec.MaintenanceWindow
		at      string
		opens   string // "" if one is open
	}{
		"none":                                   {nil, "2026-11-21T12:00:00Z", ""},
		"before it":                              {[]spec.MaintenanceWindow{nights}, "2026-11-21T21:59:59Z", "2026-11-21T22:00:00Z"},
		"at its beginning":                       {[]spec.MaintenanceWindow{nights}, "2026-11-21T22:00:00Z", ""},
		"past midnight":                          {[]spec.MaintenanceWindow{nights}, "2026-11-22T00:59:59Z", ""},
		"at its end":                             {[]spec.MaintenanceWindow{nights}, "2026-11-22T01:00:00Z", "2026-11-28T22:00:00Z"},
		"the first of two":                       {[]spec.MaintenanceWindow{nights, berlin}, "2026-11-21T12:00:00Z", "2026-11-21T22:00:00Z"},
		"in a zone, in winter":                   {[]spec.MaintenanceWindow{berlin}, "2026-11-21T12:00:00Z", "2026-11-22T01:30:00Z"},
		"in a zone, in summer":                   {[]spec.MaintenanceWindow{berlin}, "2026-07-21T12:00:00Z", "2026-07-22T00:30:00Z"},
		"on the night that has no half past two": {[]spec.MaintenanceWindow{berlin}, "2026-03-29T00:00:00Z", "2026-03-30T00:30:00Z"},
		"one that is longer than its interval":   {[]spec.MaintenanceWindow{{Start: "0 0 * * *", DurationMinutes: 10080}}, "2026-11-21T12:00:00Z", ""},
		"one that is none": {[]spec.MaintenanceWindow{{Start: "whenever", DurationMinutes: 1}},
			"2026-11-21T12:00:00Z", "2027-11-21T12:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, tc.at)
			if err != nil {
				t.Fatal(err)
			}
			wait := (&spec.Disruption{MaintenanceWindows: tc.windows}).Awaits("", "", at)
			got := ""
			if wait != nil {
				got = wait.Until.UTC().Format(time.RFC3339)
			}
			if got != tc.opens {
				t.Errorf("opens %q, want %q", got, tc.opens)
			}
		})
	}
}

func TestAwaits(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	d := &spec.Disruption{Approval: spec.ApprovalRequired, MaintenanceWindows: []spec.MaintenanceWindow{{Start: "0 22 * * SAT", DurationMinutes: 60}}}
	for _, tt := range []struct {
		approved string
		at       time.Time
		want     string
	}{
		{"", noon, "waits for approval and then for the maintenance window that opens at Sat 2026-11-21 22:00 UTC"},
		{"other", noon.Add(10 * time.Hour), "waits for approval"},
		{"this", noon, "waits for the maintenance window that opens at Sat 2026-11-21 22:00 UTC"},
		{"this", noon.Add(10 * time.Hour), ""},
	} {
		got := ""
		if w := d.Awaits("this", tt.approved, tt.at); w != nil {
			got = w.String()
		}
		if got != tt.want {
			t.Errorf("approved %q at %s: %q, want %q", tt.approved, tt.at.Format(time.TimeOnly), got, tt.want)
		}
	}
}

func TestDisruptionOf(t *testing.T) {
	c, n := &spec.Cluster{}, &spec.Node{}
	c.Disruption.Approval = spec.ApprovalRequired
	if !spec.DisruptionOf(c, n).Restricts() {
		t.Error("what the cluster says does not count")
	}
	n.Disruption.Approval = spec.ApprovalNone
	if spec.DisruptionOf(c, n).Restricts() {
		t.Error("what the host's own part says does not count")
	}
}

func TestDigest(t *testing.T) {
	a, b := spec.Digest("a", "b"), spec.Digest("a b")
	if a == b || len(a) != 16 || a != spec.Digest("a", "b") {
		t.Errorf("%s and %s", a, b)
	}
}

// TestMaxUnavailable: a host's own number counts before the cluster's, and says nothing of approvals and windows.
func TestMaxUnavailable(t *testing.T) {
	c, n := &spec.Cluster{}, &spec.Node{}
	if spec.MaxUnavailableOf(c, n) != 0 {
		t.Error("there is a number that nobody has declared")
	}
	c.Disruption = spec.Disruption{Approval: spec.ApprovalRequired, MaxUnavailable: 3}
	if got := spec.MaxUnavailableOf(c, n); got != 3 {
		t.Errorf("the cluster's number is %d", got)
	}
	n.Disruption.MaxUnavailable = 5
	if got := spec.MaxUnavailableOf(c, n); got != 5 {
		t.Errorf("the host's own number is %d", got)
	}
	if !spec.DisruptionOf(c, n).Restricts() {
		t.Error("a host's own number takes the cluster's approval away")
	}
	for most, valid := range map[int32]bool{0: true, 1: true, 10000: true, -1: false, 10001: false} {
		node := spec.Node{Disruption: spec.Disruption{MaxUnavailable: most}}
		node.Default()
		if errs := node.Validate(field.NewPath("spec")); (len(errs) == 0) != valid {
			t.Errorf("%d: %v", most, errs)
		}
	}
}
