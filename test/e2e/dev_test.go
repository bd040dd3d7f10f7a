// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/management"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/dev"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/smoke/proof"
)

// TestDev takes a cluster through its life on hosts of Cluster API's infrastructure provider for development, which runs as its own
// program. Its load balancer is the endpoint of three control plane hosts.
func TestDev(t *testing.T) {
	e, manager := prepare(t)
	e.manage(manager)
	defer func() {
		if t.Failed() {
			t.Log(e.explain(context.WithoutCancel(t.Context())))
		}
	}()
	e.startManagers()
	phase := e.phases()

	phase("the provider is installed")
	provider := e.runDev()
	e.apply(e.template("cluster-dev.yaml", map[string]string{
		"NAMESPACE": namespace, "CLUSTER_NAME": clusterName, "KUBERNETES_VERSION": e.bundle.Version("kubernetes"),
		"CONTROL_PLANE_MACHINE_COUNT": "3", "WORKER_MACHINE_COUNT": "1", "HOST_IMAGE": provider.HostImage,
		"LOAD_BALANCER_IMAGE_REPOSITORY": provider.LoadBalancerRepository, "LOAD_BALANCER_IMAGE_TAG": provider.LoadBalancerTag,
	})...)
	first := e.expectDev(3, 1)
	phase("proven")
	proven := &proof.Cluster{Client: e.workload(), Bundle: e.bundle.Dir(), SSHConfig: e.loginConfig(), Out: t.Output()}
	e.Expect(proven.Prove(t.Context())).To(Succeed())

	phase("a control plane Machine and a worker's are deleted, and others take their places")
	deleted := map[bool]string{}
	for name := range first {
		machine, err := get(t.Context(), e, name, &clusterv1.Machine{})
		e.Expect(err).NotTo(HaveOccurred())
		_, isControlPlane := machine.Labels[clusterv1.MachineControlPlaneLabel]
		if deleted[isControlPlane] == "" {
			e.Expect(e.api.Delete(t.Context(), machine)).To(Succeed())
			deleted[isControlPlane] = name
		}
	}
	e.Eventually(func(g Gomega) {
		machines, err := list(t.Context(), e, clusterName, &clusterv1.MachineList{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(namesOf(machines)).NotTo(ContainElement(BeElementOf(slices.Collect(maps.Values(deleted)))))
	}, converging).Should(Succeed())
	e.expectDev(3, 1)

	phase("scaled to two workers")
	e.scale(2)
	e.expectDev(3, 2)

	phase("rolled out: each worker is replaced by one that lets nobody in once it is a Node")
	before := e.expectDev(3, 2)
	closed, err := get(t.Context(), e, clusterName+"-workers", &bootstrapv1.KubexmConfigTemplate{})
	e.Expect(err).NotTo(HaveOccurred())
	closed.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: clusterName + "-closed"}
	closed.Spec.Template.Spec.AccessPolicy = spec.AccessClosed
	e.Expect(e.api.Create(t.Context(), closed)).To(Succeed())
	deployment, err := get(t.Context(), e, clusterName+"-workers", &clusterv1.MachineDeployment{})
	e.Expect(err).NotTo(HaveOccurred())
	unchanged := deployment.DeepCopy()
	deployment.Spec.Template.Spec.Bootstrap.ConfigRef.Name = closed.Name
	e.Expect(e.api.Patch(t.Context(), deployment, client.MergeFrom(unchanged))).To(Succeed())
	e.expectReplaced(before, 2)
	e.expectClosed()

	phase("a worker's host is killed, and its Machine replaced by a MachineHealthCheck")
	before = e.expectDev(3, 2)
	check := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "workers"}}
	check.Spec.ClusterName = clusterName
	check.Spec.Selector.MatchLabels = map[string]string{clusterv1.MachineDeploymentNameLabel: deployment.Name}
	check.Spec.Checks.UnhealthyNodeConditions = []clusterv1.UnhealthyNodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: ptr.To[int32](10)},
	}
	e.Expect(e.api.Create(t.Context(), check)).To(Succeed())
	var killed string
	for name, node := range before {
		if strings.HasPrefix(name, deployment.Name) && killed == "" {
			killed = name
			out, err := exec.CommandContext(t.Context(), "docker", "kill", node).CombinedOutput()
			e.Expect(err).NotTo(HaveOccurred(), "%s", out)
		}
	}
	e.expectReplaced(map[string]string{killed: before[killed]}, 2)

	phase("deleted")
	e.requestDeletion(clusterName)
	e.expectDeleted(clusterName, converging)
	e.expectNothingLeft()
	e.stopManagers()
}

// expectReplaced waits until none of these workers' Machines is there, and others are in their places.
func (e *environment) expectReplaced(nodes map[string]string, workers int) {
	e.t.Helper()
	e.Eventually(func(g Gomega) {
		machines, err := list(e.t.Context(), e, clusterName, &clusterv1.MachineList{})
		g.Expect(err).NotTo(HaveOccurred())
		for i := range machines.Items {
			if _, is := machines.Items[i].Labels[clusterv1.MachineControlPlaneLabel]; !is {
				g.Expect(nodes).NotTo(HaveKey(machines.Items[i].Name))
			}
		}
	}, converging).Should(Succeed())
	e.expectDev(3, workers)
}

