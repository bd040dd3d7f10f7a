// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/reconcilers"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/crd"
	"github.com/mensylisir/cluster-api-provider-kubexm/config/webhook"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	controlplane "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/embedded"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	infrastructure "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/setup"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/quorum"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	namespace   = "fleet"
	version     = "v1.36.3"
	fingerprint = "SHA256:uNiVztksCsDhcc0u9e8BrWfPrQmMlQWbZ+Yb9Jgkl3c"
	patience    = 3 * time.Minute
	// made is the file that the test's plan has on each host, and that shows that the host is a Node.
	made = "/etc/kubexm-test"
)

// fleet is a management plane with Cluster API's own reconcilers and ours, and hosts in memory.
type fleet struct {
	*WithT
	t   *testing.T
	api client.Client
	dir string

	mu       sync.Mutex
	machines map[string]*fake.Machine
	// clock is the one that maintenance windows are compared with.
	clock *clocktesting.FakePassiveClock
	// down is how hosts refuse to be dialled.
	down map[string]host.Kind
	// asked are the addresses of those that say what etcd says.
	asked map[string]bool
	// lookEvery is how often converged hosts are compared with their plans.
	lookEvery time.Duration
	// settle is how long a host must be well after it was disrupted before another one follows.
	settle time.Duration
	// manager is what the providers are given instead of the manager, nil for itself.
	manager func(ctrl.Manager) ctrl.Manager
	// planner plans hosts.
	planner reconcilers.Planner
	// endpoint is where the API server is reached, the first host's address if it is "", and selector selects Machines' hosts, all if
	// it is empty. foreign is whether nobody of ours runs the control plane.
	endpoint string
	selector map[string]string
	foreign  bool
}

func newFleet(t *testing.T, hosts int, options ...func(*fleet)) *fleet {
	t.Helper()
	return newFleetWith(t, hosts, plans, options...)
}

func newFleetWith(t *testing.T, hosts int, planner reconcilers.Planner, options ...func(*fleet)) *fleet {
	t.Helper()
	f := &fleet{
		WithT: NewWithT(t), t: t, planner: planner, machines: map[string]*fake.Machine{},
		down: map[string]host.Kind{}, asked: map[string]bool{},
		clock: clocktesting.NewFakePassiveClock(time.Now()), lookEvery: time.Second, settle: time.Millisecond,
	}
	for _, o := range options {
		o(f)
	}
	for i := range hosts {
		address := fmt.Sprintf("10.1.0.%d", i+1)
		m := fake.New(fmt.Sprintf("host%d", i+1))
		m.System.Addresses = []string{address + "/24"}
		m.System.HostnameAddresses = []string{address}
		m.Put("/etc/resolv.conf", "nameserver 10.0.0.53\n", 0o644)
		f.machines[address] = m
	}
	definitions, err := crd.CRDs()
	f.Expect(err).NotTo(HaveOccurred())
	hooks, err := webhook.All()
	f.Expect(err).NotTo(HaveOccurred())
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	f.dir = t.TempDir()
	plane, err := embedded.Start(t.Context(), embedded.Options{
		Dir: f.dir, Namespace: namespace,
		Etcd: filepath.Join(assets, "etcd"), APIServer: filepath.Join(assets, "kube-apiserver"),
		ControllerManager:  filepath.Join(assets, "kube-controller-manager"),
		AddToScheme:        []func(*runtime.Scheme) error{setup.AddToScheme, controlplane.AddToScheme, infrastructure.AddToScheme},
		CRDs:               definitions,
		MutatingWebhooks:   hooks.Mutating,
		ValidatingWebhooks: hooks.Validating,
		Setup:              []func(context.Context, ctrl.Manager) error{f.providers},
	})
	f.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	f.api = plane.Client()
	return f
}

func (f *fleet) providers(ctx context.Context, mgr ctrl.Manager) error {
	if f.manager != nil {
		mgr = f.manager(mgr)
	}
	return errors.Join(
		infrastructure.Webhooks(mgr), infrastructure.Reconcilers(mgr, infrastructure.Options{}),
		controlplane.Webhooks(mgr), controlplane.Reconcilers(ctx, mgr, controlplane.Options{Workload: f.workload}),
		setup.Webhooks(mgr), setup.Reconcilers(ctx, mgr, setup.Options{
			Dial: f.dial, Plan: f.planner, Clock: f.clock, DriftCheckInterval: f.lookEvery,
			Settle: f.settle, Progress: 50 * time.Millisecond,
			Logs:      filepath.Join(f.dir, "host-logs"),
			Artifacts: func(context.Context, spec.Artifacts, string) (*artifact.Bundle, error) { return nil, nil },
		}),
	)
}

