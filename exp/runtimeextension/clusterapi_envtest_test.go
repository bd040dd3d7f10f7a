// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package runtimeextension_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	bootstrapwebhooks "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/webhooks"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	controlplanewebhooks "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/webhooks"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded/crds"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	infrawebhooks "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/webhooks"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/runtimeextension"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/testapi"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	old, updated = "v1.35.4", "v1.36.3"
	patience     = 4 * time.Minute
	often        = 100 * time.Millisecond
	loopback     = "127.0.0.1"
)

// fleet is Cluster API's own manager with its feature gates on, our webhooks, and the extension under test. The test itself plays
// hosts and providers, and the API server is the cluster that Machines are Nodes of, too.
type fleet struct {
	*WithT
	t           *testing.T
	environment *envtest.Environment
	api         client.Client
	log         string

	mu sync.Mutex
	// failing are Machines whose hosts do not come to have what they must; slow are those whose hosts take until they are taken off.
	failing, slow map[string]bool
	// atOnce is how many hosts were on their way at the same time, at most.
	atOnce int
	// problem is why the last of what was played failed, if it did: objects come and go.
	problem error
}

func newFleet(t *testing.T) *fleet {
	ctrl.SetLogger(logr.Discard())
	f := &fleet{WithT: NewWithT(t), t: t, log: filepath.Join(t.TempDir(), "core.log"), failing: map[string]bool{}, slow: map[string]bool{}}
	core := filepath.Join(t.TempDir(), "core")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", core, "sigs.k8s.io/cluster-api/core").CombinedOutput()
	f.Expect(err).NotTo(HaveOccurred(), "%s", out)
	f.environment, err = testapi.Start(t.Context())
	f.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = f.environment.Stop() })

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, runtimev1.AddToScheme,
		bootstrapv1.AddToScheme, controlplanev1.AddToScheme, infrav1.AddToScheme,
	} {
		f.Expect(add(scheme)).To(Succeed())
	}
	f.api, err = client.New(f.environment.Config, client.Options{Scheme: scheme})
	f.Expect(err).NotTo(HaveOccurred())
	hooks := f.serve(scheme)
	f.startCore(core)
	f.create(&runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "kubexm"}, Spec: runtimev1.ExtensionConfigSpec{
		ClientConfig: runtimev1.ClientConfig{
			URL: "https://" + net.JoinHostPort(loopback, strconv.Itoa(hooks)), CABundle: f.environment.WebhookInstallOptions.LocalServingCAData,
		},
	}})
	f.play()
	return f
}

// serve serves our webhooks and the extension, and returns its port.
func (f *fleet) serve(scheme *runtime.Scheme) int {
	hooks, port := f.environment.WebhookInstallOptions, f.freePort()
	mgr, err := ctrl.NewManager(f.environment.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir,
		}),
	})
	f.Expect(err).NotTo(HaveOccurred())
	for _, add := range []func(ctrl.Manager) error{bootstrapwebhooks.SetupWithManager,
		controlplanewebhooks.SetupWithManager, infrawebhooks.SetupWithManager} {
		f.Expect(add(mgr)).To(Succeed())
	}
	f.Expect(runtimeextension.SetupWithManager(mgr,
		runtimeextension.Options{Host: loopback, Port: port, CertDir: hooks.LocalServingCertDir})).To(Succeed())
	f.while(func(ctx context.Context) {
		if err := mgr.Start(ctx); err != nil {
			f.t.Error(err)
		}
	})
	return port
}

// while has something done until the test is over.
func (f *fleet) while(do func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { do(ctx) })
	f.t.Cleanup(func() {
		stop()
		done.Wait()
	})
}

