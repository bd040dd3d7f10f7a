// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// TestRemediation plays what becomes of an unhealthy worker, in a small language:
//
//	new [converge=] [reboot=] [min-healthy=] [reset=]  a worker that was found unhealthy, and its KubexmRemediation, with these seconds
//	set <what>=<to> …   what is so: config=(another kind, or none) node=none reachable=(no, maintenance or yes) owner=(kind, or none)
//	                    labels=control-plane annotation=(one of Cluster API's) healthy=(True or Unknown) says=(reason) machine=none
//	                    deleting=(drains or waits, for its host's reset)
//	ask <converge|reboot> somebody does, by hand
//	did <converge|reboot> the host has done what it was asked for
//	later <duration>    time passes
//	healthy             the Machine is, and the KubexmRemediation goes
//	unhealthy           it is not, and there is another
//	repair                what is decided, and it is done
//	cut                 what is decided, and the process is killed when the host was asked, before anything else is written
func TestRemediation(t *testing.T) {
	datadriven.Walk(t, "testdata/remediation", func(t *testing.T, path string) {
		w := &ward{now: time.Date(2026, 11, 22, 12, 0, 0, 5e8, time.UTC)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			switch d.Cmd {
			case "new":
				w.admit(t, d)
			case "set":
				w.set(t, d)
			case "ask":
				w.of.config.Ask("bootstrap.cluster.x-k8s.io/"+d.CmdArgs[0].Key, w.now)
			case "did":
				done := map[string]bootstrapv1.OperationType{"converge": bootstrapv1.ConvergeOperation, "reboot": bootstrapv1.RebootOperation}
				asked := w.of.config.Asked("bootstrap.cluster.x-k8s.io/" + d.CmdArgs[0].Key)
				w.of.config.Status.SetOperation(bootstrapv1.OperationStatus{
					Type: done[d.CmdArgs[0].Key], RequestTime: metav1.NewTime(asked), EndTime: metav1.NewTime(w.now),
				})
			case "later":
				passed, err := time.ParseDuration(d.CmdArgs[0].Key)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				w.now = w.now.Add(passed)
			case "healthy":
				w.check(metav1.ConditionTrue)
				w.of.remediation = nil
			case "unhealthy":
				w.check(metav1.ConditionFalse)
				w.request()
			case "repair", "cut":
				return w.repair(d.Cmd == "cut")
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			return ""
		})
	})
}

// ward is one case, and what is done with it.
type ward struct {
	now  time.Time
	of   remediationCase
	spec bootstrapv1.KubexmRemediationSpec
}

func (w *ward) admit(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	w.spec = bootstrapv1.KubexmRemediationSpec{}
	for _, arg := range d.CmdArgs {
		var n int32
		if _, err := fmt.Sscan(arg.Vals[0], &n); err != nil {
			d.Fatalf(t, "%s: %v", arg.Key, err)
		}
		switch arg.Key {
		case "converge":
			w.spec.ConvergeTimeoutSeconds = ptr.To(n)
		case "reboot":
			w.spec.RebootTimeoutSeconds = ptr.To(n)
		case "min-healthy":
			w.spec.MinHealthyPeriodSeconds = ptr.To(n)
		default:
			d.Fatalf(t, "unknown %s", arg.Key)
		}
	}
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "w1"}}
	m.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: "workers", Controller: ptr.To(true),
	}}
	m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfig", Name: "w1",
	}
	m.Status.NodeRef.Name = "host1"
	w.of = remediationCase{machine: m, config: &bootstrapv1.KubexmConfig{}}
	w.check(metav1.ConditionFalse)
	w.request()
}

// request is what a MachineHealthCheck makes.
func (w *ward) request() {
	w.of.remediation = &bootstrapv1.KubexmRemediation{Spec: w.spec}
	w.of.remediation.CreationTimestamp = metav1.NewTime(w.now.Truncate(time.Second))
}

func (w *ward) check(status metav1.ConditionStatus) {
	conditions.Set(w.of.machine, metav1.Condition{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: status, Reason: "Checked"})
}