// plans makes a host have one file with what it was given.
func plans(n pipeline.Node, _ *artifact.Bundle) (*plan.Plan, error) {
	b := plan.New("Test", n.Target.ClusterName)
	b.Host(n.Target.Host.Name, plan.Module{Name: "test", Tasks: []plan.Task{{Name: "file", Steps: []step.Step{
		step.New(step.Meta{Name: "test/file", Disrupts: "restarts the test"},
			step.File{Path: made, Mode: 0o644, Content: step.Literal(fmt.Sprintf("%s %s %s\n",
				n.Target.Host.Role, n.Target.Cluster.ControlPlaneEndpoint.HostPort(), n.Target.Node.NodeLabels["pool"]))}),
	}}}})
	return b.Plan()
}

func (f *fleet) dial(_ context.Context, c ssh.Config) (host.Host, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, found := f.machines[c.Address]
	if kind := f.down[c.Address]; !found || kind != "" {
		return nil, &host.Error{Kind: kind, Host: c.Name, Message: "cannot connect to " + c.Address}
	}
	if !f.asked[c.Address] { // for the first time: tests say before that what commands do
		f.asked[c.Address] = true
		do := m.OnCommand
		m.OnCommand = func(m *fake.Machine, c host.Command) host.Result {
			switch {
			case c.Title == quorum.Query("", "").Commands[0].ID:
				return f.etcd(m)
			case do == nil:
				return host.Result{}
			}
			return do(m, c)
		}
	}
	return m.Connect(), nil
}

// etcd says that all hosts are its members which are to be, and the one that is asked.
func (f *fleet) etcd(m *fake.Machine) host.Result {
	said := &bootstrapv1.KubexmClusterConfig{}
	if err := f.api.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "prod"}, said); err != nil {
		return host.Result{ExitCode: 1, Stderr: []byte(err.Error())}
	}
	role := spec.RoleControlPlane
	if !said.Spec.Cluster.Etcd.IsStacked() {
		role = spec.RoleEtcd
	}
	own, members := 0, []string{}
	for i, member := range said.Spec.Members {
		if member.Role != role || member.Phase == bootstrapv1.MemberRemoved && member.Name != m.System.Hostname {
			continue
		}
		if member.Name == m.System.Hostname {
			own = i + 1
		}
		members = append(members, fmt.Sprintf(`{"ID":%d,"name":%q,"peerURLs":["https://%s:2380"]}`, i+1, member.Name, member.Address))
	}
	header := fmt.Sprintf(`"header":{"cluster_id":1,"member_id":%d}`, own)
	return host.Result{Stdout: fmt.Appendf(nil, "asked %d\nmembers {%s,\"members\":[%s]}\nalarms {%s}\n",
		time.Now().UnixNano(), header, strings.Join(members, ","), header)}
}

// workload says that the cluster is up as soon as its host is what it must be.
func (f *fleet) workload(_ context.Context, _ secret.Value, c *snapshot.ControlPlane) *snapshot.Workload {
	w := &snapshot.Workload{Components: map[string][]snapshot.Component{}}
	for _, m := range c.Own() {
		for _, a := range m.Status.Addresses {
			if a.Type == clusterv1.MachineExternalIP && f.content(a.Address) != "" {
				w.Initialized = true
				for _, kind := range snapshot.ComponentConditions {
					w.Components[m.Name] = append(w.Components[m.Name], snapshot.Component{Condition: kind})
				}
			}
		}
	}
	return w
}

// content is what the file of the test's plan has on a host, "" if it is not there.
func (f *fleet) content(address string) string {
	connection := f.machines[address].Connect()
	defer connection.Close()
	facts, err := connection.Observe(context.Background(), host.Query{Paths: []host.PathQuery{{Path: made, Content: true}}})
	if err != nil {
		return ""
	}
	return string(facts.Paths[made].Content)
}

