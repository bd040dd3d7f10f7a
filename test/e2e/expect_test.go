// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// expectReady waits until the cluster is one control plane host and so many workers, and every object says so.
func (e *environment) expectReady(workers int) {
	e.t.Helper()
	ctx := e.t.Context()
	e.Eventually(func(g Gomega) {
		claimed := e.readyMachines(ctx, g, workers)
		e.readyCluster(ctx, g, workers)
		e.readyNodes(ctx, g, len(claimed))
	}, converging).Should(Succeed())
}

// readyMachines returns the hosts of all Machines, by the Machines' names.
func (e *environment) readyMachines(ctx context.Context, g Gomega, workers int) map[string]*infrav1.KubexmHost {
	machines, err := list(ctx, e, clusterName, &clusterv1.MachineList{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(namesOf(machines)).To(HaveLen(1 + workers))
	all, err := e.hosts(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	claimed := map[string]*infrav1.KubexmHost{}
	for i := range machines.Items {
		m := &machines.Items[i]
		infra, err := get(ctx, e, m.Spec.InfrastructureRef.Name, &infrav1.KubexmMachine{})
		g.Expect(err).NotTo(HaveOccurred())
		config, err := get(ctx, e, m.Spec.Bootstrap.ConfigRef.Name, &bootstrapv1.KubexmConfig{})
		g.Expect(err).NotTo(HaveOccurred())
		expectTrue(g, "KubexmConfig "+m.Name, config, bootstrapv1.ReadyCondition)
		expectTrue(g, "KubexmConfig "+m.Name, config, bootstrapv1.HostReadyCondition)
		expectTrue(g, "KubexmMachine "+m.Name, infra, infrav1.ReadyCondition)
		expectTrue(g, "Machine "+m.Name, m, clusterv1.MachineReadyCondition)
		g.Expect(m.Status.Phase).To(Equal(string(clusterv1.MachinePhaseRunning)))
		g.Expect(*config.Status.Progress.CompletedSteps).To(Equal(*config.Status.Progress.TotalSteps))
		g.Expect(config.Status.Operation(bootstrapv1.ConvergeOperation).Outcome).To(Equal(bootstrapv1.RunSucceeded))

		at := slices.IndexFunc(all, func(h infrav1.KubexmHost) bool { return h.Name == infra.Status.HostRef.Name })
		g.Expect(at).NotTo(Equal(-1))
		host := &all[at]
		g.Expect(host.Spec.ClaimRef).To(Equal(infrav1.MachineReference{Name: infra.Name, ClusterName: clusterName, UID: string(infra.UID)}))
		g.Expect(conditions.GetReason(host, infrav1.CleanCondition)).To(Equal(infrav1.InUseReason))
		expectTrue(g, "KubexmHost "+host.Name, host, infrav1.ReachableCondition)
		g.Expect(host.Status.Facts.MemoryBytes).NotTo(BeZero())
		g.Expect(m.Spec.ProviderID).To(Equal(infrav1.ProviderID(host)))
		g.Expect(m.Status.NodeRef.Name).To(Equal(host.Name))
		claimed[m.Name] = host
	}
	return claimed
}

// readyCluster observes the objects that Machines are for.
func (e *environment) readyCluster(ctx context.Context, g Gomega, workers int) {
	version := e.bundle.Version("kubernetes")
	controlPlane, err := get(ctx, e, clusterName, &controlplanev1.KubexmControlPlane{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, kind := range []string{
		controlplanev1.AvailableCondition, controlplanev1.InitializedCondition, controlplanev1.CertificatesAvailableCondition,
		controlplanev1.ControlPlaneComponentsHealthyCondition, controlplanev1.EtcdClusterHealthyCondition,
		controlplanev1.MachinesReadyCondition, controlplanev1.MachinesUpToDateCondition,
	} {
		expectTrue(g, "KubexmControlPlane", controlPlane, kind)
	}
	g.Expect(controlPlane.Status.Versions).To(Equal([]clusterv1.StatusVersion{{Version: version, Replicas: 1}}))
	for _, count := range []*int32{
		controlPlane.Status.Replicas, controlPlane.Status.ReadyReplicas,
		controlPlane.Status.AvailableReplicas, controlPlane.Status.UpToDateReplicas,
	} {
		g.Expect(ptr.Deref(count, 0)).To(BeEquivalentTo(1))
	}
	cluster, err := get(ctx, e, clusterName, &clusterv1.Cluster{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.Spec.ControlPlaneEndpoint).To(Equal(clusterv1.APIEndpoint{Host: e.pool.Hosts[0].Address, Port: 6443}))
	expectTrue(g, "Cluster", cluster, clusterv1.ClusterAvailableCondition)
	deployment, err := get(ctx, e, clusterName+"-workers", &clusterv1.MachineDeployment{})
	g.Expect(err).NotTo(HaveOccurred())
	expectTrue(g, "MachineDeployment", deployment, clusterv1.MachineDeploymentAvailableCondition)
	for _, count := range []*int32{deployment.Status.Replicas, deployment.Status.ReadyReplicas, deployment.Status.AvailableReplicas} {
		g.Expect(ptr.Deref(count, 0)).To(BeEquivalentTo(workers))
	}
}

// readyNodes observes the cluster itself: so many hosts are Nodes, and nothing else is.
func (e *environment) readyNodes(ctx context.Context, g Gomega, count int) []corev1.Node {
	nodes, err := e.workload().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(namesOf(nodes)).To(HaveLen(count))
	for i := range nodes.Items {
		node := &nodes.Items[i]
		g.Expect(slices.ContainsFunc(e.pool.Hosts, func(h *hosts.Host) bool {
			return slices.Contains(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: h.Address})
		})).To(BeTrue(), "the Node %s is none of the hosts", node.Name)
		g.Expect(slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})).To(BeTrue(), "the Node %s is not Ready", node.Name)
		g.Expect(node.Spec.Taints).NotTo(ContainElement(HaveField("Key", clusterv1.NodeUninitializedTaint.Key)))
		g.Expect(node.Spec.Unschedulable).To(BeFalse())
		g.Expect(node.Status.NodeInfo.KubeletVersion).To(Equal(e.bundle.Version("kubernetes")))
		if _, controlPlane := node.Labels["node-role.kubernetes.io/control-plane"]; !controlPlane {
			g.Expect(node.Labels).To(HaveKey("node-role.kubernetes.io/worker"))
			g.Expect(node.Labels).To(HaveKeyWithValue("pool", "workers"))
		}
	}
	return nodes.Items
}

func expectTrue(g Gomega, what string, object conditions.Getter, kind string) {
	condition := conditions.Get(object, kind)
	g.Expect(condition).NotTo(BeNil(), "%s: %s", what, kind)
	g.Expect(condition.Status).To(Equal(metav1.ConditionTrue), "%s: %s: %s: %s", what, kind, condition.Reason, condition.Message)
}

// expectFree waits until so many hosts are free and clean, and returns their names.
func (e *environment) expectFree(count int) []string {
	e.t.Helper()
	var free []string
	e.Eventually(func(g Gomega) {
		free = nil
		all, err := e.hosts(e.t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		for i := range all {
			h := &all[i]
			if h.Spec.ClaimRef != (infrav1.MachineReference{}) {
				continue
			}
			free = append(free, h.Name)
			g.Expect(h.Finalizers).To(BeEmpty())
			g.Expect(conditions.GetReason(h, infrav1.AvailableCondition)).To(Equal(infrav1.FreeReason), h.Name)
			if clean := conditions.Get(h, infrav1.CleanCondition); clean != nil {
				g.Expect(clean.Reason).To(Equal(infrav1.ResetReason), "%s: %s", h.Name, clean.Message)
			}
		}
		g.Expect(free).To(HaveLen(count))
	}).Should(Succeed())
	return free
}

func (e *environment) hosts(ctx context.Context) ([]infrav1.KubexmHost, error) {
	all := &infrav1.KubexmHostList{}
	err := e.api.List(ctx, all, client.InNamespace(namespace))
	return all.Items, err
}

func (e *environment) secrets(ctx context.Context) ([]string, error) {
	all := &corev1.SecretList{}
	err := e.api.List(ctx, all, client.InNamespace(namespace))
	return namesOf(all), err
}

func namesOf(all client.ObjectList) []string {
	var names []string
	_ = meta.EachListItem(all, func(object runtime.Object) error {
		names = append(names, object.(client.Object).GetName())
		return nil
	})
	return names
}

// workload is the cluster's own API, by the kubeconfig that Cluster API's contract has for its users.
func (e *environment) workload() kubernetes.Interface {
	e.t.Helper()
	clientset, err := kubernetes.NewForConfig(e.workloadConfig())
	e.Expect(err).NotTo(HaveOccurred())
	return clientset
}

// workloadConfig is how the cluster's own API is reached.
func (e *environment) workloadConfig() *rest.Config {
	e.t.Helper()
	raw, err := kubeconfig.FromSecret(e.t.Context(), e.api, client.ObjectKey{Namespace: namespace, Name: clusterName})
	e.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	e.Expect(err).NotTo(HaveOccurred())
	return config
}

// expectMetrics sees that what was done on hosts is counted.
func (e *environment) expectMetrics() {
	e.t.Helper()
	e.Expect(e.metrics()).To(MatchRegexp(`(?m)^kubexm_pipeline_total\{.*status="success".*\} [1-9]`))
}

// metrics are those of the bootstrap manager.
func (e *environment) metrics() string {
	e.t.Helper()
	url := fmt.Sprintf("http://127.0.0.1:%d/metrics", e.bootstrap().telemetry)
	request, err := http.NewRequestWithContext(e.t.Context(), http.MethodGet, url, http.NoBody)
	e.Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	e.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	e.Expect(err).NotTo(HaveOccurred())
	return string(content)
}
