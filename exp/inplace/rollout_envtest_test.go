// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package inplace_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/crd"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/inplace"
)

const (
	namespace = "fleet"
	old       = "v1.35.4"
	updated   = "v1.36.3"
	patience  = 3 * time.Minute
	often     = 50 * time.Millisecond
)

// fleet is a management plane with Cluster API's own reconcilers and the one under test. The test itself plays the providers,
// and the plane's API server is the cluster that the Machines are Nodes of.
type fleet struct {
	*WithT
	t     *testing.T
	dir   string
	plane *embedded.Plane
	api   client.Client

	mu sync.Mutex
	// failing are Machines whose hosts do not come to have what they must.
	failing map[string]bool
	// slow are Machines whose hosts take until they are taken off.
	slow map[string]bool
	// problem is why the last of what was played failed, if it did: objects come and go.
	problem error
	// atOnce is how many hosts were on their way at the same time, at most.
	atOnce int
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{WithT: NewWithT(t), t: t, dir: t.TempDir(), failing: map[string]bool{}, slow: map[string]bool{}}
	f.start()
	ctx, stop := context.WithCancel(context.Background())
	var playing sync.WaitGroup
	playing.Go(func() {
		for ctx.Err() == nil {
			f.mu.Lock()
			f.play(ctx)
			f.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(often):
			}
		}
	})
	t.Cleanup(func() {
		stop()
		playing.Wait()
		f.stop()
	})
	return f
}

func (f *fleet) start() {
	definitions, err := crd.CRDs()
	f.Expect(err).NotTo(HaveOccurred())
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	f.plane, err = embedded.Start(f.t.Context(), embedded.Options{
		Dir: f.dir, Namespace: namespace,
		Etcd: filepath.Join(assets, "etcd"), APIServer: filepath.Join(assets, "kube-apiserver"),
		ControllerManager: filepath.Join(assets, "kube-controller-manager"),
		AddToScheme:       []func(*runtime.Scheme) error{bootstrapv1.AddToScheme, controlplanev1.AddToScheme, infrav1.AddToScheme},
		CRDs:              definitions,
		Setup: []func(context.Context, ctrl.Manager) error{func(_ context.Context, mgr ctrl.Manager) error {
			return inplace.SetupWithManager(mgr, inplace.Options{})
		}},
	})
	f.Expect(err).NotTo(HaveOccurred())
	f.api = f.plane.Client()
}

func (f *fleet) stop() {
	if err := f.plane.Stop(context.Background()); err != nil {
		f.t.Error(err)
	}
}

// restart ends the plane with all reconcilers, and starts another one with its objects.
func (f *fleet) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop()
	f.start()
}

// play is what infrastructure, hosts and their kubelets do.
func (f *fleet) play(ctx context.Context) {
	machines := &clusterv1.MachineList{}
	if err := f.api.List(ctx, machines, client.InNamespace(namespace)); err != nil {
		return
	}
	underway := 0
	for i := range machines.Items {
		m := &machines.Items[i]
		if f.playHost(ctx, m) {
			underway++
		}
	}
	f.atOnce = max(f.atOnce, underway)
}