// used are the addresses of the hosts that have the file.
func (f *fleet) used() []string {
	var used []string
	for address := range f.machines {
		if f.content(address) != "" {
			used = append(used, address)
		}
	}
	return used
}

func (f *fleet) setDown(address string, kind host.Kind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down[address] = kind
}

func (f *fleet) create(objects ...client.Object) {
	f.t.Helper()
	for _, o := range objects {
		o.SetNamespace(namespace)
		f.Expect(f.api.Create(f.t.Context(), o)).To(Succeed(), "%T", o)
	}
}

// credentials is the label of Secrets that hosts may be logged in to with.
var credentials = map[string]string{bootstrapv1.ForHostsLabel: bootstrapv1.ForHostsCredentials}

// access is how the fleet's hosts are reached.
func access() spec.Access {
	return spec.Access{
		User: "root", HostKeys: spec.HostKeys{Pinned: []string{fingerprint}},
		Credentials: spec.Credentials{SecretRef: spec.SecretReference{Name: "ssh"}},
	}
}

// declare creates a cluster of one control plane Machine and one worker, unless the functions say otherwise.
func (f *fleet) declare(change ...func(*controlplanev1.KubexmControlPlane)) {
	f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ssh", Labels: credentials}, Data: map[string][]byte{"password": []byte("secret")}})
	for address, m := range f.machines {
		f.create(&infrav1.KubexmHost{
			ObjectMeta: metav1.ObjectMeta{Name: m.System.Hostname},
			Spec:       infrav1.KubexmHostSpec{Address: address, Access: access()},
		})
	}
	template := clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmMachineTemplate", Name: "any"}
	labels := map[string]string{clusterv1.ClusterNameLabel: "prod", "pool": "a"}
	cp := &controlplanev1.KubexmControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "prod"}, Spec: controlplanev1.KubexmControlPlaneSpec{
		Version:         version,
		MachineTemplate: controlplanev1.MachineTemplate{Spec: controlplanev1.MachineTemplateSpec{InfrastructureRef: template}},
	}}
	for _, c := range change {
		c(cp)
	}
	machines := &infrav1.KubexmMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: "any"}}
	if len(f.selector) > 0 {
		machines.Spec.Template.Spec.HostSelector = &metav1.LabelSelector{MatchLabels: f.selector}
	}
	infra := &infrav1.KubexmCluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	if f.endpoint != "" {
		infra.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: f.endpoint, Port: 6443}
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}, Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "KubexmCluster", Name: "prod"},
	}}
	if !f.foreign {
		cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubexmControlPlane", Name: "prod",
		}
		f.create(cp)
	}
	f.create(
		machines, infra, &bootstrapv1.KubexmConfigTemplate{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}, cluster,
		&clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "prod", Replicas: ptr.To[int32](1), Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: labels}, Spec: clusterv1.MachineSpec{
				ClusterName: "prod", Version: version, InfrastructureRef: template,
				Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfigTemplate", Name: "workers",
				}},
			}},
		}},
	)
}

func (f *fleet) configs() []bootstrapv1.KubexmConfig {
	list := &bootstrapv1.KubexmConfigList{}
	f.Expect(f.api.List(f.t.Context(), list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}

// readyConfigs are the KubexmConfigs that are Ready; if not all, why the others are not is logged when the test fails.
func (f *fleet) readyConfigs() int {
	n := 0
	for _, c := range f.configs() {
		if conditions.IsTrue(&c, bootstrapv1.HostReadyCondition) {
			n++
		}
	}
	return n
}

func (f *fleet) explain() {
	if !f.t.Failed() {
		return
	}
	for _, c := range f.configs() {
		for _, condition := range c.Status.Conditions {
			f.t.Logf("KubexmConfig %s: %s %s %s: %s", c.Name, condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	log, _ := os.ReadFile(filepath.Join(f.dir, "plane.log"))
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, `controller="kubexm`) && !strings.Contains(line, "EventSource") {
			f.t.Log(strings.TrimSpace(line))
		}
	}
	cp := &controlplanev1.KubexmControlPlane{}
	_ = f.api.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "prod"}, cp)
	for _, condition := range cp.Status.Conditions {
		f.t.Logf("KubexmControlPlane: %s %s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
}

func (f *fleet) scale(workers int32) {
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "workers"}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, workers))
	f.Expect(f.api.Patch(f.t.Context(), md, patch)).To(Succeed())
}

