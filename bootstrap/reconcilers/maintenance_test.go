// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/infra"
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
			host.Maintenance = ""
			if err := waits(t.Context(), s); err != nil || conditions.Has(s.config, bootstrapv1.HostReachableCondition) {
				t.Errorf("it waits after that: %v", err)
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
