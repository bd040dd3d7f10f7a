// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// found answers with a host.
type found struct {
	infra.Adapter
	host *infra.Host
}

func (f *found) Host(context.Context, infra.Subject) (*infra.Host, error) {
	if f.host == nil {
		return nil, &infra.HostGone{Message: "it is gone"}
	}
	return f.host, nil
}

var errHeld = errors.New("it waits")

// held is a phase's answer: an error if the next may not go on.
func held(goOn bool, _ ctrl.Result, err error) error {
	if err == nil && !goOn {
		return errHeld
	}
	return err
}

// TestMaintenance: nothing begins on a host in maintenance, be it one that stays or one that leaves, and all goes on when it ends.
func TestMaintenance(t *testing.T) {
	r := &KubexmConfigReconciler{Runner: NewRunner(t.Context(), 1, time.Second)}
	host := &infra.Host{Host: spec.Host{Name: "w1"}, Maintenance: "a new disk, by ops"}
	s := &scope{config: &bootstrapv1.KubexmConfig{}, machine: &clusterv1.Machine{}, adapter: &found{host: host}, host: host}
	for name, waits := range map[string]func(context.Context, *scope) error{
		"stays": func(ctx context.Context, s *scope) error { return held(r.waitForMaintenance(ctx, s)) },
		"leaves": func(ctx context.Context, s *scope) error {
			s.host = nil
			return held(r.waitForMaintenanceToReset(ctx, s))
		},
	} {
		t.Run(name, func(t *testing.T) {
			host.Maintenance = "a new disk, by ops"
			if err := waits(t.Context(), s); !errors.Is(err, errHeld) {
				t.Errorf("it does not wait: %v", err)
			}
			message := conditions.GetMessage(s.config, bootstrapv1.HostReachableCondition)
			if conditions.GetReason(s.config, bootstrapv1.HostReachableCondition) != bootstrapv1.HostInMaintenanceReason ||
				!strings.Contains(message, "the host w1 is in maintenance: a new disk, by ops") {
				t.Errorf("it says %q", message)
			}
			if conditions.GetMessage(s.config, bootstrapv1.InMaintenanceCondition) != message || hosthealth.LeftAlone(s.config) == nil {
				t.Errorf("it is not known to be in maintenance: %+v", s.config.Status.Conditions)
			}
			host.Maintenance = ""
			if err := waits(t.Context(), s); err != nil || conditions.Has(s.config, bootstrapv1.HostReachableCondition) {
				t.Errorf("it waits after that: %v", err)
			}
			if hosthealth.LeftAlone(s.config) != nil || hosthealth.MaintainedUntil(s.config).IsZero() {
				t.Errorf("when it has ended is not kept: %+v", s.config.Status.Conditions)
			}
		})
	}
	host.Maintenance = "a new disk, by ops"
	s.machine.Annotations = map[string]string{bootstrapv1.SkipHostResetAnnotation: ""}
	if err := held(r.waitForMaintenanceToReset(t.Context(), s)); err != nil {
		t.Errorf("a host that is not to be reset waits: %v", err)
	}
	s.machine.Annotations, s.adapter, s.host = nil, &found{}, nil
	if err := held(r.waitForMaintenanceToReset(t.Context(), s)); err != nil {
		t.Errorf("a host that is gone waits: %v", err)
	}
}

// TestEndMaintenance: a maintenance ends once, also where the infrastructure could not be asked meanwhile or an older manager has written
// that it began. A host that never was in one is not said to be in none, and none of it is in a summary.
func TestEndMaintenance(t *testing.T) {
	ended := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	said := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: ended}
	}
	for name, tc := range map[string]struct {
		said []metav1.Condition
		// is whether it is said that it has ended, and now whether that is so from now on.
		is, now bool
	}{
		"never in one": {said: []metav1.Condition{said(bootstrapv1.HostReachableCondition, metav1.ConditionFalse, bootstrapv1.UnreachableReason)}},
		"it could not be asked": {[]metav1.Condition{
			said(bootstrapv1.HostReachableCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostReason),
			said(bootstrapv1.InMaintenanceCondition, metav1.ConditionTrue, bootstrapv1.HostInMaintenanceReason),
		}, true, true},
		"an older manager": {[]metav1.Condition{
			said(bootstrapv1.HostReachableCondition, metav1.ConditionFalse, bootstrapv1.HostInMaintenanceReason),
		}, true, true},
		"an hour ago": {[]metav1.Condition{
			said(bootstrapv1.InMaintenanceCondition, metav1.ConditionFalse, bootstrapv1.MaintenanceEndedReason),
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &bootstrapv1.KubexmConfig{Status: bootstrapv1.KubexmConfigStatus{Conditions: tc.said}}
			endMaintenance(c)
			at := hosthealth.MaintainedUntil(c)
			if at.IsZero() == tc.is || tc.is && at.After(ended.Time) != tc.now || hosthealth.LeftAlone(c) != nil {
				t.Errorf("it says %+v", c.Status.Conditions)
			}
			for _, kind := range []string{bootstrapv1.DataSecretAvailableCondition, bootstrapv1.HostReachableCondition,
				bootstrapv1.PreflightPassedCondition, bootstrapv1.HostConvergedCondition, bootstrapv1.NodeJoinedCondition} {
				setTrue(c, kind, "Is", "")
			}
			summarise(c)
			if !conditions.IsTrue(c, bootstrapv1.ReadyCondition) || !conditions.IsTrue(c, bootstrapv1.HostReadyCondition) {
				t.Errorf("it is not ready: %+v", c.Status.Conditions)
			}
		})
	}
}

// TestRebootUntil: a maintenance takes none of a reboot's time, and brings none back whose time had passed.
func TestRebootUntil(t *testing.T) {
	asked, timeout := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC), 10*time.Minute
	for name, tc := range map[string]struct {
		maintained time.Time
		want       time.Duration
	}{
		"never maintained":        {time.Time{}, timeout},
		"before it was asked for": {asked.Add(-time.Minute), timeout},
		"in its time":             {asked.Add(9 * time.Minute), 9*time.Minute + timeout},
		"for too long":            {asked.Add(timeout), timeout},
		"much later":              {asked.AddDate(1, 0, 0), timeout},
	} {
		if got := rebootUntil(asked, tc.maintained, timeout).Sub(asked); got != tc.want {
			t.Errorf("%s: it is tried for %s, not %s", name, got, tc.want)
		}
	}
}

// TestRebootAfterMaintenance: a host reboots for what it was asked for before a maintenance that has ended in time, not for older things.
func TestRebootAfterMaintenance(t *testing.T) {
	r := &KubexmConfigReconciler{}
	for name, tc := range map[string]struct {
		maintained time.Duration // since when it is in none
		want       bool
	}{"in time": {5 * time.Minute, true}, "too late": {time.Minute, false}, "long before": {time.Hour, false}} {
		c := &bootstrapv1.KubexmConfig{}
		c.Ask(bootstrapv1.RebootAnnotation, time.Now().Add(-bootstrapv1.RebootTimeout-2*time.Minute))
		conditions.Set(c, metav1.Condition{
			Type: bootstrapv1.InMaintenanceCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.MaintenanceEndedReason,
			LastTransitionTime: metav1.NewTime(time.Now().Add(-tc.maintained)),
		})
		due, err := r.rebootIsDue(t.Context(), &scope{config: c, host: &infra.Host{Host: spec.Host{Name: "w1"}}})
		if err != nil || (due != nil) != tc.want {
			t.Errorf("%s: it is due: %t, %v", name, due != nil, err)
		}
	}
}