func (f *fleet) freePort() int {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	f.Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// startCore starts Cluster API's core manager with the gates on, and has the API server ask its webhooks.
func (f *fleet) startCore(program string) {
	hooks, port := f.environment.WebhookInstallOptions, f.freePort()
	kubeconfig := filepath.Join(f.t.TempDir(), "kubeconfig")
	f.Expect(os.WriteFile(kubeconfig, f.environment.KubeConfig, 0o600)).To(Succeed())
	log, err := os.Create(f.log)
	f.Expect(err).NotTo(HaveOccurred())
	f.while(func(ctx context.Context) {
		defer log.Close()
		core := exec.CommandContext(ctx, program, "--kubeconfig="+kubeconfig, "--feature-gates=RuntimeSDK=true,InPlaceUpdates=true",
			"--webhook-port="+strconv.Itoa(port), "--webhook-cert-dir="+hooks.LocalServingCertDir,
			"--health-addr=0", "--diagnostics-address=0", "--insecure-diagnostics", "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields")
		core.Stdout, core.Stderr = log, log
		core.Cancel = func() error { return core.Process.Signal(syscall.SIGTERM) }
		core.WaitDelay = 30 * time.Second
		if err := core.Run(); err != nil && ctx.Err() == nil {
			f.t.Errorf("Cluster API's manager: %v", err)
		}
	})
	mutating, validating, err := crds.Webhooks()
	f.Expect(err).NotTo(HaveOccurred())
	mutating.Name, validating.Name = "core-"+mutating.Name, "core-"+validating.Name
	direct := func(to *admissionregistrationv1.WebhookClientConfig) {
		*to = admissionregistrationv1.WebhookClientConfig{
			URL: ptr.To("https://" + net.JoinHostPort(loopback, strconv.Itoa(port)) + *to.Service.Path), CABundle: hooks.LocalServingCAData,
		}
	}
	for i := range mutating.Webhooks {
		direct(&mutating.Webhooks[i].ClientConfig)
	}
	for i := range validating.Webhooks {
		direct(&validating.Webhooks[i].ClientConfig)
	}
	f.Expect(f.api.Create(f.t.Context(), mutating)).To(Succeed())
	f.Expect(f.api.Create(f.t.Context(), validating)).To(Succeed())
}

// create creates objects, as soon as the webhooks answer.
func (f *fleet) create(objects ...client.Object) {
	f.t.Helper()
	for _, o := range objects {
		if _, isOfCluster := o.(*runtimev1.ExtensionConfig); !isOfCluster {
			o.SetNamespace(namespace)
		}
		f.Eventually(func() error { return f.api.Create(f.t.Context(), o) }, patience, often).Should(Succeed(), "%T", o)
	}
}

// play does what infrastructure, hosts and their kubelets do.
func (f *fleet) play() {
	f.while(func(ctx context.Context) {
		for ctx.Err() == nil {
			machines := &clusterv1.MachineList{}
			if err := f.api.List(ctx, machines, client.InNamespace(namespace)); err == nil {
				underway := 0
				f.mu.Lock()
				for i := range machines.Items {
					if m := &machines.Items[i]; m.DeletionTimestamp.IsZero() && f.playHost(ctx, m) {
						underway++
					}
				}
				f.atOnce = max(f.atOnce, underway)
				f.mu.Unlock()
			}
			select {
			case <-ctx.Done():
			case <-time.After(often):
			}
		}
	})
}

// playHost brings one Machine's host on, and reports whether it is on its way from one version to another.
func (f *fleet) playHost(ctx context.Context, m *clusterv1.Machine) (underway bool) {
	change := func(o client.Object, by func()) {
		before := o.DeepCopyObject().(client.Object)
		by()
		if err := f.api.Status().Patch(ctx, o, client.MergeFrom(before)); err != nil {
			f.problem = err
		}
	}
	id := infrav1.ProviderIDPrefix + namespace + "/" + m.Name
	infra, config := &infrav1.KubexmMachine{}, &bootstrapv1.KubexmConfig{}
	if f.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: m.Spec.InfrastructureRef.Name}, infra) != nil ||
		f.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: m.Spec.Bootstrap.ConfigRef.Name}, config) != nil {
		return false
	}
	if infra.Spec.ProviderID == "" {
		before := infra.DeepCopy()
		infra.Spec.ProviderID = id
		if err := f.api.Patch(ctx, infra, client.MergeFrom(before)); err != nil {
			f.problem = err
			return false
		}
		change(infra, func() { infra.Status.Initialization.Provisioned = ptr.To(true) })
	}
	has := config.Status.KubernetesVersion
	underway = has != "" && has != m.Spec.Version
	if f.slow[m.Name] && underway {
		return true
	}
	change(config, func() {
		status := &config.Status
		status.DataSecretName, status.Initialization.DataSecretCreated = "data", ptr.To(true)
		last := status.OperationFor(bootstrapv1.ConvergeOperation)
		last.StartTime, last.EndTime, last.Outcome = metav1.Unix(1, 0), metav1.Unix(2, 0), bootstrapv1.RunSucceeded
		converged := metav1.ConditionTrue
		if f.failing[m.Name] && underway {
			converged, last.Outcome = metav1.ConditionFalse, bootstrapv1.RunFailed
		} else {
			status.KubernetesVersion, status.ConvergedGeneration = m.Spec.Version, config.Generation
		}
		for _, kind := range []string{bootstrapv1.HostConvergedCondition, bootstrapv1.HostReadyCondition} {
			conditions.Set(config, metav1.Condition{Type: kind, Status: converged, Reason: "Played", Message: "the kubelet exited"})
		}
		conditions.Set(config, metav1.Condition{Type: bootstrapv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Played"})
	})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}, Spec: corev1.NodeSpec{ProviderID: id}}
	if err := f.api.Get(ctx, client.ObjectKeyFromObject(node), node); apierrors.IsNotFound(err) {
		f.problem = f.api.Create(ctx, node)
	}
	change(node, func() {
		node.Status.NodeInfo.KubeletVersion = config.Status.KubernetesVersion
		node.Status.Conditions = nil
		for _, kind := range []corev1.NodeConditionType{corev1.NodeReady,
			corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
			is := corev1.ConditionFalse
			if kind == corev1.NodeReady {
				is = corev1.ConditionTrue
			}
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

// declare creates a cluster whose control plane has a version, and a MachineDeployment whose Machines have an older one.
func (f *fleet) declare() {
	endpoint := clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443}
	infra := &infrav1.KubexmCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}, Spec: infrav1.KubexmClusterSpec{ControlPlaneEndpoint: endpoint}}
	template := clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachineTemplate", Name: "workers"}
	controlPlane := &controlplanev1.KubexmControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "prod"}, Spec: controlplanev1.KubexmControlPlaneSpec{
		Replicas: ptr.To(int32(1)), Version: updated,
		MachineTemplate: controlplanev1.MachineTemplate{Spec: controlplanev1.MachineTemplateSpec{InfrastructureRef: template}},
	}}
	labels := map[string]string{clusterv1.ClusterNameLabel: "prod", "pool": "a"}
	f.Expect(f.api.Create(f.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	f.create(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "prod-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"}},
			Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": f.environment.KubeConfig}},
		infra, controlPlane, &infrav1.KubexmMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "workers"}},
		configTemplate("workers", spec.Node{Kubelet: spec.Kubelet{MaxPods: 100}}),
		&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}, Spec: clusterv1.ClusterSpec{
			ControlPlaneEndpoint: endpoint,
			InfrastructureRef:    clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmCluster", Name: "prod"},
			ControlPlaneRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubexmControlPlane", Name: "prod",
			},
		}},
		&clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "prod", Replicas: ptr.To(int32(3)), Selector: metav1.LabelSelector{MatchLabels: labels},
			Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
				Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
					MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromInt32(1)),
				},
			}},
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
	was := controlPlane.DeepCopy()
	controlPlane.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	controlPlane.Status.Version, controlPlane.Status.Versions = updated, []clusterv1.StatusVersion{{Version: updated, Replicas: 1}}
	f.Expect(f.api.Status().Patch(f.t.Context(), controlPlane, client.MergeFrom(was))).To(Succeed())
}

