// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	bootstrapwebhooks "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/webhooks"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/testapi"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	fingerprint = "SHA256:uNiVztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3c"
	patience    = 30 * time.Second
	// blink is longer than the reconcilers need to do something wrong.
	blink = 500 * time.Millisecond
)

// api is a client of the one API server of this package's tests.
var api client.Client

func TestMain(m *testing.M) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), setup.AddToScheme(scheme), bootstrapv1.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	os.Exit(testapi.Package{
		Scheme: scheme,
		Setup: func(mgr ctrl.Manager) error {
			return errors.Join(setup.Reconcilers(mgr, setup.Options{}), setup.Webhooks(mgr), bootstrapwebhooks.SetupWithManager(mgr))
		},
		Use: func(c client.Client, _ *rest.Config) { api = c },
	}.Run(m))
}

// pool is a namespace with a Cluster and hosts.
type pool struct {
	*WithT
	t         *testing.T
	namespace string
	// subnet begins its hosts' addresses: a machine that two KubexmHosts lead to, in whichever namespaces, is handed out once.
	subnet string
}

// pools counts the pools of this process.
var pools atomic.Int32

func newPool(t *testing.T, hosts int) *pool {
	t.Helper()
	p := &pool{WithT: NewWithT(t), t: t, subnet: fmt.Sprintf("10.1.%d.", pools.Add(1))}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "pool-"}}
	p.Expect(api.Create(p.t.Context(), namespace)).To(Succeed())
	p.namespace = namespace.Name
	for i := range hosts {
		p.addHost(fmt.Sprintf("host%02d", i+1), fmt.Sprintf("r%d", i%2+1), fmt.Sprintf("%s%d", p.subnet, i+1))
	}
	p.addCluster()
	return p
}

func (p *pool) addHost(name, domain, address string) {
	host := &infrav1.KubexmHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name, Labels: map[string]string{"role": "worker"}},
		Spec: infrav1.KubexmHostSpec{
			Address: address, FailureDomain: domain,
			Access: spec.Access{
				User: "ops", HostKeys: spec.HostKeys{Pinned: []string{fingerprint}},
				Credentials: spec.Credentials{SecretRef: spec.SecretReference{Name: "ssh"}},
			},
		},
	}
	// The webhook server may be on its way still.
	p.Eventually(func() error { return api.Create(p.t.Context(), host.DeepCopy()) }, patience).Should(Succeed())
}

// addCluster makes a Cluster and its KubexmCluster, and says as Cluster API does that it is provisioned.
func (p *pool) addCluster() {
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "prod"},
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmCluster", Name: "prod",
		}},
	}
	p.Expect(api.Create(p.t.Context(), cluster)).To(Succeed())
	infra := &infrav1.KubexmCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.namespace, Name: "prod", Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cluster, clusterv1.GroupVersion.WithKind("Cluster"))},
	}}
	p.Expect(api.Create(p.t.Context(), infra)).To(Succeed())
	p.Eventually(func(g Gomega) {
		g.Expect(api.Get(p.t.Context(), client.ObjectKeyFromObject(infra), infra)).To(Succeed())
		g.Expect(ptr.Deref(infra.Status.Initialization.Provisioned, false)).To(BeTrue())
	}, patience).Should(Succeed())
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	p.Expect(api.Status().Update(p.t.Context(), cluster)).To(Succeed())
}

// addMachine makes a Machine with bootstrap data, and its KubexmMachine.
func (p *pool) addMachine(name string, labels map[string]string, change func(*infrav1.KubexmMachine)) {
	labels = merged(labels, map[string]string{clusterv1.ClusterNameLabel: "prod"})
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name, Labels: labels},
		Spec: clusterv1.MachineSpec{
			ClusterName: "prod",
			Bootstrap:   clusterv1.Bootstrap{DataSecretName: ptr.To(name)},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachine", Name: name,
			},
		},
	}
	p.Expect(api.Create(p.t.Context(), machine)).To(Succeed())
	infra := &infrav1.KubexmMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.namespace, Name: name, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(machine, clusterv1.GroupVersion.WithKind("Machine"))},
	}}
	if change != nil {
		change(infra)
	}
	p.Expect(api.Create(p.t.Context(), infra)).To(Succeed())
}

