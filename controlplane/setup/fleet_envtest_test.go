// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	bootstrap "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/setup"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/reconcilers"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	infrastructure "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/testapi"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

const (
	older, newer = "v1.35.4", "v1.36.3"
	patience     = 2 * time.Minute
	interval     = 50 * time.Millisecond
	// blink is longer than the reconciler needs to do something wrong.
	blink  = time.Second
	noHost = "no host is free"
)

var (
	errAway   = errors.New("connection refused")
	errKilled = errors.New("killed")
)

// api is a client of the one API server of this package's tests, without a cache, and access is how it is reached.
var (
	api    client.Client
	access *rest.Config
	scheme = runtime.NewScheme()
)

// TestMain serves the webhooks of all providers; reconcilers are each test's own.
func TestMain(m *testing.M) {
	if err := errors.Join(setup.AddToScheme(scheme), infrastructure.AddToScheme(scheme), bootstrap.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	os.Exit(testapi.Package{
		Scheme: scheme,
		Setup: func(mgr ctrl.Manager) error {
			return errors.Join(infrastructure.Webhooks(mgr), bootstrap.Webhooks(mgr), setup.Webhooks(mgr))
		},
		Use: func(c client.Client, config *rest.Config) { api, access = c, config },
	}.Run(m))
}

// fleet is a control plane with its reconciler, and everybody else: Cluster API, the infrastructure with its hosts, and the
// bootstrap provider, whose parts are played by turn.
type fleet struct {
	*WithT
	t         *testing.T
	namespace string
	// free are the hosts that no Machine has.
	free []string
	// strangers are members of etcd that no host has, by their names, with their addresses.
	strangers map[string]string
	// answers is how often it has said how it is.
	answers int
	// deaf is whether etcd does not say how it is when it is asked.
	deaf bool
	// fails is why hosts cannot follow another version, "" if they can.
	fails string
	// full is why no snapshot of etcd can be saved, "" if one can; saved are the names of the KubexmConfigs on whose hosts one was.
	full  string
	saved []string
	// inUse are the APIs in use that other versions do not serve, by lines.
	inUse atomic.Pointer[[]string]
	// away is whether the cluster's API server does not answer.
	away atomic.Bool
	// least and most limit how many Machines are well and exist, once they are watched.
	least, most int
	// acts are what Machines there are and what their versions are; each time that they change, the reconciler is restarted.
	acts     string
	restarts int
	// writes is how many of a reconciler's writes get through before it is killed, by how many there were before it. If nil, none
	// is killed that way.
	writes func(restarts int) int
	// killed is whether that has happened to the one that runs.
	killed *atomic.Bool
	// serving approves requests of kubelets for serving certificates. If nil, nobody asks.
	serving reconcilers.Serving
	// unit is whether the components of the control plane are units.
	unit bool
	// clock is the reconciler's, the system's if nil.
	clock *clocktesting.FakePassiveClock
	stop  func()
}

func newFleet(t *testing.T, hosts int) *fleet {
	t.Helper()
	f := &fleet{WithT: NewWithT(t), t: t, most: 1000}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fleet-"}}
	f.Expect(api.Create(t.Context(), namespace)).To(Succeed())
	f.namespace = namespace.Name
	for i := range hosts {
		f.free = append(f.free, fmt.Sprintf("host%d", i+1))
	}
	f.start()
	t.Cleanup(func() { f.stop() })
	t.Cleanup(f.explain)
	return f
}

// start starts a reconciler that knows nothing of those before it.
func (f *fleet) start() {
	f.t.Helper()
	mgr, err := ctrl.NewManager(access, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{f.namespace: {}}}, // other tests run beside this
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		// It is cut, in the midst of what it does, and does not end: nobody waits for what is cut.
		GracefulShutdownTimeout: ptr.To[time.Duration](0),
		NewClient:               f.newClient,
	})
	f.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	o := setup.Options{Workload: f.workload, RemovedAPIs: f.removedAPIs, Serving: f.serving}
	if o.Serving == nil {
		o.Serving = func(context.Context, secret.Value, *snapshot.ControlPlane) *snapshot.Serving {
			return &snapshot.Serving{}
		}
	}
	if f.clock != nil {
		o.Clock = f.clock
	}
	f.Expect(setup.Reconcilers(ctx, mgr, o)).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	f.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	}
}