func configTemplate(name string, node spec.Node) *bootstrapv1.KubexmConfigTemplate {
	template := &bootstrapv1.KubexmConfigTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
	template.Spec.Template.Spec.Node = node
	return template
}

func (f *fleet) deployment() *clusterv1.MachineDeployment {
	md := &clusterv1.MachineDeployment{}
	f.Expect(f.api.Get(f.t.Context(), client.ObjectKey{Namespace: namespace, Name: "workers"}, md)).To(Succeed())
	return md
}

// roll changes the template of the MachineDeployment, as anybody does for a rollout.
func (f *fleet) roll(version, config string) {
	md := f.deployment()
	before := md.DeepCopy()
	md.Spec.Template.Spec.Version, md.Spec.Template.Spec.Bootstrap.ConfigRef.Name = version, config
	f.Expect(f.api.Patch(f.t.Context(), md, client.MergeFrom(before))).To(Succeed())
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
	for _, list := range []client.ObjectList{&clusterv1.MachineList{}, &bootstrapv1.KubexmConfigList{}, &infrav1.KubexmMachineList{}} {
		f.Expect(f.api.List(f.t.Context(), list, client.InNamespace(namespace))).To(Succeed())
		switch list := list.(type) {
		case *clusterv1.MachineList:
			for _, o := range list.Items {
				all[o.UID] = "Machine " + o.Name
			}
		case *bootstrapv1.KubexmConfigList:
			for _, o := range list.Items {
				all[o.UID] = "KubexmConfig " + o.Name
			}
		case *infrav1.KubexmMachineList:
			for _, o := range list.Items {
				all[o.UID] = "KubexmMachine " + o.Name + " " + o.Spec.ProviderID
			}
		}
	}
	return all
}