func merged(maps ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range maps {
		for key, value := range m {
			all[key] = value
		}
	}
	return all
}

func (p *pool) host(name string) *infrav1.KubexmHost {
	host := &infrav1.KubexmHost{}
	p.Expect(api.Get(p.t.Context(), client.ObjectKey{Namespace: p.namespace, Name: name}, host)).To(Succeed())
	return host
}

func (p *pool) machine(name string) *infrav1.KubexmMachine {
	machine := &infrav1.KubexmMachine{}
	p.Expect(api.Get(p.t.Context(), client.ObjectKey{Namespace: p.namespace, Name: name}, machine)).To(Succeed())
	return machine
}

// claims are the hosts of machines that have one, and what each host says of it.
func (p *pool) claims() (byMachine, byHost map[string]string) {
	byMachine, byHost = map[string]string{}, map[string]string{}
	machines, hosts := &infrav1.KubexmMachineList{}, &infrav1.KubexmHostList{}
	p.Expect(api.List(p.t.Context(), machines, client.InNamespace(p.namespace))).To(Succeed())
	p.Expect(api.List(p.t.Context(), hosts, client.InNamespace(p.namespace))).To(Succeed())
	for _, m := range machines.Items {
		if m.Status.HostRef.Name != "" {
			byMachine[m.Name] = m.Status.HostRef.Name
		}
	}
	for _, h := range hosts.Items {
		if h.Spec.ClaimRef.Name != "" {
			byHost[h.Name] = h.Spec.ClaimRef.Name
		}
	}
	return byMachine, byHost
}

func (p *pool) setClean(name string, status metav1.ConditionStatus, reason string) {
	p.Eventually(func() error {
		host := p.host(name)
		conditions.Set(host, metav1.Condition{Type: infrav1.CleanCondition, Status: status, Reason: reason, Message: "said by the test"})
		return api.Status().Update(p.t.Context(), host)
	}, patience).Should(Succeed())
}

func (p *pool) deleteMachine(name string) {
	p.Expect(api.Delete(p.t.Context(), p.machine(name))).To(Succeed())
	p.Eventually(func() bool {
		err := api.Get(p.t.Context(), client.ObjectKey{Namespace: p.namespace, Name: name}, &infrav1.KubexmMachine{})
		return apierrors.IsNotFound(err)
	}, patience).Should(BeTrue(), "the KubexmMachine %s goes", name)
}

// Ten machines race for five hosts: five get one each, and the others say why not.
func TestMachinesRaceForHosts(t *testing.T) {
	p := newPool(t, 5)
	for i := range 10 {
		p.addMachine(fmt.Sprintf("m%02d", i), nil, nil)
	}
	check := func(g Gomega) {
		byMachine, byHost := p.claims()
		g.Expect(byMachine).To(HaveLen(5))
		g.Expect(byHost).To(HaveLen(5))
		for host, machine := range byHost {
			g.Expect(byMachine).To(HaveKeyWithValue(machine, host))
		}
	}
	p.Eventually(check, patience).Should(Succeed())
	p.Consistently(check, blink).Should(Succeed())

	machines := &infrav1.KubexmMachineList{}
	p.Expect(api.List(p.t.Context(), machines, client.InNamespace(p.namespace))).To(Succeed())
	for i := range machines.Items {
		m := &machines.Items[i]
		if m.Status.HostRef.Name == "" {
			p.Eventually(func(g Gomega) {
				m = p.machine(m.Name)
				g.Expect(conditions.GetReason(m, infrav1.HostClaimedCondition)).To(Equal(infrav1.NoHostReason))
				g.Expect(conditions.GetMessage(m, infrav1.HostClaimedCondition)).To(ContainSubstring("5 taken by other Machines (host01, host02, host03, …)"))
			}, patience).Should(Succeed())
			continue
		}
		host := p.host(m.Status.HostRef.Name)
		p.Expect(m.Spec.ProviderID).To(Equal("kubexm://" + p.namespace + "/" + host.Name))
		p.Expect(ptr.Deref(m.Status.Initialization.Provisioned, false)).To(BeTrue())
		p.Expect(m.Status.FailureDomain).To(Equal(host.Spec.FailureDomain))
		p.Expect(m.Status.Addresses).To(ConsistOf(
			clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: host.Name},
			clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: host.Spec.Address},
			clusterv1.MachineAddress{Type: clusterv1.MachineExternalIP, Address: host.Spec.Address},
		))
		p.Expect(conditions.GetReason(host, infrav1.CleanCondition)).To(Equal(infrav1.InUseReason))
	}

	// One host comes back: one of the waiting machines gets it, and nobody reports it but the host itself.
	byMachine, _ := p.claims()
	for machine, host := range byMachine {
		p.setClean(host, metav1.ConditionTrue, infrav1.ResetReason)
		p.deleteMachine(machine)
		p.Eventually(func(g Gomega) {
			now, _ := p.claims()
			g.Expect(now).To(HaveLen(5))
			g.Expect(now).NotTo(HaveKey(machine))
		}, patience).Should(Succeed())
		break
	}
}