// expectClosed waits until the workers' hosts let us in no more: nothing is there that the bootstrap data has made, and their KubexmConfigs
// say so and are well.
func (e *environment) expectClosed() {
	e.t.Helper()
	ctx := e.t.Context()
	e.Eventually(func(g Gomega) {
		configs, err := list(ctx, e, clusterName, &bootstrapv1.KubexmConfigList{})
		g.Expect(err).NotTo(HaveOccurred())
		for i := range configs.Items {
			c := &configs.Items[i]
			if c.Spec.AccessPolicy != spec.AccessClosed {
				continue
			}
			g.Expect(conditions.GetReason(c, bootstrapv1.HostReachableCondition)).To(Equal(bootstrapv1.AccessClosedReason), c.Name)
			expectTrue(g, "KubexmConfig "+c.Name, c, bootstrapv1.ReadyCondition)
			out, err := exec.CommandContext(ctx, "docker", "exec", c.Status.Host.Name, "sh", "-c",
				"! getent passwd kubexm && ! ls -d /etc/kubexm/door /home/kubexm 2>/dev/null").CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred(), "%s: %s", c.Name, out)
		}
	}, converging).Should(Succeed())
}

// runDev runs the provider until the test ends.
func (e *environment) runDev(changes ...func(*dev.Options)) *dev.Provider {
	e.t.Helper()
	dir := filepath.Join(e.dir, "dev")
	e.Expect(os.Mkdir(dir, 0o700)).To(Succeed())
	o := dev.Options{
		Name: "e2e", Config: e.plane.RESTConfig(), Kubeconfig: management.Kubeconfig(filepath.Join(e.dir, "plane")), Dir: dir,
		Webhooks: e.freePort(), Health: e.freePort(), Diagnostics: e.freePort(), Log: e.t.Logf,
	}
	for _, change := range changes {
		change(&o)
	}
	provider, err := dev.Start(e.t.Context(), o)
	e.Expect(err).NotTo(HaveOccurred())
	e.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopping)
		defer cancel()
		if err := provider.Stop(ctx); err != nil {
			e.t.Error(err)
		}
	})
	return provider
}

// expectDev waits until the cluster is so many control plane hosts and so many workers, behind the provider's load balancer. It returns the
// Machines' Nodes, by the Machines' names.
func (e *environment) expectDev(controlPlanes, workers int) map[string]string {
	e.t.Helper()
	ctx := e.t.Context()
	var nodes map[string]string
	e.Eventually(func(g Gomega) {
		machines, err := list(ctx, e, clusterName, &clusterv1.MachineList{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(namesOf(machines)).To(HaveLen(controlPlanes + workers))
		nodes = map[string]string{}
		for i := range machines.Items {
			m := &machines.Items[i]
			g.Expect(m.DeletionTimestamp).To(BeNil())
			expectTrue(g, "Machine "+m.Name, m, clusterv1.MachineReadyCondition)
			config, err := get(ctx, e, m.Spec.Bootstrap.ConfigRef.Name, &bootstrapv1.KubexmConfig{})
			g.Expect(err).NotTo(HaveOccurred())
			expectTrue(g, "KubexmConfig "+config.Name, config, bootstrapv1.HostReadyCondition)
			g.Expect(config.Status.Host.HostKey).To(HavePrefix("ecdsa-sha2-nistp521 "))
			g.Expect(m.Spec.ProviderID).To(Equal("docker:////" + m.Status.NodeRef.Name))
			nodes[m.Name] = m.Status.NodeRef.Name
		}
		controlPlane, err := get(ctx, e, clusterName, &controlplanev1.KubexmControlPlane{})
		g.Expect(err).NotTo(HaveOccurred())
		expectTrue(g, "KubexmControlPlane", controlPlane, controlplanev1.AvailableCondition)
		expectTrue(g, "KubexmControlPlane", controlPlane, controlplanev1.EtcdClusterHealthyCondition)
		cluster, err := get(ctx, e, clusterName, &clusterv1.Cluster{})
		g.Expect(err).NotTo(HaveOccurred())
		expectTrue(g, "Cluster", cluster, clusterv1.ClusterAvailableCondition)
		all, err := e.workload().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(namesOf(all)).To(HaveLen(controlPlanes + workers))
	}, converging).Should(Succeed())
	return nodes
}

// loginConfig is an ssh_config by which a person gets to the hosts as the provider does: with the Cluster's key, each known by its own.
func (e *environment) loginConfig() string {
	e.t.Helper()
	key, err := get(e.t.Context(), e, clusterName+"-ssh", &corev1.Secret{})
	e.Expect(err).NotTo(HaveOccurred())
	identity, known, path := filepath.Join(e.dir, "identity"), filepath.Join(e.dir, "known_hosts"), filepath.Join(e.dir, "ssh_config")
	e.Expect(os.WriteFile(identity, key.Data[corev1.SSHAuthPrivateKey], 0o600)).To(Succeed())
	configs, err := list(e.t.Context(), e, clusterName, &bootstrapv1.KubexmConfigList{})
	e.Expect(err).NotTo(HaveOccurred())
	var keys string
	for i := range configs.Items {
		host := configs.Items[i].Status.Host
		keys += host.Address + " " + host.HostKey + "\n"
	}
	e.Expect(os.WriteFile(known, []byte(keys), 0o600)).To(Succeed())
	e.Expect(os.WriteFile(path, fmt.Appendf(nil, "User kubexm\nIdentityFile %s\nUserKnownHostsFile %s\nStrictHostKeyChecking yes\n", identity, known), 0o600)).To(Succeed())
	return path
}