// asked is the names of the Machines that were asked to have the newer version.
func (f *fleet) asked() []string {
	var names []string
	for _, m := range f.machines() {
		if m.Spec.Version == updated {
			names = append(names, m.Name)
		}
	}
	return names
}

// updating is the reason of the condition Updating of a Machine, and its message.
func (f *fleet) updating(name string) string {
	m := &clusterv1.Machine{}
	f.Expect(f.api.Get(f.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, m)).To(Succeed())
	return conditions.GetReason(m, clusterv1.MachineUpdatingCondition) + ": " + conditions.GetMessage(m, clusterv1.MachineUpdatingCondition)
}

// explain shows what was said of all objects, and by Cluster API, when a test failed.
func (f *fleet) explain() {
	if !f.t.Failed() {
		return
	}
	f.t.Logf("played last: %v", f.problem)
	for _, c := range f.deployment().Status.Conditions {
		f.t.Logf("MachineDeployment: %s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, m := range f.machines() {
		f.t.Logf("Machine %s %s %v", m.Name, m.Spec.Version, m.Annotations)
		for _, c := range m.Status.Conditions {
			f.t.Logf("  %s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	lines, _ := os.ReadFile(f.log)
	all := bytes.Split(lines, []byte("\n"))
	f.t.Logf("%s", bytes.Join(all[max(0, len(all)-40):], []byte("\n")))
}

// TestClusterAPI has Cluster API's own manager roll a MachineDeployment out: it asks the extension, and the Machines come to the new
// version and settings and stay who they are. What hosts do not follow has Machines replaced, as without the extension.
func TestClusterAPI(t *testing.T) {
	f := newFleet(t)
	defer f.explain()
	f.Eventually(func(g Gomega) {
		config := &runtimev1.ExtensionConfig{}
		g.Expect(f.api.Get(t.Context(), client.ObjectKey{Name: "kubexm"}, config)).To(Succeed())
		g.Expect(conditions.IsTrue(config, runtimev1.ExtensionConfigDiscoveredCondition)).To(BeTrue(), "%v", config.Status.Conditions)
		found := map[string]string{}
		for _, handler := range config.Status.Handlers {
			found[handler.RequestHook.Hook] = handler.Name
		}
		g.Expect(found).To(Equal(map[string]string{
			"CanUpdateMachine": "can-update-machine.kubexm", "CanUpdateMachineSet": "can-update-machine-set.kubexm", "UpdateMachine": "update-machine.kubexm",
		}))
	}, patience, often).Should(Succeed())
	f.declare()
	rolledOut := func(version string) func(Gomega) {
		return func(g Gomega) {
			md := f.deployment()
			g.Expect(md.Status.ObservedGeneration).To(Equal(md.Generation))
			g.Expect(ptr.Deref(md.Status.AvailableReplicas, 0)).To(BeEquivalentTo(3))
			g.Expect(ptr.Deref(md.Status.UpToDateReplicas, 0)).To(BeEquivalentTo(3))
			g.Expect(md.Status.Versions).To(Equal([]clusterv1.StatusVersion{{Version: version, Replicas: 3}}))
		}
	}
	f.Eventually(rolledOut(old), patience, often).Should(Succeed())
	before := f.identities()

	t.Log("one begins, and the others wait for it")
	for _, m := range f.machines() {
		f.set(f.slow, m.Name, true)
	}
	f.create(configTemplate("workers-2", spec.Node{
		Kubelet: spec.Kubelet{MaxPods: 200}, System: spec.System{Sysctls: []spec.Sysctl{{Name: "vm.swappiness", Value: "0"}}},
	}))
	f.roll(updated, "workers-2")
	f.Eventually(f.asked, patience, often).Should(HaveLen(1))
	first := f.asked()[0]
	f.Eventually(func() string { return f.updating(first) }, patience, often).Should(SatisfyAll(
		HavePrefix(clusterv1.MachineInPlaceUpdatingReason), ContainSubstring("it has v1.35.4, and is to have v1.36.3")))
	f.Consistently(f.asked, time.Second, often).Should(HaveLen(1))

	t.Log("one that fails is said to have failed, and holds up the others until it is repaired")
	f.set(f.failing, first, true)
	f.set(f.slow, first, false)
	f.Eventually(func() string { return f.updating(first) }, patience, often).Should(HavePrefix(clusterv1.MachineInPlaceUpdateFailedReason))
	f.Consistently(f.asked, time.Second, often).Should(HaveLen(1))
	log, err := os.ReadFile(f.log)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(string(log)).To(ContainSubstring("delete the Machine " + first + " to have it replaced"))

	t.Log("all have it, and nothing was replaced")
	f.set(f.failing, first, false)
	for _, m := range f.machines() {
		f.set(f.slow, m.Name, false)
	}
	f.Eventually(rolledOut(updated), patience, often).Should(Succeed())
	f.Expect(f.identities()).To(Equal(before))
	f.Expect(f.atOnce).To(Equal(1))
	configs := &bootstrapv1.KubexmConfigList{}
	f.Expect(f.api.List(t.Context(), configs, client.InNamespace(namespace))).To(Succeed())
	for _, config := range configs.Items {
		f.Expect(config.Spec.Kubelet.MaxPods).To(BeEquivalentTo(200))
		f.Expect(config.Annotations).NotTo(HaveKey(clusterv1.UpdateInProgressAnnotation))
	}

	t.Log("what is taken off a list would stay on the hosts, and has Machines replaced")
	f.create(configTemplate("workers-3", spec.Node{Kubelet: spec.Kubelet{MaxPods: 200}}))
	f.roll(updated, "workers-3")
	f.Eventually(func() error {
		for id := range f.identities() {
			if _, was := before[id]; !was {
				return nil
			}
		}
		return fmt.Errorf("there are %v still", slices.Sorted(maps.Values(before)))
	}, patience, often).Should(Succeed())
}