// A host that was not reset is not handed out again, and says how it comes back.
func TestReleaseWithoutResetQuarantines(t *testing.T) {
	p := newPool(t, 1)
	p.addMachine("first", nil, nil)
	p.Eventually(func(g Gomega) {
		byMachine, _ := p.claims()
		g.Expect(byMachine).To(HaveKeyWithValue("first", "host01"))
	}, patience).Should(Succeed())

	err := api.Delete(p.t.Context(), p.host("host01"))
	p.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "deleting a host that a Machine has: %v", err)
	p.Expect(err.Error()).To(ContainSubstring("the KubexmMachine first of the Cluster prod has this host: delete its Machine first"))

	p.deleteMachine("first")
	p.Eventually(func(g Gomega) {
		host := p.host("host01")
		g.Expect(host.Spec.ClaimRef.Name).To(BeEmpty())
		g.Expect(host.Finalizers).To(BeEmpty())
		g.Expect(conditions.GetReason(host, infrav1.CleanCondition)).To(Equal(infrav1.NotResetReason))
		g.Expect(conditions.GetReason(host, infrav1.AvailableCondition)).To(Equal(infrav1.QuarantinedReason))
		g.Expect(conditions.GetMessage(host, infrav1.AvailableCondition)).To(ContainSubstring("Remedy:"))
	}, patience).Should(Succeed())

	p.addMachine("second", nil, nil)
	p.Eventually(func(g Gomega) {
		message := conditions.GetMessage(p.machine("second"), infrav1.ReadyCondition)
		g.Expect(message).To(ContainSubstring("1 in quarantine (host01)"))
	}, patience).Should(Succeed())

	// A move or a restored backup takes the status away, and not the quarantine.
	host := p.host("host01")
	host.Status = infrav1.KubexmHostStatus{}
	p.Eventually(func() error {
		host.ResourceVersion = p.host("host01").ResourceVersion
		return api.Status().Update(p.t.Context(), host)
	}, patience).Should(Succeed())
	p.Eventually(func(g Gomega) {
		g.Expect(conditions.GetReason(p.host("host01"), infrav1.AvailableCondition)).To(Equal(infrav1.QuarantinedReason))
	}, patience).Should(Succeed())
	p.Consistently(func(g Gomega) {
		byMachine, _ := p.claims()
		g.Expect(byMachine).To(BeEmpty())
	}, blink).Should(Succeed())

	// Who has cleaned the host ends its quarantine.
	p.Expect(api.Patch(p.t.Context(), host, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/quarantine"}]`)))).To(Succeed())
	p.Eventually(func(g Gomega) {
		byMachine, _ := p.claims()
		g.Expect(byMachine).To(HaveKeyWithValue("second", "host01"))
	}, patience).Should(Succeed())
}

// The garbage collector, and anybody, may delete a KubexmMachine before its Machine's hooks are done: the host stays until the
// reset, which is one of them.
func TestReleaseWaitsForHooks(t *testing.T) {
	p := newPool(t, 1)
	p.addMachine("m", nil, nil)
	p.Eventually(func(g Gomega) { g.Expect(p.machine("m").Status.HostRef.Name).To(Equal("host01")) }, patience).Should(Succeed())
	owner := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "m"}}
	annotate := func(value string) {
		p.Expect(api.Patch(p.t.Context(), owner, client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, clusterv1.PreTerminateDeleteHookAnnotationPrefix+"/test", value)))).To(Succeed())
	}
	annotate(`""`)
	p.Expect(api.Delete(p.t.Context(), p.machine("m"), client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
	waits := func(message string) func(Gomega) {
		return func(g Gomega) {
			g.Expect(p.host("host01").Spec.ClaimRef.Name).To(Equal("m"))
			g.Expect(conditions.GetReason(p.machine("m"), infrav1.DeletingCondition)).To(Equal(infrav1.WaitingForReleaseReason))
			g.Expect(conditions.GetMessage(p.machine("m"), infrav1.DeletingCondition)).To(ContainSubstring(message))
		}
	}
	p.Eventually(waits("delete the Machine"), patience).Should(Succeed())
	p.Consistently(waits("delete the Machine"), blink).Should(Succeed())

	p.setClean("host01", metav1.ConditionFalse, infrav1.ResetFailedReason) // it will be tried again
	p.Consistently(waits("delete the Machine"), blink).Should(Succeed())

	p.setClean("host01", metav1.ConditionTrue, infrav1.ResetReason)
	annotate("null")
	p.Eventually(func(g Gomega) {
		g.Expect(p.host("host01").Spec.ClaimRef.Name).To(BeEmpty())
		g.Expect(conditions.GetReason(p.host("host01"), infrav1.AvailableCondition)).To(Equal(infrav1.FreeReason))
	}, patience).Should(Succeed())
}

func TestMachinesSpreadOverFailureDomains(t *testing.T) {
	p := newPool(t, 6) // r1: host01, host03, host05; r2: host02, host04, host06
	deployment := map[string]string{clusterv1.MachineDeploymentNameLabel: "md"}
	for i, want := range []string{"host01", "host02", "host03", "host04"} {
		name := fmt.Sprintf("m%d", i)
		p.addMachine(name, deployment, nil)
		p.Eventually(func(g Gomega) {
			g.Expect(p.machine(name).Status.HostRef.Name).To(Equal(want))
		}, patience).Should(Succeed())
	}
	// Another deployment begins anew, and a name comes before everything.
	p.addMachine("named", map[string]string{clusterv1.MachineDeploymentNameLabel: "other"}, func(m *infrav1.KubexmMachine) {
		m.Spec.HostName = "host06"
	})
	p.Eventually(func(g Gomega) { g.Expect(p.machine("named").Status.HostRef.Name).To(Equal("host06")) }, patience).Should(Succeed())
}

// Where nobody declares an endpoint, it is the address of the first control plane Machine's host.
func TestEndpointFollowsFirstControlPlaneHost(t *testing.T) {
	p := newPool(t, 1)
	infra := &infrav1.KubexmCluster{}
	key := client.ObjectKey{Namespace: p.namespace, Name: "prod"}
	p.Expect(api.Get(p.t.Context(), key, infra)).To(Succeed())
	p.Expect(conditions.GetReason(infra, infrav1.EndpointAvailableCondition)).To(Equal(infrav1.WaitingForHostReason))

	p.addMachine("cp", map[string]string{clusterv1.MachineControlPlaneLabel: ""}, nil)
	p.Eventually(func(g Gomega) {
		g.Expect(api.Get(p.t.Context(), key, infra)).To(Succeed())
		g.Expect(infra.Spec.ControlPlaneEndpoint).To(Equal(clusterv1.APIEndpoint{Host: p.subnet + "1", Port: 6443}))
		g.Expect(conditions.IsTrue(infra, infrav1.EndpointAvailableCondition)).To(BeTrue())
	}, patience).Should(Succeed())

	err := api.Patch(p.t.Context(), infra, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"controlPlaneEndpoint":{"host":"10.9.9.9"}}}`)))
	p.Expect(err).To(MatchError(ContainSubstring("spec.controlPlaneEndpoint.host: Invalid value: cannot be changed once it is set: set it back")))
}

// A KubexmCluster goes after its machines, and a paused Cluster keeps what it has.
func TestDeletionAndPause(t *testing.T) {
	p := newPool(t, 1)
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: p.namespace, Name: "prod"}
	p.Expect(api.Get(p.t.Context(), key, cluster)).To(Succeed())
	cluster.Spec.Paused = ptr.To(true)
	p.Expect(api.Update(p.t.Context(), cluster)).To(Succeed())
	p.addMachine("m", nil, nil)
	p.Eventually(func(g Gomega) {
		g.Expect(conditions.IsTrue(p.machine("m"), clusterv1.PausedCondition)).To(BeTrue())
	}, patience).Should(Succeed())
	p.Expect(p.machine("m").Status.HostRef.Name).To(BeEmpty())

	p.Expect(api.Get(p.t.Context(), key, cluster)).To(Succeed())
	cluster.Spec.Paused = nil
	p.Expect(api.Update(p.t.Context(), cluster)).To(Succeed())
	p.Eventually(func(g Gomega) { g.Expect(p.machine("m").Status.HostRef.Name).To(Equal("host01")) }, patience).Should(Succeed())

	infra := &infrav1.KubexmCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	p.Expect(api.Delete(p.t.Context(), infra)).To(Succeed())
	p.Eventually(func(g Gomega) {
		g.Expect(api.Get(p.t.Context(), key, infra)).To(Succeed())
		g.Expect(conditions.GetReason(infra, infrav1.DeletingCondition)).To(Equal(infrav1.WaitingForMachinesReason))
	}, patience).Should(Succeed())
	p.setClean("host01", metav1.ConditionTrue, infrav1.ResetReason)
	p.deleteMachine("m")
	p.Eventually(func() bool { return apierrors.IsNotFound(api.Get(p.t.Context(), key, infra)) }, patience).Should(BeTrue())
	p.Eventually(func(g Gomega) {
		g.Expect(conditions.GetReason(p.host("host01"), infrav1.AvailableCondition)).To(Equal(infrav1.FreeReason))
	}, patience).Should(Succeed())
}

// What leads to a host in use is not changed under whoever works on it, unless the host is paused.
func TestClaimedHostKeepsItsAccess(t *testing.T) {
	p := newPool(t, 1)
	p.addMachine("one", nil, nil)
	host := &infrav1.KubexmHost{}
	key := client.ObjectKey{Namespace: p.namespace, Name: "host01"}
	p.Eventually(func(g Gomega) {
		g.Expect(api.Get(p.t.Context(), key, host)).To(Succeed())
		g.Expect(host.Spec.ClaimRef.Name).To(Equal("one"))
	}, patience).Should(Succeed())
	patch := func(body string) error {
		return api.Patch(p.t.Context(), host, client.RawPatch(types.MergePatchType, []byte(body)))
	}
	for field, body := range map[string]string{
		"spec.address":            `{"spec": {"address": "10.9.9.9", "internalAddresses": ["` + p.subnet + `1"]}}`,
		"spec.access.user":        `{"spec": {"access": {"user": "mallory"}}}`,
		"spec.access.port":        `{"spec": {"access": {"port": 2222}}}`,
		"spec.access.hostKeys":    `{"spec": {"access": {"hostKeys": {"pinned": ["SHA256:AAAAztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3c"]}}}}`,
		"spec.access.credentials": `{"spec": {"access": {"credentials": {"secretRef": {"name": "others"}}}}}`,
	} {
		err := patch(body)
		p.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%s: %v", field, err)
		p.Expect(err).To(MatchError(ContainSubstring(field)))
	}
	p.Expect(patch(`{"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}, "spec": {"access": {"port": 2222}}}`)).To(Succeed())
	p.Expect(patch(`{"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}}`)).To(Succeed())
	p.Expect(patch(`{"spec": {"access": {"port": 22}}}`)).NotTo(Succeed())
}

// TestClaimsSurviveAMove: an object that was moved is another one of its name. One that says itself that it has the host keeps it, and one
// that does not gets another.
func TestClaimsSurviveAMove(t *testing.T) {
	p := newPool(t, 3)
	p.addMachine("m", nil, nil)
	p.Eventually(func(g Gomega) { g.Expect(p.machine("m").Spec.ProviderID).NotTo(BeEmpty()) }, patience).Should(Succeed())
	first := p.machine("m")
	had := first.Status.HostRef.Name
	p.Expect(p.host(had).Spec.ClaimRef.UID).To(Equal(string(first.UID)))

	p.makeAnew("m", func(m *infrav1.KubexmMachine) { m.Spec.ProviderID = first.Spec.ProviderID })
	p.Eventually(func(g Gomega) {
		moved := p.machine("m")
		g.Expect(moved.UID).NotTo(Equal(first.UID))
		g.Expect(moved.Status.HostRef.Name).To(Equal(had))
		g.Expect(p.host(had).Spec.ClaimRef.UID).To(Equal(string(moved.UID)))
		g.Expect(p.host(had).IsQuarantined()).To(BeFalse())
	}, patience).Should(Succeed())

	p.makeAnew("m", func(*infrav1.KubexmMachine) {})
	p.Eventually(func(g Gomega) {
		g.Expect(p.machine("m").Status.HostRef.Name).NotTo(BeElementOf("", had))
		g.Expect(p.host(had).Spec.ClaimRef.Name).To(BeEmpty())
		g.Expect(p.host(had).Spec.Quarantine.Reason).To(Equal(infrav1.NotResetReason))
	}, patience).Should(Succeed())
}

// makeAnew replaces a KubexmMachine by one of its name, and nobody releases its host: as clusterctl does, and who removes finalizers.
func (p *pool) makeAnew(name string, change func(*infrav1.KubexmMachine)) {
	was := p.machine(name)
	p.Expect(api.Patch(p.t.Context(), was, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`)))).To(Succeed())
	p.Eventually(func(g Gomega) {
		g.Expect(conditions.IsTrue(p.machine(name), clusterv1.PausedCondition)).To(BeTrue())
	}, patience).Should(Succeed())
	p.Expect(api.Delete(p.t.Context(), was)).To(Succeed())
	p.Expect(api.Patch(p.t.Context(), was, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
	p.Eventually(func() bool {
		return apierrors.IsNotFound(api.Get(p.t.Context(), client.ObjectKeyFromObject(was), &infrav1.KubexmMachine{}))
	}, patience).Should(BeTrue())
	anew := &infrav1.KubexmMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.namespace, Name: name, Labels: was.Labels, OwnerReferences: was.OwnerReferences,
	}}
	change(anew)
	p.Expect(api.Create(p.t.Context(), anew)).To(Succeed())
}

// TestMaintenance: a host that somebody works on is handed out when that has ended.
func TestMaintenance(t *testing.T) {
	p := newPool(t, 1)
	p.Expect(api.Patch(p.t.Context(), p.host("host01"), client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"maintenance":{"message":"a new disk"}}}`)))).To(Succeed())
	p.addMachine("m", nil, nil)
	p.Eventually(func(g Gomega) {
		g.Expect(conditions.GetReason(p.host("host01"), infrav1.AvailableCondition)).To(Equal(infrav1.MaintenanceReason))
		g.Expect(conditions.GetMessage(p.machine("m"), infrav1.HostClaimedCondition)).To(ContainSubstring("1 in maintenance (host01)"))
	}, patience).Should(Succeed())
	p.Expect(api.Patch(p.t.Context(), p.host("host01"), client.RawPatch(types.JSONPatchType,
		[]byte(`[{"op":"remove","path":"/spec/maintenance"}]`)))).To(Succeed())
	p.Eventually(func(g Gomega) { g.Expect(p.machine("m").Status.HostRef.Name).To(Equal("host01")) }, patience).Should(Succeed())
}

