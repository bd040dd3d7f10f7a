// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/cis"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/smoke/proof"
)

const (
	// clusterName is that of the cluster whose life this is.
	clusterName = "life"
	// converging is how long a host may take, with some to spare for machines that have other things to do.
	converging = 10 * time.Minute
)

// TestLifecycle is one cluster's life. Each phase goes on from the one before.
func TestLifecycle(t *testing.T) {
	began := time.Now()
	e := start(t)
	timings := []string{fmt.Sprintf("%-14s %6.1f s", "made ready", time.Since(began).Seconds())}
	for _, phase := range []struct {
		name string
		pass func(*environment)
	}{
		{"held back", heldBack},
		{"created", created},
		{"measured", measured},
		{"proven", proven},
		{"recovered", recovered},
		{"scaled", scaled},
		{"heard", heard},
		{"replaced", replaced},
		{"deleted", deleted},
	} {
		phaseBegan := time.Now()
		passed := t.Run(phase.name, func(t *testing.T) { phase.pass(e.in(t)) })
		timings = append(timings, fmt.Sprintf("%-14s %6.1f s", phase.name, time.Since(phaseBegan).Seconds()))
		if !passed {
			t.Log(e.explain(context.Background()))
			break
		}
	}
	t.Logf("phases:\n  %s\n  %-14s %6.1f s", strings.Join(timings, "\n  "), "in all", time.Since(began).Seconds())
}

// in is the environment for a part of the test.
func (e *environment) in(t *testing.T) *environment {
	t.Helper()
	part := *e
	part.t, part.WithT = t, NewWithT(t)
	part.SetDefaultEventuallyPollingInterval(poll)
	part.SetDefaultEventuallyTimeout(time.Minute)
	return &part
}

// get reads one object of the cluster's namespace.
func get[T client.Object](ctx context.Context, e *environment, name string, object T) (T, error) {
	return object, e.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
}

// list reads the objects of one kind that belong to a cluster.
func list[T client.ObjectList](ctx context.Context, e *environment, cluster string, objects T) (T, error) {
	return objects, e.api.List(ctx, objects, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})
}

