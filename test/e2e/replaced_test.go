// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"maps"
	"slices"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
)

// web is what must not go down: two pods, one of which may be missing at a time.
var web = map[string]string{"app": "web"}

// replaced deletes a worker's Machine under the feet of pods that have a PodDisruptionBudget.
func replaced(e *environment) {
	ctx := e.t.Context()
	cluster := e.workload()
	e.serveWeb(cluster)
	machine, host := e.worker()
	e.t.Logf("deleting the Machine on %s", host)
	e.Expect(e.api.Delete(ctx, machine)).To(Succeed())

	evicted, fewest := map[string]bool{}, int32(2)
	e.Eventually(func(g Gomega) {
		deployment, err := cluster.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		fewest = min(fewest, deployment.Status.AvailableReplicas)
		pods, err := cluster.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		g.Expect(err).NotTo(HaveOccurred())
		for i := range pods.Items {
			if wasEvicted(&pods.Items[i]) {
				evicted[pods.Items[i].Name] = true
			}
		}
		_, err = get(ctx, e, machine.Name, &clusterv1.Machine{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the Machine still exists: %v", err)
	}, converging).Should(Succeed())
	e.Expect(slices.Collect(maps.Keys(evicted))).To(HaveLen(2), "pods that were evicted")
	e.Expect(fewest).To(BeNumerically(">=", 1), "the PodDisruptionBudget was not kept")

	e.expectReady(1)
	_, now := e.worker()
	e.Expect(now).NotTo(Equal(host))
	e.Expect(e.expectFree(workers - 1)).To(ContainElement(host))
	e.expectReset(host)
}

// worker is the one worker's Machine, and the name of its host.
func (e *environment) worker() (*clusterv1.Machine, string) {
	e.t.Helper()
	machines := &clusterv1.MachineList{}
	e.Expect(e.api.List(e.t.Context(), machines, client.InNamespace(namespace),
		client.HasLabels{clusterv1.MachineDeploymentNameLabel})).To(Succeed())
	e.Expect(namesOf(machines)).To(HaveLen(1))
	infra, err := get(e.t.Context(), e, machines.Items[0].Spec.InfrastructureRef.Name, &infrav1.KubexmMachine{})
	e.Expect(err).NotTo(HaveOccurred())
	return &machines.Items[0], infra.Status.HostRef.Name
}

func wasEvicted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "EvictionByEvictionAPI"
	})
}

// serveWeb runs the pods on the worker. When it goes, they find a place on the control plane's host: both have the image.
func (e *environment) serveWeb(cluster kubernetes.Interface) {
	e.t.Helper()
	ctx := e.t.Context()
	nodes, err := cluster.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	e.Expect(err).NotTo(HaveOccurred())
	image, err := e.proof().LoadImage(ctx, nodes.Items)
	e.Expect(err).NotTo(HaveOccurred())
	_, err = cluster.PolicyV1().PodDisruptionBudgets("default").Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: web},
		},
	}, metav1.CreateOptions{})
	e.Expect(err).NotTo(HaveOccurred())
	_, err = cluster.AppsV1().Deployments("default").Create(ctx, webDeployment(image), metav1.CreateOptions{})
	e.Expect(err).NotTo(HaveOccurred())
	_, host := e.worker()
	e.Eventually(func(g Gomega) {
		budget, err := cluster.PolicyV1().PodDisruptionBudgets("default").Get(ctx, "web", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(budget.Status.CurrentHealthy).To(BeEquivalentTo(2))
		pods, err := cluster.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		g.Expect(err).NotTo(HaveOccurred())
		for _, pod := range pods.Items {
			g.Expect(pod.Spec.NodeName).To(Equal(host))
		}
	}).Should(Succeed())
}

func webDeployment(image string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2),
			Selector: &metav1.LabelSelector{MatchLabels: web},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: web},
				Spec: corev1.PodSpec{
					Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
						PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
							Weight: 100,
							Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
								Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"workers"},
							}}},
						}},
					}},
					// Where both pods are is up to that alone.
					TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
						MaxSkew: 2, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
						LabelSelector: &metav1.LabelSelector{MatchLabels: web},
					}},
					Tolerations: []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}},
					Containers: []corev1.Container{{
						Name: "agnhost", Image: image, ImagePullPolicy: corev1.PullNever, Args: []string{"netexec"},
					}},
					// Long enough to be seen leaving.
					TerminationGracePeriodSeconds: ptr.To[int64](2),
				},
			},
		},
	}
}