// TestExternallyManaged: a KubexmCluster that somebody else manages is left to them.
// A template says what its Machines' hosts have, and follows them; a Machine takes none that is too small.
func TestRequirements(t *testing.T) {
	p := newPool(t, 0)
	p.addHost("small", "", p.subnet+"1")
	p.addHost("unknown", "", p.subnet+"2")
	template := &infrav1.KubexmMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "workers"}}
	p.Expect(api.Create(t.Context(), template)).To(Succeed())
	declare := func(name string, cpus int32, memory string) {
		p.Eventually(func() error {
			h := p.host(name)
			h.Spec.Capacity = infrav1.HostCapacity{CPUs: cpus, Memory: resource.MustParse(memory)}
			return api.Update(t.Context(), h)
		}, patience).Should(Succeed())
	}
	offers := func(cpus, memory string) {
		t.Helper()
		p.Eventually(func(g Gomega) {
			g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(template), template)).To(Succeed())
			g.Expect(template.Status.Capacity.Cpu().String()).To(Equal(cpus))
			g.Expect(template.Status.Capacity.Memory().String()).To(Equal(memory))
			g.Expect(template.Status.NodeInfo.OperatingSystem).To(Equal("linux"))
		}, patience).Should(Succeed())
	}
	p.Eventually(func(g Gomega) {
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(template), template)).To(Succeed())
		g.Expect(template.Status.ObservedGeneration).To(Equal(template.Generation))
	}, patience).Should(Succeed())
	p.Expect(template.Status.Capacity).To(BeEmpty())
	declare("small", 2, "4Gi")
	offers("2", "4Gi")

	p.addMachine("m", nil, func(m *infrav1.KubexmMachine) {
		m.Spec.Requirements = infrav1.HostCapacity{CPUs: 4, Memory: resource.MustParse("4Gi")}
	})
	p.Eventually(func(g Gomega) {
		g.Expect(conditions.GetMessage(p.machine("m"), infrav1.HostClaimedCondition)).To(And(
			ContainSubstring("1 with fewer than 4 processors (small)"), ContainSubstring("1 of unknown processors (say so in spec.capacity) (unknown)")))
	}, patience).Should(Succeed())
	declare("unknown", 4, "8Gi")
	p.Eventually(func() string { return p.machine("m").Status.HostRef.Name }, patience).Should(Equal("unknown"))
	offers("2", "4Gi")
}