func TestLifecycle(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 4)
	defer f.explain()
	f.declare()

	t.Log("a cluster comes up by plain objects")
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))
	f.Expect(f.used()).To(HaveLen(2))
	cp := &controlplanev1.KubexmControlPlane{}
	f.Eventually(func(g Gomega) {
		g.Expect(f.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "prod"}, cp)).To(Succeed())
		g.Expect(conditions.IsTrue(cp, controlplanev1.AvailableCondition)).To(BeTrue())
		g.Expect(cp.Status.Versions).To(Equal([]clusterv1.StatusVersion{{Version: version, Replicas: 1}}))
	}, patience, 50*time.Millisecond).Should(Succeed())

	t.Log("it scales up")
	f.scale(3)
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(4))

	t.Log("what somebody changed on a host is shown and repaired")
	drifted := f.used()[0]
	before := f.content(drifted)
	f.machines[drifted].Put(made, "changed by somebody\n", 0o644)
	f.Eventually(func() string { return f.content(drifted) }, patience, 50*time.Millisecond).Should(Equal(before))

	t.Log("a change of what all hosts share reaches them")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"node":{"nodeLabels":{"pool":"masters"}}}}`))
	f.Expect(f.api.Patch(t.Context(), cp, patch)).To(Succeed())
	f.Eventually(func() int {
		n := 0
		for _, address := range f.used() {
			if f.content(address) == "ControlPlane "+address+":6443 masters\n" {
				n++
			}
		}
		return n
	}, patience, 50*time.Millisecond).Should(Equal(1))

	f.Eventually(func(g Gomega) {
		configs, changed := &bootstrapv1.KubexmConfigList{}, false
		g.Expect(f.api.List(t.Context(), configs, client.InNamespace(namespace))).To(Succeed())
		for _, c := range configs.Items {
			g.Expect(hosthealth.Behind(&c, version)).To(BeNil(), c.Name)
			changed = changed || c.Generation > 1
		}
		g.Expect(changed).To(BeTrue())
	}, patience, 50*time.Millisecond).Should(Succeed())

	t.Log("scaling down leaves hosts clean")
	f.scale(1)
	f.Eventually(f.used, patience, 50*time.Millisecond).Should(HaveLen(2))
	f.Eventually(f.free, patience, 50*time.Millisecond).Should(Equal(2))

	t.Log("deleting the Cluster gives all of them back")
	f.Expect(f.api.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prod"}})).To(Succeed())
	f.Eventually(func() bool {
		err := f.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "prod"}, &clusterv1.Cluster{})
		return apierrors.IsNotFound(err)
	}, patience, 100*time.Millisecond).Should(BeTrue())
	f.Expect(f.used()).To(BeEmpty())
	f.Eventually(f.free, patience, 50*time.Millisecond).Should(Equal(4))
}

// free counts the hosts that the next Machine may have.
func (f *fleet) free() int {
	list := &infrav1.KubexmHostList{}
	f.Expect(f.api.List(f.t.Context(), list, client.InNamespace(namespace))).To(Succeed())
	n := 0
	for _, h := range list.Items {
		if h.Spec.ClaimRef.Name == "" && conditions.IsTrue(&h, infrav1.AvailableCondition) {
			n++
		}
	}
	return n
}

// worker is the KubexmConfig and the Machine of the one worker.
func (f *fleet) worker(g Gomega) (*bootstrapv1.KubexmConfig, *clusterv1.Machine) {
	list := &clusterv1.MachineList{}
	g.Expect(f.api.List(f.t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{"pool": "a"})).To(Succeed())
	g.Expect(list.Items).NotTo(BeEmpty())
	config := &bootstrapv1.KubexmConfig{}
	key := client.ObjectKey{Namespace: namespace, Name: list.Items[0].Spec.Bootstrap.ConfigRef.Name}
	g.Expect(f.api.Get(f.t.Context(), key, config)).To(Succeed())
	return config, &list.Items[0]
}

// TestUnfitHosts: a host that is not fit is examined before anything else, and nothing is changed there until it is.
func TestUnfitHosts(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 2)
	defer f.explain()
	for _, m := range f.machines {
		m.Put("/etc/resolv.conf", "", 0o644)
		m.System.Nameservers = nil
	}
	f.declare()
	f.Eventually(func(g Gomega) {
		all := f.configs()
		g.Expect(all).NotTo(BeEmpty())
		for i := range all {
			g.Expect(conditions.GetReason(&all[i], bootstrapv1.PreflightPassedCondition)).To(Equal(bootstrapv1.PreflightFailedReason))
			g.Expect(conditions.GetMessage(&all[i], bootstrapv1.HostReadyCondition)).To(ContainSubstring("names no name server"))
		}
	}, patience, 50*time.Millisecond).Should(Succeed())
	f.Expect(f.used()).To(BeEmpty())
	for address := range f.machines {
		f.Expect(f.owner(address)).To(BeEmpty())
	}
}

func TestHostsThatFail(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 3)
	defer f.explain()
	for address := range f.machines {
		f.setDown(address, host.KindUnreachable)
	}
	f.declare()

	t.Log("a host that does not answer is named, and tried again")
	f.Eventually(func(g Gomega) {
		config, _ := f.worker(g)
		g.Expect(conditions.GetReason(config, bootstrapv1.HostReachableCondition)).To(Equal(bootstrapv1.UnreachableReason))
		g.Expect(conditions.GetMessage(config, bootstrapv1.HostReadyCondition)).To(ContainSubstring("cannot connect to 10.1.0."))
		g.Expect(config.Status.Operation(bootstrapv1.ConvergeOperation).Outcome).To(Equal(bootstrapv1.RunFailed))
	}, patience, 50*time.Millisecond).Should(Succeed())
	for address := range f.machines {
		f.setDown(address, "")
	}
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))

	t.Log("of one that goes away when it is a Node, nobody says that it has drifted")
	config, machine := f.worker(f)
	f.setDown(config.Status.Host.Address, host.KindUnreachable)
	f.Eventually(func(g Gomega) {
		config, _ = f.worker(g)
		g.Expect(conditions.GetReason(config, bootstrapv1.HostReachableCondition)).To(Equal(bootstrapv1.UnreachableReason))
		run := config.Status.Operation(bootstrapv1.ConvergeOperation) // the one after the check for drift
		g.Expect(run.Outcome).To(Equal(bootstrapv1.RunFailed))
	}, patience, 50*time.Millisecond).Should(Succeed())
	f.Expect(f.notes(bootstrapv1.DriftedReason)).To(BeEmpty())
	f.setDown(config.Status.Host.Address, "")
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))

	t.Log("a host that cannot be reset keeps its Machine")
	broken := config.Status.Host
	f.setDown(broken.Address, host.KindAuth) // which is final: nothing is dialled for a minute
	f.Expect(f.api.Delete(t.Context(), machine)).To(Succeed())
	f.Eventually(func(g Gomega) {
		g.Expect(f.api.Get(t.Context(), client.ObjectKeyFromObject(config), config)).To(Succeed())
		g.Expect(conditions.GetReason(config, bootstrapv1.HostResetCondition)).To(Equal(bootstrapv1.ResetFailedReason))
	}, patience, 50*time.Millisecond).Should(Succeed())

	t.Log("until somebody gives it up; it is not handed out again")
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:""}}}`, bootstrapv1.SkipHostResetAnnotation))
	f.Expect(f.api.Patch(t.Context(), machine, patch)).To(Succeed())
	f.Eventually(func() bool {
		return apierrors.IsNotFound(f.api.Get(t.Context(), client.ObjectKeyFromObject(machine), machine))
	}, patience, 50*time.Millisecond).Should(BeTrue())
	f.Eventually(f.readyConfigs, patience, 50*time.Millisecond).Should(Equal(2))
	host := &infrav1.KubexmHost{}
	f.Expect(f.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: broken.Name}, host)).To(Succeed())
	f.Expect(conditions.GetReason(host, infrav1.AvailableCondition)).To(Equal(infrav1.QuarantinedReason))

	t.Log("a deletion that takes dependents first does not hang, and leaves hosts clean")
	f.Expect(f.api.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prod"}},
		client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
	f.Eventually(func() bool {
		return apierrors.IsNotFound(f.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "prod"}, &clusterv1.Cluster{}))
	}, patience, 100*time.Millisecond).Should(BeTrue())
	f.Eventually(f.free, patience, 50*time.Millisecond).Should(Equal(2))
	f.Expect(f.used()).To(ConsistOf(broken.Address))
}