// playHost brings one Machine's host on, and reports whether it is on its way from one version to another.
func (f *fleet) playHost(ctx context.Context, m *clusterv1.Machine) (underway bool) {
	status := func(o client.Object, change func()) {
		before := o.DeepCopyObject().(client.Object)
		change()
		if err := f.api.Status().Patch(ctx, o, client.MergeFrom(before)); err != nil {
			f.problem = err
		}
	}
	id := "test://" + m.Name
	infra := &infrav1.KubexmMachine{}
	if f.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: m.Spec.InfrastructureRef.Name}, infra) == nil &&
		infra.Spec.ProviderID == "" {
		before := infra.DeepCopy()
		infra.Spec.ProviderID = id
		_ = f.api.Patch(ctx, infra, client.MergeFrom(before))
		status(infra, func() { infra.Status.Initialization.Provisioned = ptr.To(true) })
	}
	config := &bootstrapv1.KubexmConfig{}
	if f.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: m.Spec.Bootstrap.ConfigRef.Name}, config) != nil {
		return false
	}
	has := config.Status.KubernetesVersion
	underway = has != "" && has != m.Spec.Version
	if f.slow[m.Name] && underway {
		return true
	}
	status(config, func() {
		config.Status.DataSecretName, config.Status.Initialization.DataSecretCreated = "data", ptr.To(true)
		converged, failures := metav1.ConditionTrue, int32(0)
		if f.failing[m.Name] && underway {
			converged, failures = metav1.ConditionFalse, 1
		} else {
			config.Status.KubernetesVersion, config.Status.ConvergedGeneration = m.Spec.Version, config.Generation
		}
		last := config.Status.OperationFor(bootstrapv1.ConvergeOperation)
		if last.StartTime.IsZero() {
			last.StartTime, last.EndTime = metav1.Now(), metav1.Now()
		}
		last.Failures = ptr.To(failures)
		for _, kind := range []string{bootstrapv1.HostConvergedCondition, bootstrapv1.HostReadyCondition} {
			conditions.Set(config, metav1.Condition{Type: kind, Status: converged, Reason: "Played", Message: "the kubelet exited"})
		}
		conditions.Set(config, metav1.Condition{Type: bootstrapv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Played"})
	})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}, Spec: corev1.NodeSpec{ProviderID: id}}
	if err := f.api.Get(ctx, client.ObjectKeyFromObject(node), node); apierrors.IsNotFound(err) {
		_ = f.api.Create(ctx, node)
	}
	status(node, func() {
		node.Status.NodeInfo.KubeletVersion = config.Status.KubernetesVersion
		node.Status.Conditions = nil
		for kind, is := range map[corev1.NodeConditionType]corev1.ConditionStatus{
			corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse,
			corev1.NodeDiskPressure: corev1.ConditionFalse, corev1.NodePIDPressure: corev1.ConditionFalse,
		} {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, Status: is, Reason: "Played"})
		}
	})
	return underway
}

func (f *fleet) set(of map[string]bool, machine string, is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of[machine] = is
}

func (f *fleet) create(objects ...client.Object) {
	f.t.Helper()
	for _, o := range objects {
		o.SetNamespace(namespace)
		f.Expect(f.api.Create(f.t.Context(), o)).To(Succeed(), "%T", o)
	}
}

// declare creates a cluster whose control plane has a version, and a MachineDeployment.
func (f *fleet) declare(replicas int32) {
	infra := &infrav1.KubexmCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}, Spec: infrav1.KubexmClusterSpec{
		ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443},
	}}
	template := clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachineTemplate", Name: "workers"}
	controlPlane := &controlplanev1.KubexmControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "prod"}, Spec: controlplanev1.KubexmControlPlaneSpec{
		Version:         old,
		MachineTemplate: controlplanev1.MachineTemplate{Spec: controlplanev1.MachineTemplateSpec{InfrastructureRef: template}},
	}}
	labels := map[string]string{clusterv1.ClusterNameLabel: "prod", "pool": "a"}
	f.create(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "prod-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"}},
			Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": f.plane.Kubeconfig()}},
		infra, controlPlane,
		&infrav1.KubexmMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "workers"}},
		&bootstrapv1.KubexmConfigTemplate{ObjectMeta: metav1.ObjectMeta{Name: "workers"}},
		&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}, Spec: clusterv1.ClusterSpec{
			ControlPlaneEndpoint: infra.Spec.ControlPlaneEndpoint,
			InfrastructureRef:    clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmCluster", Name: "prod"},
			ControlPlaneRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubexmControlPlane", Name: "prod",
			},
		}},
		&clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "prod", Replicas: ptr.To(replicas), Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: labels}, Spec: clusterv1.MachineSpec{
				ClusterName: "prod", Version: old, InfrastructureRef: template,
				Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfigTemplate", Name: "workers",
				}},
			}},
		}},
	)
	before := infra.DeepCopy()
	infra.Status.Initialization.Provisioned = ptr.To(true)
	f.Expect(f.api.Status().Patch(f.t.Context(), infra, client.MergeFrom(before))).To(Succeed())
	f.controlPlane(old, old)
}