// TestHostNetworks: a Machine does not claim a host that bootstrap would refuse, until the host declares an address that it would not.
func TestHostNetworks(t *testing.T) {
	p := newPool(t, 1)
	shared := &bootstrapv1.KubexmClusterConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "prod"}, Spec: bootstrapv1.KubexmClusterConfigSpec{Version: "v1.36.3"},
	}
	shared.Spec.Cluster.Network.HostCIDRs = []string{"192.0.2.0/24"}
	p.Eventually(func() error { return api.Create(t.Context(), shared.DeepCopy()) }, patience).Should(Succeed())
	p.addMachine("m", nil, nil)
	p.Eventually(func() string { return conditions.GetMessage(p.machine("m"), infrav1.HostClaimedCondition) }, patience).Should(
		ContainSubstring("1 with no IPv4 address in the networks of hosts (network.hostCIDRs: 192.0.2.0/24) (host01)"))
	p.Eventually(func() error {
		h := p.host("host01")
		h.Spec.InternalAddresses = []string{"192.0.2.7"}
		return api.Update(t.Context(), h)
	}, patience).Should(Succeed())
	p.Eventually(func() string { return p.machine("m").Status.HostRef.Name }, patience).Should(Equal("host01"))
}

func TestExternallyManaged(t *testing.T) {
	p := newPool(t, 0)
	infra := &infrav1.KubexmCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.namespace, Name: "theirs", Annotations: map[string]string{clusterv1.ManagedByAnnotation: "terraform"},
	}}
	p.Expect(api.Create(p.t.Context(), infra)).To(Succeed())
	p.Consistently(func(g Gomega) {
		g.Expect(api.Get(p.t.Context(), client.ObjectKeyFromObject(infra), infra)).To(Succeed())
		g.Expect(infra.Finalizers).To(BeEmpty())
		g.Expect(infra.Status.Conditions).To(BeEmpty())
	}, blink).Should(Succeed())
}
