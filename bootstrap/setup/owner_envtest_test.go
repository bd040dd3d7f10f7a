// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

const recordFile = host.StateDir + "/" + host.OwnerFile

// give writes on a host that it is another cluster's.
func (f *fleet) give(address, cluster string) {
	m := f.machines[address]
	record, err := json.Marshal(host.Owner{
		Cluster: cluster, Authority: "sha256:" + strings.Repeat("b", 64), Role: "Worker", Host: "theirs", MachineID: m.System.MachineID,
	})
	f.Expect(err).NotTo(HaveOccurred())
	m.Put(recordFile, string(record), 0o600)
}

// owner is the name of the cluster that a host says that it is of, "" if of none.
func (f *fleet) owner(address string) string {
	connection := f.machines[address].Connect()
	defer connection.Close()
	facts, err := connection.Observe(f.t.Context(), host.Query{})
	if err != nil || facts.Owner == nil {
		return ""
	}
	return facts.Owner.Cluster
}

// refused are the KubexmConfigs whose hosts are somebody else's, by the condition that says so.
func (f *fleet) refused(condition string) []bootstrapv1.KubexmConfig {
	return slices.DeleteFunc(f.configs(), func(c bootstrapv1.KubexmConfig) bool {
		return conditions.GetReason(&c, condition) != bootstrapv1.HostOwnedByOtherReason
	})
}

func (f *fleet) annotate(object client.Object, name, value string) {
	before, _ := object.DeepCopyObject().(client.Object)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = value
	object.SetAnnotations(annotations)
	f.Expect(f.api.Patch(f.t.Context(), object, client.MergeFrom(before))).To(Succeed())
}

// TestHostsOfOthers: hosts of another cluster are neither converged nor reset, until a person adopts them or gives them up.
func TestHostsOfOthers(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	defer f.explain()
	for address := range f.machines {
		f.give(address, "team-b/other")
	}
	f.declare()
	f.Eventually(func() int {
		return len(f.refused(bootstrapv1.HostConvergedCondition))
	}, patience, 50*time.Millisecond).Should(BeNumerically(">", 0))
	f.Expect(f.used()).To(BeEmpty())

	t.Log("adopted by name, and no other way")
	f.Eventually(func() int {
		for _, c := range f.refused(bootstrapv1.HostConvergedCondition) {
			f.annotate(&c, bootstrapv1.AdoptHostAnnotation, "team-b/other")
		}
		return f.readyConfigs()
	}, patience, 50*time.Millisecond).Should(Equal(2))
	for address := range f.machines {
		f.Expect(f.owner(address)).To(Equal(namespace + "/prod"))
	}
	f.Eventually(func() bool {
		return slices.ContainsFunc(f.configs(), func(c bootstrapv1.KubexmConfig) bool {
			return c.Annotations[bootstrapv1.AdoptHostAnnotation] != ""
		})
	}, patience, 50*time.Millisecond).Should(BeFalse())

	t.Log("a Machine's deletion says why its host is not reset")
	var worker *clusterv1.Machine
	address := ""
	f.Eventually(func(g Gomega) { // Cluster API copies the addresses when it comes to it
		machines := &clusterv1.MachineList{}
		g.Expect(f.api.List(t.Context(), machines, client.InNamespace(namespace),
			client.HasLabels{clusterv1.MachineDeploymentNameLabel})).To(Succeed())
		g.Expect(machines.Items).To(HaveLen(1))
		worker = &machines.Items[0]
		at := slices.IndexFunc(worker.Status.Addresses, func(a clusterv1.MachineAddress) bool {
			return a.Type == clusterv1.MachineExternalIP
		})
		g.Expect(at).To(BeNumerically(">=", 0))
		address = worker.Status.Addresses[at].Address
	}, patience, 50*time.Millisecond).Should(Succeed())
	content := f.content(address)
	f.Expect(content).NotTo(BeEmpty())
	f.give(address, "team-c/third")
	f.scale(0)
	f.Eventually(func() int { return len(f.refused(bootstrapv1.HostResetCondition)) }, patience, 50*time.Millisecond).Should(Equal(1))
	f.Eventually(func() string {
		var message string
		for _, c := range f.configs() {
			if c.Name == worker.Spec.Bootstrap.ConfigRef.Name {
				message = conditions.GetMessage(&c, bootstrapv1.HostReadyCondition)
			}
		}
		return message
	}, patience, 50*time.Millisecond).Should(And(ContainSubstring("team-c/third"), ContainSubstring(bootstrapv1.SkipHostResetAnnotation)))
	f.Expect(f.content(address)).To(Equal(content))
	f.Expect(f.owner(address)).To(Equal("team-c/third"))

	t.Log("given up, it is left as it is")
	f.annotate(worker, bootstrapv1.SkipHostResetAnnotation, "")
	f.Eventually(func() int { return len(f.configs()) }, patience, 50*time.Millisecond).Should(Equal(1))
	f.Expect(f.content(address)).To(Equal(content))
}

// TestOneMachineTwice: a machine that two KubexmHosts lead to is handed out once, and both say so.
func TestOneMachineTwice(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	defer f.explain()
	f.declare()
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))
	used := f.used()
	f.Expect(used).To(HaveLen(2))
	f.create(&infrav1.KubexmHost{ObjectMeta: metav1.ObjectMeta{Name: "again"}, Spec: infrav1.KubexmHostSpec{
		Address: used[0], Access: access(),
	}})
	said := func(name string) func() string {
		return func() string {
			h := &infrav1.KubexmHost{}
			if err := f.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, h); err != nil {
				return err.Error()
			}
			return conditions.GetReason(h, infrav1.UniqueCondition) + " " + conditions.GetReason(h, infrav1.AvailableCondition) + " " +
				conditions.GetMessage(h, infrav1.UniqueCondition)
		}
	}
	f.Eventually(said("again"), patience, 50*time.Millisecond).Should(HavePrefix(infrav1.SameMachineReason + " " + infrav1.SameMachineReason))
	f.Eventually(said(f.machines[used[0]].System.Hostname), patience, 50*time.Millisecond).Should(And(
		HavePrefix(infrav1.SameMachineReason+" "+infrav1.ClaimedReason), ContainSubstring(namespace+"/again")))
	f.Eventually(said(f.machines[used[1]].System.Hostname), patience, 50*time.Millisecond).Should(HavePrefix(infrav1.SharedHostKeyReason))

	f.scale(3) // of which one host is left
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(3))
	f.Consistently(said("again"), time.Second, 50*time.Millisecond).Should(HavePrefix(infrav1.SameMachineReason + " " + infrav1.SameMachineReason))
}