// heldBack declares two clusters. One belongs to managers with a watch filter, which leave alone the other; that one is
// paused, and left alone by all.
func heldBack(e *environment) {
	ctx := e.t.Context()
	e.startManagers("--watch-filter=others")
	e.apply(e.inventory()...)
	e.apply(e.cluster(clusterName)...)
	e.Eventually(func(g Gomega) { // all that Cluster API does before it is our turn
		infra, err := get(ctx, e, clusterName, &infrav1.KubexmCluster{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(infra.OwnerReferences).NotTo(BeEmpty())
		controlPlane, err := get(ctx, e, clusterName, &controlplanev1.KubexmControlPlane{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(controlPlane.OwnerReferences).NotTo(BeEmpty())
	}).Should(Succeed())

	const others = "others"
	declared := labelled(e.cluster(others), map[string]string{clusterv1.WatchLabel: others})
	for _, object := range declared {
		if object.GetKind() == "KubexmMachineTemplate" {
			e.Expect(unstructured.SetNestedField(object.Object, "nobody", "spec",
				"template", "spec", "hostSelector", "matchLabels", "role")).To(Succeed())
		}
	}
	e.apply(declared...)
	e.Eventually(func(g Gomega) {
		machines, err := list(ctx, e, others, &infrav1.KubexmMachineList{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(namesOf(machines)).To(HaveLen(2)) // one for the control plane, one for a worker
		for i := range machines.Items {
			g.Expect(conditions.GetReason(&machines.Items[i], infrav1.HostClaimedCondition)).To(Equal(infrav1.NoHostReason))
		}
	}).Should(Succeed())
	e.expectUntouched()
	e.requestDeletion(others)
	e.expectDeleted(others, time.Minute)
	e.stopManagers()
	e.expectUntouched()

	e.setPaused(true)
	e.startManagers()
	e.Eventually(func(g Gomega) {
		infra, err := get(ctx, e, clusterName, &infrav1.KubexmCluster{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conditions.IsTrue(infra, clusterv1.PausedCondition)).To(BeTrue())
		controlPlane, err := get(ctx, e, clusterName, &controlplanev1.KubexmControlPlane{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conditions.IsTrue(controlPlane, clusterv1.PausedCondition)).To(BeTrue())
		hosts, err := e.hosts(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		for i := range hosts {
			g.Expect(conditions.GetReason(&hosts[i], infrav1.AvailableCondition)).To(Equal(infrav1.FreeReason))
		}
	}).Should(Succeed())
	machines, err := list(ctx, e, clusterName, &clusterv1.MachineList{})
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(namesOf(machines)).To(BeEmpty())
}

// expectUntouched sees that nothing was done with what is not labelled for the managers' watch filter.
func (e *environment) expectUntouched() {
	e.t.Helper()
	ctx := e.t.Context()
	infra, err := get(ctx, e, clusterName, &infrav1.KubexmCluster{})
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(infra.Finalizers).To(BeEmpty())
	e.Expect(infra.Status.Conditions).To(BeEmpty())
	controlPlane, err := get(ctx, e, clusterName, &controlplanev1.KubexmControlPlane{})
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(controlPlane.Finalizers).To(BeEmpty())
	e.Expect(controlPlane.Status.Conditions).To(BeEmpty())
	hosts, err := e.hosts(ctx)
	e.Expect(err).NotTo(HaveOccurred())
	for _, host := range hosts {
		e.Expect(host.Status.Conditions).To(BeEmpty())
	}
}

func (e *environment) setPaused(paused bool) {
	e.t.Helper()
	cluster, err := get(e.t.Context(), e, clusterName, &clusterv1.Cluster{})
	e.Expect(err).NotTo(HaveOccurred())
	before := cluster.DeepCopy()
	cluster.Spec.Paused = ptr.To(paused)
	e.Expect(e.api.Patch(e.t.Context(), cluster, client.MergeFrom(before))).To(Succeed())
}

// created lets the cluster come about. When the control plane's host is some steps on, the managers are killed; the next
// ones find it so.
func created(e *environment) {
	ctx := e.t.Context()
	e.setPaused(false)
	var before bootstrapv1.KubexmConfigStatus
	const some = 8
	e.Eventually(func(g Gomega) {
		before = e.controlPlaneConfig(ctx, g).Status
		g.Expect(ptr.Deref(before.Progress.CompletedSteps, 0)).To(BeNumerically(">=", some))
		g.Expect(before.Operation(bootstrapv1.ConvergeOperation).EndTime.IsZero()).To(BeTrue())
	}, converging).Should(Succeed())
	e.killManagers()
	e.t.Logf("killed at %d of %d steps", *before.Progress.CompletedSteps, *before.Progress.TotalSteps)
	e.Expect(*before.Progress.CompletedSteps).To(BeNumerically("<", *before.Progress.TotalSteps), "the kill came too late")

	e.startManagers()
	e.Eventually(func(g Gomega) {
		now := e.controlPlaneConfig(ctx, g).Status
		began := before.Operation(bootstrapv1.ConvergeOperation).StartTime.Time
		g.Expect(now.Operation(bootstrapv1.ConvergeOperation).StartTime.After(began)).To(BeTrue(), "no new run yet")
		g.Expect(ptr.Deref(now.Progress.CompletedSteps, 0)).To(BeNumerically(">=", *before.Progress.CompletedSteps), "the new run began anew")
	}).Should(Succeed())
	e.expectReady(1)
}

// controlPlaneConfig is the KubexmConfig of the one control plane Machine.
func (e *environment) controlPlaneConfig(ctx context.Context, g Gomega) *bootstrapv1.KubexmConfig {
	configs := &bootstrapv1.KubexmConfigList{}
	g.Expect(e.api.List(ctx, configs, client.InNamespace(namespace), client.HasLabels{clusterv1.MachineControlPlaneLabel})).To(Succeed())
	g.Expect(namesOf(configs)).To(HaveLen(1))
	return &configs.Items[0]
}

// measured asserts the controls of the CIS Benchmark on the control plane host.
func measured(e *environment) {
	machines := &clusterv1.MachineList{}
	e.Expect(e.api.List(e.t.Context(), machines, client.InNamespace(namespace),
		client.HasLabels{clusterv1.MachineControlPlaneLabel})).To(Succeed())
	e.Expect(namesOf(machines)).To(HaveLen(1))
	host, err := hosts.Find(e.t.Context(), machines.Items[0].Status.NodeRef.Name)
	e.Expect(err).NotTo(HaveOccurred())
	cis.Check(e.t, cis.Subject{Type: spec.KubernetesKubeadm, Etcd: cis.EtcdUnit, Run: host.Exec})
}

// proven uses the cluster as pods do.
func proven(e *environment) {
	ctx, cancel := context.WithTimeout(e.t.Context(), 3*time.Minute)
	defer cancel()
	cluster := e.proof()
	cluster.Out = e.t.Output()
	e.Expect(cluster.Prove(ctx)).To(Succeed())
	e.expectMetrics()
}

// proof is the cluster as seen by the smoke test.
func (e *environment) proof() *proof.Cluster {
	return &proof.Cluster{Client: e.workload(), Bundle: e.bundle.Dir(), SSHConfig: e.pool.Dir + "/ssh_config"}
}

// scaled has hosts come and go. While two of them are worked on, the managers are stopped in order, as by an upgrade.
func scaled(e *environment) {
	e.scale(3)
	e.Eventually(func(g Gomega) {
		g.Expect(e.configs(e.t.Context(), g, func(c *bootstrapv1.KubexmConfig) bool {
			return ptr.Deref(c.Status.Progress.CompletedSteps, 0) > 0 && c.Status.Operation(bootstrapv1.ConvergeOperation).EndTime.IsZero()
		})).To(HaveLen(2), "hosts that are worked on")
	}, converging).Should(Succeed())
	e.stopManagers()
	e.startManagers()
	e.expectReady(3)

	e.scale(1)
	e.expectReady(1)
	e.expectReset(e.expectFree(2)...)
}

// heard has hosts dialled that nobody has. One that is cut off is not to be had, until it answers again.
func heard(e *environment) {
	ctx := e.t.Context()
	e.stopManagers()
	e.startManagers("--host-heartbeat-interval=5s")
	free := e.expectFree(2)
	silent, began := free[0], metav1.Now()
	expect := func(reachable metav1.ConditionStatus, available string) {
		e.t.Helper()
		e.Eventually(func(g Gomega) {
			for name, want := range map[string]struct {
				reachable metav1.ConditionStatus
				available string
			}{silent: {reachable, available}, free[1]: {metav1.ConditionTrue, infrav1.FreeReason}} {
				h, err := get(ctx, e, name, &infrav1.KubexmHost{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(began.Before(&h.Status.LastHeartbeatTime)).To(BeTrue(), "%s was not dialled", name)
				g.Expect(conditions.Get(h, infrav1.ReachableCondition)).To(HaveField("Status", want.reachable), name)
				g.Expect(conditions.GetReason(h, infrav1.AvailableCondition)).To(Equal(want.available), name)
			}
		}, 2*time.Minute).Should(Succeed())
	}
	expect(metav1.ConditionTrue, infrav1.FreeReason)
	host := e.pool.Named(silent)[0]
	e.Expect(host.Disconnect(ctx)).To(Succeed())
	expect(metav1.ConditionFalse, infrav1.UnreachableReason)
	e.Expect(host.Connect(ctx)).To(Succeed())
	expect(metav1.ConditionTrue, infrav1.FreeReason)
	e.expectReset(free...)
}

// configs are the names of the cluster's KubexmConfigs that are so.
func (e *environment) configs(ctx context.Context, g Gomega, are func(*bootstrapv1.KubexmConfig) bool) []string {
	all, err := list(ctx, e, clusterName, &bootstrapv1.KubexmConfigList{})
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for i := range all.Items {
		if are(&all.Items[i]) {
			names = append(names, all.Items[i].Name)
		}
	}
	return names
}

func (e *environment) scale(replicas int32) {
	e.t.Helper()
	deployment, err := get(e.t.Context(), e, clusterName+"-workers", &clusterv1.MachineDeployment{})
	e.Expect(err).NotTo(HaveOccurred())
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = ptr.To(replicas)
	e.Expect(e.api.Patch(e.t.Context(), deployment, client.MergeFrom(before))).To(Succeed())
}

// deleted gives everything back, with managers that are killed while they reset a host.
func deleted(e *environment) {
	ctx := e.t.Context()
	e.requestDeletion(clusterName)
	e.Eventually(func(g Gomega) {
		g.Expect(e.configs(ctx, g, func(c *bootstrapv1.KubexmConfig) bool {
			return conditions.GetReason(c, bootstrapv1.HostResetCondition) == bootstrapv1.ResettingReason
		})).NotTo(BeEmpty(), "hosts that are reset")
	}, converging).Should(Succeed())
	e.killManagers()
	e.startManagers()
	e.expectDeleted(clusterName, converging)
	e.expectFree(1 + workers)
	e.expectReset(e.names()...)
	e.expectNothingLeft("fleet-ssh")
	e.stopManagers()
}

func (e *environment) requestDeletion(cluster string) {
	e.t.Helper()
	object, err := get(e.t.Context(), e, cluster, &clusterv1.Cluster{})
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(e.api.Delete(e.t.Context(), object)).To(Succeed())
}

func (e *environment) expectDeleted(cluster string, timeout time.Duration) {
	e.t.Helper()
	e.Eventually(func() bool {
		_, err := get(e.t.Context(), e, cluster, &clusterv1.Cluster{})
		return apierrors.IsNotFound(err)
	}, timeout).Should(BeTrue(), "the Cluster still exists")
}

// expectNothingLeft sees that of the cluster nothing remains in the management cluster, and no Secrets but these. What it owned is
// collected after it.
func (e *environment) expectNothingLeft(secrets ...string) {
	e.t.Helper()
	ctx := e.t.Context()
	for _, kind := range []client.ObjectList{
		&clusterv1.MachineList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineDeploymentList{},
		&controlplanev1.KubexmControlPlaneList{}, &bootstrapv1.KubexmConfigList{}, &bootstrapv1.KubexmConfigTemplateList{},
		&infrav1.KubexmClusterList{}, &infrav1.KubexmMachineList{}, &infrav1.KubexmMachineTemplateList{},
	} {
		e.Eventually(func(g Gomega) {
			g.Expect(e.api.List(ctx, kind, client.InNamespace(namespace))).To(Succeed())
			g.Expect(namesOf(kind)).To(BeEmpty(), "%T", kind)
		}).Should(Succeed())
	}
	e.Eventually(func(g Gomega) {
		g.Expect(e.secrets(ctx)).To(ConsistOf(secrets))
	}).Should(Succeed())
}