// newClient is the client of a reconciler, through which nothing gets any more once the reconciler is killed.
func (f *fleet) newClient(config *rest.Config, options client.Options) (client.Client, error) {
	c, err := client.NewWithWatch(config, options)
	if err != nil || f.writes == nil {
		return c, err
	}
	killed, left := &atomic.Bool{}, atomic.Int32{}
	left.Store(int32(f.writes(f.restarts)))
	f.killed = killed
	write := func(do func() error) error {
		if left.Add(-1) < 0 {
			killed.Store(true)
			return errKilled
		}
		return do()
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return write(func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return write(func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return write(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return write(func() error { return c.Apply(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return write(func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			return write(func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	}), nil
}

// workload says that what has a Node is well, unless the API server is away.
func (f *fleet) workload(_ context.Context, _ secret.Value, c *snapshot.ControlPlane) *snapshot.Workload {
	w := &snapshot.Workload{Components: map[string][]snapshot.Component{}}
	if f.away.Load() {
		w.Err = errAway
		return w
	}
	for _, m := range c.Own() {
		if !m.Status.NodeRef.IsDefined() {
			continue
		}
		w.Initialized = true
		for _, kind := range snapshot.ComponentConditions {
			w.Components[m.Name] = append(w.Components[m.Name], snapshot.Component{Condition: kind})
		}
	}
	return w
}

func (f *fleet) create(objects ...client.Object) {
	f.t.Helper()
	for _, o := range objects {
		o.SetNamespace(f.namespace)
		f.Eventually(func() error {
			return api.Create(f.t.Context(), o)
		}, patience, interval).Should(Succeed()) // webhooks may be on their way
	}
}

// declare creates a cluster of three control plane Machines.
func (f *fleet) declare(maxSurge int32, strategy controlplanev1.RolloutStrategyType) {
	f.t.Helper()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}, Spec: clusterv1.ClusterSpec{
		InfrastructureRef:    clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmCluster", Name: "prod"},
		ControlPlaneRef:      clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubexmControlPlane", Name: "prod"},
		ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "10.9.0.1", Port: 6443},
	}}
	f.create(cluster, &infrav1.KubexmMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "any"}})
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	f.Expect(api.Status().Update(f.t.Context(), cluster)).To(Succeed())
	cp := &controlplanev1.KubexmControlPlane{
		ObjectMeta: metav1.ObjectMeta{Name: "prod", OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(cluster, clusterv1.GroupVersion.WithKind("Cluster")),
		}},
		Spec: controlplanev1.KubexmControlPlaneSpec{
			Replicas: ptr.To[int32](3), Version: older,
			MachineTemplate: controlplanev1.MachineTemplate{Spec: controlplanev1.MachineTemplateSpec{
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachineTemplate", Name: "any",
				},
			}},
		},
	}
	cp.Spec.Cluster.LoadBalancer.Type = spec.LoadBalancerNodeLocal
	cp.Spec.Rollout.Strategy.Type, cp.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = strategy, ptr.To(maxSurge)
	if f.unit {
		cp.Spec.Cluster.Kubernetes.Type = spec.KubernetesKubexm
	}
	f.create(cp)
}

func (f *fleet) controlPlane() *controlplanev1.KubexmControlPlane {
	cp := &controlplanev1.KubexmControlPlane{}
	f.Expect(api.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "prod"}, cp)).To(Succeed())
	return cp
}

// clusterConfig is what the hosts are to know, empty while there is none.
func (f *fleet) clusterConfig() *bootstrapv1.KubexmClusterConfig {
	c := &bootstrapv1.KubexmClusterConfig{}
	err := api.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "prod"}, c)
	f.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return c
}

func (f *fleet) machines() []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	f.Expect(api.List(f.t.Context(), list, client.InNamespace(f.namespace))).To(Succeed())
	return list.Items
}

// names are those of the Machines that are not being deleted, in their order.
func (f *fleet) names() []string {
	var names []string
	for _, m := range f.machines() {
		if m.DeletionTimestamp.IsZero() {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}

// asked is how many Machines are to have a version.
func (f *fleet) asked(version string) int {
	n := 0
	for _, m := range f.machines() {
		if m.Spec.Version == version {
			n++
		}
	}
	return n
}

// watch has each turn see to it that so many Machines are well at least, and no more than so many exist.
func (f *fleet) watch(least, most int) { f.least, f.most, f.restarts = least, most, 0 }

// turn does what everybody else does, on all Machines, and has the reconciler restarted where it has acted.
func (f *fleet) turn() {
	f.t.Helper()
	acts, well, machines := "", 0, f.machines()
	for i := range machines {
		m := &machines[i]
		acts += fmt.Sprintf("%s %s %v\n", m.Name, m.Spec.Version, m.DeletionTimestamp.IsZero())
		if m.DeletionTimestamp.IsZero() && conditions.IsTrue(f.config(m), bootstrapv1.HostConvergedCondition) &&
			m.Status.NodeRef.IsDefined() &&
			f.config(m).Status.KubernetesVersion == m.Spec.Version {
			well++
		}
	}
	f.Expect(well).To(BeNumerically(">=", f.least), "Machines that are well, of\n%s", acts)
	f.Expect(len(machines)).To(BeNumerically("<=", f.most), "Machines:\n%s", acts)
	if f.writes != nil && f.killed.Load() || f.writes == nil && f.acts != acts && f.least > 0 {
		f.stop()
		f.start()
		f.restarts++
	}
	f.acts = acts
	for i := range machines {
		if m := &machines[i]; m.DeletionTimestamp.IsZero() {
			f.bringUp(m)
		} else {
			f.bringDown(m, machines)
		}
	}
}

func (f *fleet) config(m *clusterv1.Machine) *bootstrapv1.KubexmConfig {
	c := &bootstrapv1.KubexmConfig{}
	err := api.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: m.Spec.Bootstrap.ConfigRef.Name}, c)
	f.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return c
}

