// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// kubelets is what the kubelets of hosts in memory run with, and how they are brought to something else.
type kubelets struct {
	mu sync.Mutex
	// runs is what each host's runs with; changing are the hosts that are being changed, in the order in which they have begun.
	runs     map[string]string
	changing []string
	// broken is what no kubelet runs with.
	broken string
	// goOn lets those that are being changed go on, one for each value; nobody waits while it is nil.
	goOn chan struct{}
}

// answer is what a host answers to a command of the plan.
func (k *kubelets) answer(m *fake.Machine, c host.Command) host.Result {
	name, value := m.System.Hostname, c.Argv[len(c.Argv)-1]
	if c.Argv[0] != "is" && c.Argv[0] != "change" {
		return host.Result{} // it is not of the plan
	}
	k.mu.Lock()
	if c.Argv[0] == "is" {
		defer k.mu.Unlock()
		if k.runs[name] != value {
			return host.Result{ExitCode: 1}
		}
		return host.Result{}
	}
	goOn := k.goOn
	if c.Argv[1] != string(spec.RoleWorker) {
		goOn = nil
	}
	if goOn != nil {
		k.changing = append(k.changing, name)
	}
	k.mu.Unlock()
	if goOn != nil {
		<-goOn
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if value == k.broken && goOn != nil {
		return host.Result{ExitCode: 1, Stderr: []byte("the kubelet does not become healthy")}
	}
	k.runs[name] = value
	return host.Result{}
}

func (k *kubelets) begun() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string{}, k.changing...)
}

// restart forgets who has begun.
func (k *kubelets) restart(broken string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.changing, k.broken = nil, broken
}

// with counts the hosts that run with a value.
func (k *kubelets) with(value string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for _, v := range k.runs {
		if v == value {
			n++
		}
	}
	return n
}