// controlPlane is declared to have a version, and has one.
func (f *fleet) controlPlane(wanted, has string) {
	c := &controlplanev1.KubexmControlPlane{}
	f.Expect(f.api.Get(f.t.Context(), client.ObjectKey{Namespace: namespace, Name: "prod"}, c)).To(Succeed())
	before := c.DeepCopy()
	c.Spec.Version = wanted
	f.Expect(f.api.Patch(f.t.Context(), c, client.MergeFrom(before))).To(Succeed())
	before = c.DeepCopy()
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	c.Status.Version, c.Status.Versions = has, []clusterv1.StatusVersion{{Version: has, Replicas: 1}}
	f.Expect(f.api.Status().Patch(f.t.Context(), c, client.MergeFrom(before))).To(Succeed())
}

func (f *fleet) deployment() *clusterv1.MachineDeployment {
	md := &clusterv1.MachineDeployment{}
	f.Expect(f.api.Get(f.t.Context(), client.ObjectKey{Namespace: namespace, Name: "workers"}, md)).To(Succeed())
	return md
}

func (f *fleet) machines() []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	f.Expect(f.api.List(f.t.Context(), list, client.InNamespace(namespace))).To(Succeed())
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return list.Items
}

// identities are the UIDs of all that a replacement would make anew.
func (f *fleet) identities() map[types.UID]string {
	all := map[types.UID]string{}
	for _, m := range f.machines() {
		all[m.UID] = m.Name
	}
	sets := &clusterv1.MachineSetList{}
	f.Expect(f.api.List(f.t.Context(), sets, client.InNamespace(namespace))).To(Succeed())
	for _, s := range sets.Items {
		all[s.UID] = s.Name
	}
	return all
}

// asked is how many Machines were asked to have the version.
func (f *fleet) asked() int {
	n := 0
	for _, m := range f.machines() {
		if m.Spec.Version == updated {
			n++
		}
	}
	return n
}

func (f *fleet) reason() string {
	return conditions.GetReason(f.deployment(), inplace.UpgradingCondition)
}

func (f *fleet) patch(change func(*clusterv1.MachineDeployment)) {
	md := f.deployment()
	before := md.DeepCopy()
	change(md)
	f.Expect(f.api.Patch(f.t.Context(), md, client.MergeFrom(before))).To(Succeed())
}

func (f *fleet) available(n int32) func(Gomega) {
	return func(g Gomega) { g.Expect(ptr.Deref(f.deployment().Status.AvailableReplicas, 0)).To(Equal(n)) }
}