// change patches an object's status.
func (f *fleet) change(o client.Object, by func()) {
	f.t.Helper()
	before, ok := o.DeepCopyObject().(client.Object)
	f.Expect(ok).To(BeTrue())
	by()
	f.Expect(client.IgnoreNotFound(api.Status().Patch(f.t.Context(), o, client.MergeFrom(before)))).To(Succeed())
}

// bringUp gives a Machine a host, and has the host follow.
func (f *fleet) bringUp(m *clusterv1.Machine) {
	f.t.Helper()
	if !controllerutil.ContainsFinalizer(m, clusterv1.MachineFinalizer) {
		before := m.DeepCopy()
		controllerutil.AddFinalizer(m, clusterv1.MachineFinalizer)
		f.Expect(api.Patch(f.t.Context(), m, client.MergeFrom(before))).To(Succeed())
	}
	c := f.config(m)
	if c.Status.Host.Name == "" {
		if len(f.free) == 0 {
			f.change(m, func() {
				conditions.Set(m, metav1.Condition{
					Type: clusterv1.MachineInfrastructureReadyCondition, Status: metav1.ConditionFalse, Reason: "NoHost", Message: noHost,
				})
			})
			return
		}
		host := f.free[0]
		f.free = f.free[1:]
		f.change(c, func() {
			c.Status.Host = bootstrapv1.HostStatus{Name: host, Address: "10.9.1." + strings.TrimPrefix(host, "host")}
		})
	}
	if f.fails != "" && c.Status.KubernetesVersion != m.Spec.Version {
		f.change(c, func() {
			conditions.Set(c, metav1.Condition{
				Type: bootstrapv1.HostConvergedCondition, Status: metav1.ConditionFalse,
				Reason: bootstrapv1.StepFailedReason, Message: f.fails,
			})
		})
		return
	}
	f.change(c, func() {
		c.Status.KubernetesVersion, c.Status.ConvergedGeneration = m.Spec.Version, c.Generation
		if asked := c.Asked(bootstrapv1.AskEtcdAnnotation); c.Status.Etcd.ObservedTime.IsZero() ||
			!f.deaf && asked.After(c.Status.Etcd.ObservedTime.Time) {
			c.Status.Etcd = f.etcd(c)
		}
		if asked := c.Asked(bootstrapv1.SaveEtcdAnnotation); !asked.IsZero() &&
			!asked.Equal(c.Status.Operation(bootstrapv1.SaveEtcdOperation).RequestTime.Time) {
			c.Status.SetOperation(f.save(c.Name, asked))
		}
		conditions.Set(c, metav1.Condition{
			Type: bootstrapv1.HostConvergedCondition, Status: metav1.ConditionTrue, Reason: bootstrapv1.HostConvergedReason,
		})
	})
	f.change(m, func() {
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: c.Status.Host.Name}
		m.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: m.Spec.Version}
		conditions.Delete(m, clusterv1.MachineInfrastructureReadyCondition)
	})
}

func (f *fleet) removedAPIs(context.Context, secret.Value, string) *snapshot.APIs {
	apis := &snapshot.APIs{}
	if inUse := f.inUse.Load(); inUse != nil {
		apis.Removed = *inUse
	}
	return apis
}

// save is what comes of a snapshot of etcd on a host.
func (f *fleet) save(name string, asked time.Time) bootstrapv1.OperationStatus {
	last := bootstrapv1.OperationStatus{
		Type: bootstrapv1.SaveEtcdOperation, RequestTime: metav1.NewTime(asked), EndTime: metav1.Now(), Outcome: bootstrapv1.RunSucceeded,
	}
	if f.clock != nil {
		last.EndTime = metav1.NewTime(f.clock.Now())
	}
	if f.full != "" {
		last.Outcome, last.Message = bootstrapv1.RunFailed, f.full
		return last
	}
	f.saved = append(f.saved, name)
	return last
}

