// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	capisecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
)

// declareWithNodes declares a cluster whose Nodes are looked for in the management cluster, where the test makes them.
func (f *fleet) declareWithNodes() {
	f.t.Helper()
	kubeconfig, err := os.ReadFile(filepath.Join(f.dir, "kubeconfig"))
	f.Expect(err).NotTo(HaveOccurred())
	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: capisecret.Name("prod", capisecret.Kubeconfig), Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"},
		},
		Type: clusterv1.ClusterSecretType, Data: map[string][]byte{capisecret.KubeconfigDataName: kubeconfig},
	})
	f.declare()
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "workers"}}
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:""}}}}}`, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation)
	f.Expect(f.api.Patch(f.t.Context(), md, client.RawPatch("application/merge-patch+json", patch))).To(Succeed(), "there is no API for volumes")
}

// members are the Machines of the cluster.
func (f *fleet) members() []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	f.Expect(f.api.List(f.t.Context(), list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}

// joined counts the Machines that have Nodes, and makes those that are missing.
func (f *fleet) joined() int {
	n := 0
	for _, m := range f.members() {
		if m.Status.NodeRef.IsDefined() {
			n++
		}
		if m.Spec.ProviderID == "" || !m.DeletionTimestamp.IsZero() {
			continue
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: path.Base(m.Spec.ProviderID)}}
		node.Spec.ProviderID = m.Spec.ProviderID
		if err := f.api.Create(f.t.Context(), node); err == nil {
			f.ready(node.Name, corev1.ConditionTrue)
		} else if !apierrors.IsAlreadyExists(err) {
			f.t.Errorf("Node %s: %v", node.Name, err)
		}
	}
	return n
}

// ready is what a kubelet says of its Node.
func (f *fleet) ready(name string, status corev1.ConditionStatus) {
	f.t.Helper()
	f.Eventually(func() error {
		node := &corev1.Node{}
		if err := f.api.Get(f.t.Context(), client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.Now(), Reason: "Test",
		}}
		return f.api.Status().Update(f.t.Context(), node)
	}, patience, 50*time.Millisecond).Should(Succeed())
}

// remediation is why, or why not, something is done with a Machine, "" if it has no KubexmRemediation or nothing is decided yet.
func (f *fleet) remediation(name string) string {
	r := &bootstrapv1.KubexmRemediation{}
	if err := f.api.Get(f.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, r); err != nil {
		f.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		return ""
	}
	return conditions.GetReason(r, bootstrapv1.RemediatingCondition)
}

// repaired is whether a Machine has no KubexmRemediation any more, and does not say that it has.
func (f *fleet) repaired(name string) func(Gomega) {
	return func(g Gomega) {
		err := f.api.Get(f.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &bootstrapv1.KubexmRemediation{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		m := &clusterv1.Machine{}
		g.Expect(f.api.Get(f.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, m)).To(Succeed())
		g.Expect(conditions.IsTrue(m, clusterv1.MachineHealthCheckSucceededCondition)).To(BeTrue())
		g.Expect(conditions.Has(m, clusterv1.MachineExternallyRemediatedCondition)).To(BeFalse())
		g.Expect(conditions.Has(m, clusterv1.MachineOwnerRemediatedCondition)).To(BeFalse())
	}
}

// explainMachines logs, when the test fails, what is said of Machines and of their remediation.
func (f *fleet) explainMachines() {
	if !f.t.Failed() {
		return
	}
	machines, remediations := &clusterv1.MachineList{}, &bootstrapv1.KubexmRemediationList{}
	_ = f.api.List(context.Background(), machines, client.InNamespace(namespace))
	_ = f.api.List(context.Background(), remediations, client.InNamespace(namespace))
	for _, m := range machines.Items {
		for _, condition := range m.Status.Conditions {
			f.t.Logf("Machine %s: %s %s %s: %s", m.Name, condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	for _, r := range remediations.Items {
		for _, condition := range r.Status.Conditions {
			f.t.Logf("KubexmRemediation %s: %s %s %s: %s", r.Name, condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
}

// TestRemediation has Cluster API's own reconcilers find a worker unhealthy, and replace it when nothing else helps.
func TestRemediation(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 3)
	defer f.explain()
	defer f.explainMachines()
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
			}
			return host.Result{}
		}
	}
	f.declareWithNodes()
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))
	f.Eventually(f.joined, patience, 50*time.Millisecond).Should(Equal(2))
	template := &bootstrapv1.KubexmRemediationTemplate{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}
	f.create(template, &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: clusterv1.MachineHealthCheckSpec{
		ClusterName: "prod", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
		Checks: clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionFalse, TimeoutSeconds: ptr.To[int32](0)},
		}},
		Remediation: clusterv1.MachineHealthCheckRemediation{TemplateRef: clusterv1.MachineHealthCheckRemediationTemplateReference{
			APIVersion: bootstrapv1.GroupVersion.String(), Kind: "KubexmRemediationTemplate", Name: template.Name,
		}},
	}})
	declare := func(spec string) {
		t.Helper()
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"template":{"spec":`+spec+`}}}`))
		f.Expect(f.api.Patch(t.Context(), template, patch)).To(Succeed())
	}

	t.Log("an unhealthy worker's host is brought to what it must be, and that is enough")
	config, machine := f.worker(f)
	f.ready(config.Status.Host.Name, corev1.ConditionFalse)
	f.Eventually(f.remediation, patience, 50*time.Millisecond).WithArguments(machine.Name).Should(Equal(bootstrapv1.ReconvergingHostReason))
	f.Eventually(func() string {
		config, machine = f.worker(f)
		return conditions.GetReason(machine, clusterv1.MachineExternallyRemediatedCondition)
	}, patience, 50*time.Millisecond).Should(Equal(bootstrapv1.ReconvergingHostReason))
	f.Expect(config.Asked(bootstrapv1.ConvergeAnnotation)).NotTo(BeZero())
	f.Expect(conditions.Has(machine, clusterv1.MachineOwnerRemediatedCondition)).To(BeFalse())
	f.Eventually(f.notes, patience, 50*time.Millisecond).WithArguments("ReconvergingHost").Should(ConsistOf(
		ContainSubstring("the Machine " + machine.Name + " is unhealthy: its host is converged again")))
	f.ready(config.Status.Host.Name, corev1.ConditionTrue)
	f.Eventually(f.repaired(machine.Name), patience, 50*time.Millisecond).Should(Succeed())

	t.Log("when it is unhealthy again soon, its host is rebooted, and that is enough")
	declare(`{"convergeTimeoutSeconds":1}`)
	f.ready(config.Status.Host.Name, corev1.ConditionFalse)
	f.Eventually(f.remediation, patience, 50*time.Millisecond).WithArguments(machine.Name).Should(Equal(bootstrapv1.RebootingHostReason))
	f.Eventually(reboots.Load, patience, 50*time.Millisecond).Should(BeEquivalentTo(1))
	f.ready(config.Status.Host.Name, corev1.ConditionTrue)
	f.Eventually(f.repaired(machine.Name), patience, 50*time.Millisecond).Should(Succeed())
	f.Expect(f.notes("ReconvergingHost")).To(HaveLen(1))

	t.Log("when neither helps, its MachineSet replaces it")
	declare(`{"convergeTimeoutSeconds":2,"rebootTimeoutSeconds":10,"minHealthyPeriodSeconds":0}`)
	f.ready(config.Status.Host.Name, corev1.ConditionFalse)
	last := &bootstrapv1.KubexmRemediation{}
	f.Eventually(func(g Gomega) {
		g.Expect(f.api.Get(t.Context(), client.ObjectKeyFromObject(machine), last)).To(Succeed())
		g.Expect(last.Status.LastRebootTime.IsZero()).To(BeFalse())
	}, patience, 50*time.Millisecond).Should(Succeed())
	f.Expect(last.Status.LastRebootTime.Sub(last.Status.LastConvergeTime.Time)).To(BeNumerically(">=", 2*time.Second))
	f.Eventually(f.notes, patience, 50*time.Millisecond).WithArguments("WaitingForOwnerRemediation").Should(ConsistOf(SatisfyAll(
		ContainSubstring("converging its host again has not helped; rebooting its host has not helped"),
		ContainSubstring("the MachineSet workers-"))))
	f.Eventually(func(g Gomega) {
		f.joined()
		now, successor := f.worker(g)
		g.Expect(successor.UID).NotTo(Equal(machine.UID))
		g.Expect(conditions.IsTrue(now, bootstrapv1.HostReadyCondition)).To(BeTrue())
		err := f.api.Get(t.Context(), client.ObjectKeyFromObject(machine), last)
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	}, patience, 50*time.Millisecond).Should(Succeed())
	f.Expect(reboots.Load()).To(BeEquivalentTo(2))
	f.Eventually(f.free, patience, 50*time.Millisecond).Should(Equal(1))

	t.Log("a control plane's Machine is left alone, and nothing at all is done while that is asked for")
	for _, m := range f.members() {
		if _, is := m.Labels[clusterv1.MachineControlPlaneLabel]; is {
			machine = &m
		}
	}
	f.create(&bootstrapv1.KubexmRemediation{ObjectMeta: metav1.ObjectMeta{
		Name: machine.Name, Annotations: map[string]string{clusterv1.PausedAnnotation: ""},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: machine.Name, UID: machine.UID,
		}},
	}})
	f.Eventually(func(g Gomega) {
		g.Expect(f.api.Get(t.Context(), client.ObjectKeyFromObject(machine), last)).To(Succeed())
		g.Expect(conditions.IsTrue(last, clusterv1.PausedCondition)).To(BeTrue())
	}, patience, 50*time.Millisecond).Should(Succeed())
	f.Expect(f.remediation(machine.Name)).To(BeEmpty())
	f.Expect(f.api.Patch(t.Context(), last, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, clusterv1.PausedAnnotation)))).To(Succeed())
	f.Eventually(f.remediation, patience,
		50*time.Millisecond).WithArguments(machine.Name).Should(Equal(bootstrapv1.ControlPlaneMachineReason))
	f.Expect(f.api.Get(t.Context(), client.ObjectKeyFromObject(machine), machine)).To(Succeed())
	f.Expect(conditions.Has(machine, clusterv1.MachineExternallyRemediatedCondition)).To(BeFalse())
	f.Expect(f.api.Delete(t.Context(), last)).To(Succeed())
	f.Eventually(func() bool {
		return apierrors.IsNotFound(f.api.Get(t.Context(), client.ObjectKeyFromObject(last), last))
	}, patience, 50*time.Millisecond).Should(BeTrue())
}
