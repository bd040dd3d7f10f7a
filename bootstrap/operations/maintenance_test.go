// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// maintain begins a maintenance of a host, or ends it.
func (p *play) maintain(name string, begins bool) {
	said := metav1.Condition{
		Type: bootstrapv1.InMaintenanceCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.MaintenanceEndedReason,
		LastTransitionTime: metav1.NewTime(p.now),
	}
	if begins {
		said.Status, said.Reason, said.Message = metav1.ConditionTrue, bootstrapv1.HostInMaintenanceReason, "a new disk"
	}
	conditions.Set(p.configs[name], said)
}

func (p *play) says(host int, want string) {
	p.Helper()
	if got := p.hosts[host].Message; !strings.Contains(got, want) {
		p.Errorf("%s says %q, want %q", p.hosts[host].Name, got, want)
	}
}

// TestTimeInMaintenance: it is none of a host's time, who is in it already is not asked and takes nobody's place, and nobody fails by it.
func TestTimeInMaintenance(t *testing.T) {
	p := newPlay(t, bootstrapv1.RestartType, 1)
	p.maintain("a", true)
	p.goes(0, "b", "Pending Running Pending")
	p.says(0, "it waits: a new disk")
	p.goes(29*time.Minute, "", "Pending Running Pending")
	p.maintain("b", true)
	p.goes(3*time.Hour, "", "Pending Running Pending")
	p.says(1, "its time does not count meanwhile: a new disk")
	p.maintain("b", false)
	p.goes(29*time.Minute, "", "Pending Running Pending")
	p.ends("b", bootstrapv1.RestartOperation, bootstrapv1.RunSucceeded)
	p.goes(0, "c", "Pending Succeeded Running")
	p.ends("c", bootstrapv1.RestartOperation, bootstrapv1.RunSucceeded)
	p.goes(time.Hour, "", "Pending Succeeded Succeeded")
	p.maintain("a", false)
	p.goes(0, "a", "Running Succeeded Succeeded")
	p.goes(30*time.Minute, "", "Failed Succeeded Succeeded")
}

// TestEndsInMaintenance: what a host has ended before its maintenance is taken in.
func TestEndsInMaintenance(t *testing.T) {
	p := newPlay(t, bootstrapv1.CollectLogsType, 1)
	p.goes(0, "a", "Running Pending Pending")
	p.ends("a", bootstrapv1.CollectLogsOperation, bootstrapv1.RunSucceeded)
	p.maintain("a", true)
	p.goes(time.Second, "b", "Succeeded Running Pending")
}

// TestTimeInPause: that of a KubexmConfig that was paused by itself is none either.
func TestTimeInPause(t *testing.T) {
	p := newPlay(t, bootstrapv1.CollectLogsType, 1)
	pause := func(status metav1.ConditionStatus) {
		conditions.Set(p.configs["a"], metav1.Condition{
			Type: clusterv1.PausedCondition, Status: status, Reason: clusterv1.PausedReason, LastTransitionTime: metav1.NewTime(p.now),
		})
	}
	p.goes(0, "a", "Running Pending Pending")
	pause(metav1.ConditionTrue)
	p.goes(time.Hour, "", "Running Pending Pending")
	pause(metav1.ConditionFalse)
	p.goes(9*time.Minute, "", "Running Pending Pending")
	p.goes(time.Minute, "b", "Failed Running Pending")
}

// TestRebootIsCut: a host does not reboot for what it was asked for too long ago. It is asked once more after a maintenance, unless another
// has failed meanwhile or its request has time still; and not after a move, of which nobody knows what it has done before.
func TestRebootIsCut(t *testing.T) {
	for name, tc := range map[string]struct {
		passes  time.Duration
		do      func(*play)
		asks    string
		becomes string
	}{
		"for long":     {time.Hour, func(p *play) { p.maintain("a", false) }, "a", "Running Running Pending"},
		"for a minute": {time.Minute, func(p *play) { p.maintain("a", false) }, "", "Running Running Pending"},
		"after a move": {time.Hour, func(p *play) {
			p.created = p.now
			p.configs["a"].Status.Conditions = nil
		}, "", "Running Running Pending"},
		"another fails": {time.Hour, func(p *play) {
			p.maintain("a", false)
			p.ends("b", bootstrapv1.RebootOperation, bootstrapv1.RunFailed)
		}, "", "Skipped Failed Skipped"},
		"it was done": {time.Hour, func(p *play) {
			p.maintain("a", false)
			p.ends("a", bootstrapv1.RebootOperation, bootstrapv1.RunSucceeded)
		}, "", "Running Running Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t, bootstrapv1.RebootType, 2)
			p.goes(0, "a b", "Running Running Pending")
			p.goes(time.Minute, "", "Running Running Pending")
			p.maintain("a", true)
			p.maintain("b", true)
			p.now = p.now.Add(tc.passes)
			tc.do(p)
			p.goes(0, tc.asks, tc.becomes)
			p.goes(0, "", tc.becomes)
		})
	}
}

// TestMoved: what hosts have answered is lost by a move, and they have their time anew to answer again.
func TestMoved(t *testing.T) {
	p := newPlay(t, bootstrapv1.CollectLogsType, 1)
	p.goes(0, "a", "Running Pending Pending")
	p.ends("a", bootstrapv1.CollectLogsOperation, bootstrapv1.RunSucceeded)
	p.goes(time.Second, "b", "Succeeded Running Pending")
	p.now = p.now.Add(time.Hour)
	p.created = p.now
	for i := range p.hosts {
		h := &p.hosts[i]
		*h = bootstrapv1.HostOperationStatus{ConfigName: h.Name, Name: h.Name, Phase: bootstrapv1.OperationPending}
	}
	p.configs["a"].Status = bootstrapv1.KubexmConfigStatus{}
	p.goes(9*time.Minute, "", "Running Running Pending")
	p.ends("a", bootstrapv1.CollectLogsOperation, bootstrapv1.RunSucceeded)
	p.goes(time.Minute, "c", "Succeeded Failed Running")
}