// etcd is what etcd says now: hosts have a member from when they have a version until it is to be removed, or for longer if nobody does.
func (f *fleet) etcd(asked *bootstrapv1.KubexmConfig) bootstrapv1.EtcdStatus {
	now := time.Now()
	if f.clock != nil {
		f.answers++ // that clock stands still, and who answers later does so later
		now = f.clock.Now().Add(time.Duration(f.answers) * time.Microsecond)
	}
	status, said := bootstrapv1.EtcdStatus{ObservedTime: metav1.NewMicroTime(now)}, f.clusterConfig()
	add := func(name, address string) {
		status.Members = append(status.Members, bootstrapv1.EtcdMemberStatus{
			ID: strings.ReplaceAll(address, ".", ""), Name: name, PeerURL: "https://" + address + ":2380", Type: bootstrapv1.EtcdVoter,
		})
	}
	for _, m := range f.machines() {
		c := f.config(&m)
		if member := said.Spec.MemberOf(c); c.Status.KubernetesVersion == "" && c.Name != asked.Name ||
			member != nil && member.Phase == bootstrapv1.MemberRemoved {
			continue
		}
		add(c.Status.Host.Name, c.Status.Host.Address)
	}
	for name, address := range f.strangers {
		if !slices.Contains(said.Spec.Cluster.Etcd.GoneMembers, name) {
			add(name, address)
		}
	}
	return status
}

// bringDown drains a Machine, ends its API server, has the others remove its etcd member, and then, when nobody holds it any more, lets
// it go.
func (f *fleet) bringDown(m *clusterv1.Machine, all []clusterv1.Machine) {
	f.t.Helper()
	f.change(m, func() {
		conditions.Set(m, metav1.Condition{
			Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue,
			Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
		})
	})
	c := f.config(m)
	said := f.clusterConfig()
	phase := bootstrapv1.MemberPhase("")
	if member := said.Spec.MemberOf(c); member != nil {
		phase = member.Phase
	}
	if phase == bootstrapv1.MemberDraining {
		f.change(c, func() {
			conditions.Set(c, metav1.Condition{
				Type: bootstrapv1.APIServerStoppedCondition, Status: metav1.ConditionTrue, Reason: bootstrapv1.APIServerStoppedReason,
			})
		})
	}
	if phase == bootstrapv1.MemberRemoved && c.Status.KubernetesVersion != "" {
		f.Expect(conditions.Has(c, bootstrapv1.APIServerStoppedCondition)).To(BeTrue(), "its API server was not ended yet")
	}
	for i := range all {
		if other := f.config(&all[i]); all[i].DeletionTimestamp.IsZero() && other.Name != "" {
			f.change(other, func() {
				other.Status.MembersDigest = bootstrapv1.MembersDigest(said.Spec.Members)
				if other.Status.KubernetesVersion != "" {
					other.Status.Etcd = f.etcd(other)
				}
			})
		}
	}
	if _, held := m.Annotations[controlplanev1.EtcdMemberRemovalHook]; held {
		return
	}
	if c.Status.Host.Name != "" {
		f.free = append(f.free, c.Status.Host.Name)
	}
	infra := &infrav1.KubexmMachine{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: m.Spec.InfrastructureRef.Name}}
	for _, part := range []client.Object{c, infra} {
		f.Expect(client.IgnoreNotFound(api.Delete(f.t.Context(), part))).To(Succeed())
	}
	before := m.DeepCopy()
	controllerutil.RemoveFinalizer(m, clusterv1.MachineFinalizer)
	f.Expect(client.IgnoreNotFound(api.Patch(f.t.Context(), m, client.MergeFrom(before)))).To(Succeed())
}

// explain shows what was said of all objects when a test failed.
func (f *fleet) explain() {
	if !f.t.Failed() {
		return
	}
	cp := &controlplanev1.KubexmControlPlane{}
	_ = api.Get(context.Background(), client.ObjectKey{Namespace: f.namespace, Name: "prod"}, cp)
	for _, c := range cp.Status.Conditions {
		f.t.Logf("KubexmControlPlane: %s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
	}
	list := &clusterv1.MachineList{}
	_ = api.List(context.Background(), list, client.InNamespace(f.namespace))
	for _, m := range list.Items {
		f.t.Logf("Machine %s: %s, node %q, deleting %v", m.Name, m.Spec.Version, m.Status.NodeRef.Name, !m.DeletionTimestamp.IsZero())
	}
}