// TestTurns: a change of what hosts share reaches one worker of a MachineDeployment at a time, the next only when the Node of the last
// is Ready again, and no further one after it has failed on one.
func TestTurns(t *testing.T) {
	t.Parallel() // most of it is waiting
	kubelet := &kubelets{runs: map[string]string{}}
	planner := func(n pipeline.Node, _ *artifact.Bundle) (*plan.Plan, error) {
		b := plan.New("Test", n.Target.ClusterName)
		value := strconv.Itoa(int(n.Target.Cluster.Kubernetes.Kubelet.MaxPods))
		b.Host(n.Target.Host.Name, plan.Module{Name: "test", Tasks: []plan.Task{{Name: "file", Steps: []step.Step{
			step.New(step.Meta{Name: "test/file"}, step.File{Path: made, Mode: 0o644, Content: step.Literal("made\n")}),
			step.New(step.Meta{Name: "test/kubelet", Disrupts: "restarts kubelet", Retry: step.Retry{Attempts: 1}}, step.Command{
				Title: "restart the kubelet", Argv: []string{"change", string(n.Target.Host.Role), value}, Done: step.Done{Check: []string{"is", value}},
			}),
		}}}})
		return b.Plan()
	}
	f := newFleetWith(t, 4, planner, func(f *fleet) { f.settle = time.Second })
	defer f.explain()
	for _, m := range f.machines {
		m.OnCommand = kubelet.answer
	}
	f.declareWithNodes()
	f.scale(3)
	f.Eventually(func() []int { return []int{f.joined(), f.readyConfigs()} }, patience, 50*time.Millisecond).Should(Equal([]int{4, 4}))
	f.Eventually(func(g Gomega) { // what is not known to be Ready counts as away
		machines := &clusterv1.MachineList{}
		g.Expect(f.api.List(t.Context(), machines, client.InNamespace(namespace))).To(Succeed())
		for i := range machines.Items {
			g.Expect(conditions.IsTrue(&machines.Items[i], clusterv1.MachineNodeReadyCondition)).To(BeTrue(), machines.Items[i].Name)
		}
	}, patience, 50*time.Millisecond).Should(Succeed())
	goOn := make(chan struct{})
	kubelet.mu.Lock()
	kubelet.goOn = goOn
	kubelet.mu.Unlock()
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	declare := func(maxPods int) {
		t.Helper()
		cp := &controlplanev1.KubexmControlPlane{}
		cp.Namespace, cp.Name = namespace, "prod"
		f.Expect(f.api.Patch(t.Context(), cp, client.RawPatch("application/merge-patch+json",
			fmt.Appendf(nil, `{"spec":{"cluster":{"kubernetes":{"kubelet":{"maxPods":%d}}}}}`, maxPods)))).To(Succeed())
	}
	// waits are the reasons for which hosts wait, and said what the first of them says.
	said := ""
	waits := func() []string {
		reasons := []string{}
		for _, c := range f.configs() {
			if conditions.IsFalse(&c, bootstrapv1.DisruptionAllowedCondition) {
				reasons = append(reasons, conditions.GetReason(&c, bootstrapv1.DisruptionAllowedCondition))
				said = conditions.GetMessage(&c, bootstrapv1.DisruptionAllowedCondition)
			}
		}
		return reasons
	}
	turns := func() int {
		shared := &bootstrapv1.KubexmClusterConfig{}
		f.Expect(f.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "prod"}, shared)).To(Succeed())
		return len(shared.Status.Turns)
	}
	queue, stopped := bootstrapv1.WaitingForPoolReason, bootstrapv1.PoolStoppedReason

	t.Log("one of three begins, and the others say whom they wait for")
	declare(101)
	f.Eventually(waits, patience, 50*time.Millisecond).Should(Equal([]string{queue, queue}))
	f.Eventually(kubelet.begun, patience, 50*time.Millisecond).Should(HaveLen(1))
	f.Eventually(func() string { waits(); return said }, patience, 50*time.Millisecond).Should(
		ContainSubstring("waits for " + kubelet.begun()[0] + ", being updated since "))
	f.Expect(said).To(ContainSubstring("* test/kubelet: restarts kubelet"))
	f.Consistently(kubelet.begun, blink, 50*time.Millisecond).Should(HaveLen(1))

	t.Log("no other follows while its Node is not Ready")
	f.ready(kubelet.begun()[0], corev1.ConditionFalse)
	goOn <- struct{}{}
	f.Eventually(func() string { waits(); return said }, patience, 50*time.Millisecond).Should(ContainSubstring("whose Node is not Ready"))
	f.Consistently(kubelet.begun, blink, 50*time.Millisecond).Should(HaveLen(1))

	t.Log("the others follow, one after the other")
	f.ready(kubelet.begun()[0], corev1.ConditionTrue)
	for n := 2; n <= 3; n++ {
		f.Eventually(kubelet.begun, patience, 50*time.Millisecond).Should(HaveLen(n))
		f.Consistently(kubelet.begun, blink, 50*time.Millisecond).Should(HaveLen(n))
		goOn <- struct{}{}
	}
	f.Eventually(func() int { return kubelet.with("101") }, patience, 50*time.Millisecond).Should(Equal(4))
	f.Eventually(waits, patience, 50*time.Millisecond).Should(BeEmpty())
	f.Eventually(turns, patience, 50*time.Millisecond).Should(BeZero())

	t.Log("what fails on one reaches no other")
	kubelet.restart("102")
	declare(102)
	f.Eventually(kubelet.begun, patience, 50*time.Millisecond).Should(HaveLen(1))
	goOn <- struct{}{}
	f.Eventually(waits, patience, 50*time.Millisecond).Should(Equal([]string{stopped, stopped}))
	first := kubelet.begun()[0]
	f.Expect(said).To(ContainSubstring("the change failed on " + first))
	f.Expect(said).To(ContainSubstring("the kubelet does not become healthy"))

	t.Log("it is tried again there, and there only")
	f.Eventually(kubelet.begun, patience, 50*time.Millisecond).Should(Equal([]string{first, first}))
	goOn <- struct{}{}
	f.Consistently(kubelet.begun, blink, 50*time.Millisecond).Should(HaveEach(first))

	t.Log("something else that is declared begins there, and goes on to the others")
	kubelet.restart("102")
	declare(103)
	release() // from here on nobody waits for the test
	f.Eventually(func() int { return kubelet.with("103") }, patience, 50*time.Millisecond).Should(Equal(4))
	f.Expect(kubelet.begun()[0]).To(Equal(first))
	f.Eventually(turns, patience, 50*time.Millisecond).Should(BeZero())
	f.Eventually(waits, patience, 50*time.Millisecond).Should(BeEmpty())
}