func (f *fleet) explain() {
	if !f.t.Failed() {
		return
	}
	f.t.Logf("played last: %v", f.problem)
	md := f.deployment()
	f.t.Logf("MachineDeployment %v %s", md.Annotations, md.Spec.Template.Spec.Version)
	for _, c := range md.Status.Conditions {
		f.t.Logf("MachineDeployment: %s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, m := range f.machines() {
		f.t.Logf("Machine %s %s", m.Name, m.Spec.Version)
		for _, c := range m.Status.Conditions {
			f.t.Logf("  %s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
}

// TestNothingIsReplaced: the Machines of a MachineDeployment come to another version and stay who they are, no matter who is killed
// meanwhile; and Cluster API takes it for a rollout that is over.
func TestNothingIsReplaced(t *testing.T) {
	f := newFleet(t)
	defer f.explain()
	f.declare(3)
	f.Eventually(f.available(3), patience, often).Should(Succeed())
	before := f.identities()
	first, second := f.machines()[0].Name, f.machines()[1].Name

	t.Log("workers wait for the control plane")
	f.set(f.slow, first, true)
	f.patch(func(md *clusterv1.MachineDeployment) {
		metav1.SetMetaDataAnnotation(&md.ObjectMeta, inplace.VersionAnnotation, updated)
	})
	f.Eventually(f.reason, patience, often).Should(Equal(inplace.WaitingForControlPlaneReason))
	f.controlPlane(updated, old)
	f.Consistently(func() int { return f.asked() }, time.Second, often).Should(BeZero())
	f.controlPlane(updated, updated)

	t.Log("one begins, and the others wait for it, also when another manager takes over")
	f.Eventually(func() int { return f.asked() }, patience, often).Should(Equal(1))
	f.restart()
	f.Eventually(f.reason, patience, often).Should(Equal(inplace.UpgradingReason))
	f.Consistently(func() int { return f.asked() }, time.Second, often).Should(Equal(1))

	t.Log("one that fails stops the others, until it is repaired")
	f.set(f.failing, second, true)
	f.set(f.slow, first, false)
	f.Eventually(f.reason, patience, often).Should(Equal(inplace.HostFailedReason))
	f.Expect(conditions.GetMessage(f.deployment(), inplace.UpgradingCondition)).To(ContainSubstring("the kubelet exited"))
	f.Consistently(func() int { return f.asked() }, time.Second, often).Should(Equal(2))
	f.set(f.failing, second, false)

	t.Log("all have it, and nothing was replaced")
	f.Eventually(func() int { return f.asked() }, patience, often).Should(Equal(3))
	f.restart()
	f.Eventually(f.reason, patience, often).Should(Equal(inplace.UpgradedReason))
	f.Eventually(func(g Gomega) {
		md := f.deployment()
		g.Expect(md.Spec.Template.Spec.Version).To(Equal(updated))
		g.Expect(md.Annotations).NotTo(HaveKey(inplace.VersionAnnotation))
		g.Expect(md.Annotations).NotTo(HaveKey(clusterv1.PausedAnnotation))
		g.Expect(md.Status.ObservedGeneration).To(Equal(md.Generation))
		g.Expect(conditions.IsFalse(md, clusterv1.PausedCondition)).To(BeTrue())
		g.Expect(conditions.IsFalse(md, clusterv1.MachineDeploymentRollingOutCondition)).To(BeTrue())
		g.Expect(conditions.IsTrue(md, clusterv1.MachineDeploymentMachinesUpToDateCondition)).To(BeTrue())
		g.Expect(ptr.Deref(md.Status.UpToDateReplicas, 0)).To(BeEquivalentTo(3))
		g.Expect(md.Status.Versions).To(Equal([]clusterv1.StatusVersion{{Version: updated, Replicas: 3}}))
	}, patience, often).Should(Succeed())
	f.Expect(f.identities()).To(Equal(before))
	f.Expect(f.atOnce).To(Equal(1))

	t.Log("what is made later has the version")
	f.patch(func(md *clusterv1.MachineDeployment) { md.Spec.Replicas = ptr.To[int32](4) })
	f.Eventually(func() int { return f.asked() }, patience, often).Should(Equal(4))
	after := f.identities()
	for id, name := range before {
		f.Expect(after).To(HaveKeyWithValue(id, name))
	}
	f.Expect(after).To(HaveLen(len(before) + 1))
}

// TestReplacement: what carries no annotation is rolled by Cluster API, as ever.
func TestReplacement(t *testing.T) {
	f := newFleet(t)
	defer f.explain()
	f.declare(1)
	f.Eventually(f.available(1), patience, often).Should(Succeed())
	before := f.machines()[0].UID
	f.controlPlane(updated, updated)
	f.patch(func(md *clusterv1.MachineDeployment) { md.Spec.Template.Spec.Version = updated })
	f.Eventually(func() error {
		all := f.machines()
		if len(all) == 1 && all[0].UID != before && all[0].Spec.Version == updated {
			return nil
		}
		return fmt.Errorf("there are %d Machines", len(all))
	}, patience, often).Should(Succeed())
	f.Expect(f.deployment().Status.Conditions).NotTo(ContainElement(HaveField("Type", inplace.UpgradingCondition)))
}
