// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
)

// ask asks the worker's host to reboot.
func (f *fleet) ask(value string) {
	f.t.Helper()
	config, _ := f.worker(f)
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, bootstrapv1.RebootAnnotation, value))
	f.Expect(f.api.Patch(f.t.Context(), config, patch)).To(Succeed())
}

// rebooted is how the last reboot of the worker's host ended that was asked for by this value, "" if it has not.
func (f *fleet) rebooted(value string) bootstrapv1.RunOutcome {
	config, _ := f.worker(f)
	if last := config.Status.Operation(bootstrapv1.RebootOperation); last.RequestTime.UTC().Format(time.RFC3339) == value {
		return last.Outcome
	}
	return ""
}

// notes are what events say of a reason.
func (f *fleet) notes(reason string) []string {
	list := &eventsv1.EventList{}
	f.Expect(f.api.List(f.t.Context(), list, client.InNamespace(namespace))).To(Succeed())
	var notes []string
	for _, e := range list.Items {
		if e.Reason == reason {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

func TestReboot(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 2)
	defer f.explain()
	var booted, reboots atomic.Int64
	booted.Store(time.Now().Add(-time.Hour).UnixMilli())
	for _, m := range f.machines {
		m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
			switch c.Title {
			case "uptime":
				return host.Result{Stdout: fmt.Appendln(nil, (time.Now().UnixMilli()-booted.Load())/10)}
			case "reboot":
				booted.Store(time.Now().UnixMilli())
				reboots.Add(1)
			case "read logs":
				return host.Result{Stdout: []byte("what was logged")}
			}
			return host.Result{}
		}
	}
	f.declare()
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))
	config, _ := f.worker(f)
	address := config.Status.Host.Address

	t.Log("what is no time, and what was asked too long ago, is not done")
	f.ask("now")
	f.Eventually(f.notes, patience, 50*time.Millisecond).WithArguments("RebootFailed").Should(ContainElement(ContainSubstring(`has "now": want a time`)))
	f.ask(time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
	f.Consistently(reboots.Load, "2s", "100ms").Should(BeZero())

	t.Log("a host is rebooted once, after its logs were kept, and converged then")
	asked := time.Now().UTC().Format(time.RFC3339)
	f.machines[address].Remove(made)
	f.ask(asked)
	f.Eventually(f.rebooted, patience, 50*time.Millisecond).WithArguments(asked).Should(Equal(bootstrapv1.RunSucceeded))
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))
	f.Expect(f.content(address)).NotTo(BeEmpty())
	f.Consistently(reboots.Load, "2s", "100ms").Should(BeEquivalentTo(1))
	kept, err := filepath.Glob(filepath.Join(f.dir, "host-logs", namespace, config.Status.Host.Name, "*"))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(kept).To(HaveLen(1))
	f.Expect(f.notes("HostLogsCollected")).To(ConsistOf(ContainSubstring(kept[0])))
	f.Expect(f.notes("HostRebooted")).To(HaveLen(1))

	t.Log("one that cannot be told to in time is given up, and worked on as ever when it is back")
	f.setDown(address, host.KindUnreachable)
	asked = time.Now().Add(3*time.Second - bootstrapv1.RebootTimeout).UTC().Format(time.RFC3339)
	f.ask(asked)
	f.Eventually(f.rebooted, patience, 50*time.Millisecond).WithArguments(asked).Should(Equal(bootstrapv1.RunFailed))
	f.Expect(f.notes("RebootFailed")).To(ContainElement(ContainSubstring("could not be asked to reboot")))

	t.Log("in the time that what repairs the Machine declares")
	_, worker := f.worker(f)
	f.create(&bootstrapv1.KubexmRemediation{
		ObjectMeta: metav1.ObjectMeta{Name: worker.Name}, Spec: bootstrapv1.KubexmRemediationSpec{RebootTimeoutSeconds: ptr.To[int32](60)},
	})
	asked = time.Now().Add(3*time.Second - time.Minute).UTC().Format(time.RFC3339)
	f.ask(asked)
	f.Eventually(f.rebooted, patience, 50*time.Millisecond).WithArguments(asked).Should(Equal(bootstrapv1.RunFailed))
	f.setDown(address, "")
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))

	t.Log("the logs of a host that is reset because it failed are kept, too")
	f.Eventually(func() error {
		_, machine := f.worker(f)
		before := machine.DeepCopy()
		conditions.Set(machine, metav1.Condition{
			Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse,
			Reason: clusterv1.MachineHealthCheckUnhealthyNodeReason,
		})
		return f.api.Status().Patch(t.Context(), machine, client.MergeFrom(before))
	}, patience, 50*time.Millisecond).Should(Succeed())
	_, machine := f.worker(f)
	f.Expect(f.api.Delete(t.Context(), machine)).To(Succeed())
	f.Eventually(f.notes, patience, 50*time.Millisecond).WithArguments("HostLogsCollected").Should(HaveLen(2))
}