func (w *ward) set(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	m := w.of.machine
	for _, arg := range d.CmdArgs {
		value := strings.Join(arg.Vals, ", ")
		switch arg.Key {
		case "config":
			w.of.config = nil
			if m.Spec.Bootstrap.ConfigRef.Kind = value; value == "none" {
				m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{}
			}
		case "node":
			m.Status.NodeRef = clusterv1.MachineNodeReference{}
		case "reachable":
			said := metav1.Condition{
				Type: bootstrapv1.HostReachableCondition, Status: metav1.ConditionTrue, Reason: bootstrapv1.HostReachableReason,
			}
			switch value {
			case "no":
				said.Status, said.Reason = metav1.ConditionFalse, bootstrapv1.UnreachableReason
			case "maintenance":
				said.Status, said.Reason = metav1.ConditionFalse, bootstrapv1.HostInMaintenanceReason
				said.Message = "the KubexmHost w1 is in maintenance: a disk is replaced"
			}
			conditions.Set(w.of.config, said)
			now := said
			now.Type, now.LastTransitionTime = bootstrapv1.InMaintenanceCondition, metav1.NewTime(w.now)
			if now.Status, now.Reason = metav1.ConditionTrue, said.Reason; value != "maintenance" {
				now.Status, now.Reason = metav1.ConditionFalse, bootstrapv1.MaintenanceEndedReason
			}
			if value == "maintenance" || conditions.IsTrue(w.of.config, now.Type) {
				conditions.Set(w.of.config, now)
			}
		case "bmc":
			w.of.config.Status.Host.BMCAddress = value
		case "owner":
			if m.OwnerReferences[0].Kind = value; value == "none" {
				m.OwnerReferences = nil
			}
		case "labels":
			m.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
		case "annotation":
			m.Annotations = map[string]string{value: ""}
		case "healthy":
			w.check(metav1.ConditionStatus(value))
		case "deleting":
			if m.DeletionTimestamp == nil {
				m.DeletionTimestamp = &metav1.Time{Time: w.now}
			}
			reason := clusterv1.MachineDeletingDrainingNodeReason
			if value == "waits" {
				reason = clusterv1.MachineDeletingWaitingForPreTerminateHookReason
				m.Status.Deletion = &clusterv1.MachineDeletionStatus{WaitForPreTerminateHookStartTime: metav1.NewTime(w.now)}
			}
			conditions.Set(m, metav1.Condition{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: reason})
		case "says":
			conditions.Set(m, metav1.Condition{
				Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Reason: value,
				Message: "too many are replaced already",
			})
		case "machine":
			w.of.machine, w.of.config = nil, nil
		default:
			d.Fatalf(t, "unknown %s", arg.Key)
		}
	}
}

// repair does what the reconciler does, and says what.
func (w *ward) repair(killed bool) string {
	d := w.of.decide(w.now)
	var said strings.Builder
	if d.ask != nil {
		_, what, _ := strings.Cut(d.ask.Stage.Annotation, "/")
		fmt.Fprintf(&said, "asks for %s\n", what)
		w.of.config.Ask(d.ask.Stage.Annotation, d.ask.Asked)
		if killed {
			return said.String() + "is killed\n"
		}
	}
	if status := &w.of.remediation.Status; !d.converge.IsZero() || !d.reboot.IsZero() {
		status.LastConvergeTime, status.LastRebootTime = d.converge, d.reboot
	}
	if d.handsOn {
		said.WriteString("tells the MachineSet\n")
		conditions.Set(w.of.machine, metav1.Condition{
			Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse,
			Reason: clusterv1.MachineOwnerRemediatedWaitingForRemediationReason,
		})
	}
	fmt.Fprintf(&said, "%s, %s: %s\n", d.status, d.Reason, d.Message)
	if !d.onMachine {
		said.WriteString("and does not touch the Machine\n")
	}
	if d.after > 0 {
		fmt.Fprintf(&said, "looks again in %s\n", d.after)
	}
	return said.String()
}
