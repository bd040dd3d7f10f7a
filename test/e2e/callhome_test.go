// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/dev"
)

// TestCallHome makes a cluster of hosts whose sshd is masked, so that nobody can dial them: they connect to the manager. The worker's is
// killed and booted while it becomes a Node, the managers are others afterwards, and what fails on a host is said where users look. The
// worker's bootstrap data is Ignition's, and lets in whom the Cluster's authority has signed.
func TestCallHome(t *testing.T) {
	e, manager := prepare(t)
	e.manage(manager)
	defer func() {
		if t.Failed() {
			t.Log(e.explain(context.WithoutCancel(t.Context())))
		}
	}()
	port := strconv.Itoa(e.freePort())
	// The others refuse that: nobody there takes connections of hosts.
	e.bootstrap().args = []string{"--call-home-address=" + net.JoinHostPort(e.ownAddress(), port), "--call-home-bind-address=:" + port}
	e.startManagers()
	phase := e.phases()

	phase("the provider is installed")
	provider := e.runDev(func(o *dev.Options) { o.WithoutSSHD = true })
	objects := e.template("cluster-dev.yaml", map[string]string{
		"NAMESPACE": namespace, "CLUSTER_NAME": clusterName, "KUBERNETES_VERSION": e.bundle.Version("kubernetes"),
		"CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "1", "HOST_IMAGE": provider.HostImage,
		"LOAD_BALANCER_IMAGE_REPOSITORY": provider.LoadBalancerRepository, "LOAD_BALANCER_IMAGE_TAG": provider.LoadBalancerTag,
	})
	for _, object := range objects {
		at := map[string][]string{
			"KubexmControlPlane": {"spec", "node"}, "KubexmConfigTemplate": {"spec", "template", "spec"},
		}[object.GetKind()]
		if at != nil {
			e.Expect(unstructured.SetNestedField(object.Object, string(spec.ConnectionCallHome), append(at, "access", "connection")...)).To(Succeed())
		}
		if object.GetKind() == "KubexmConfigTemplate" {
			at := []string{"spec", "template", "spec"}
			e.Expect(unstructured.SetNestedField(object.Object, string(bootstrapv1.IgnitionFormat), append(at, "format")...)).To(Succeed())
			e.Expect(unstructured.SetNestedField(object.Object, int64(300), append(at, "access", "credentials", "userCA", "validitySeconds")...)).
				To(Succeed())
		}
	}
	e.apply(objects...)

	phase("the worker's host is killed and booted while it becomes a Node")
	var container string
	e.Eventually(func(g Gomega) {
		worker := e.workerConfigs(g, 1)[0]
		g.Expect(worker.Status.Progress.CompletedSteps).To(HaveValue(BeNumerically(">", 3)))
		container = worker.Status.Host.Name
	}, converging).Should(Succeed())
	for _, verb := range []string{"kill", "start"} {
		out, err := exec.CommandContext(t.Context(), "docker", verb, container).CombinedOutput()
		e.Expect(err).NotTo(HaveOccurred(), "%s", out)
	}
	e.expectDev(1, 1)

	phase("other managers find the hosts")
	e.stopManagers()
	e.startManagers()
	asked := metav1.NewTime(time.Now().Truncate(time.Second))
	for _, config := range e.allConfigs(e.WithT) {
		before := config.DeepCopy()
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, bootstrapv1.CheckDriftAnnotation, asked.UTC().Format(time.RFC3339))
		e.Expect(e.api.Patch(t.Context(), &config, client.MergeFrom(before))).To(Succeed())
	}
	e.Eventually(func(g Gomega) {
		for _, config := range e.allConfigs(g) {
			checked := config.Status.Operation(bootstrapv1.CheckDriftOperation)
			g.Expect(checked.RequestTime.Time.Equal(asked.Time)).To(BeTrue(), "%s: %v", config.Name, checked)
			g.Expect(checked.Outcome).To(Equal(bootstrapv1.RunSucceeded), checked.Message)
		}
	}, converging).Should(Succeed())

	phase("what fails on a host is said on its KubexmConfig")
	worker := e.workerConfigs(e.WithT, 1)[0]
	before := worker.DeepCopy()
	worker.Spec.Hooks = []spec.Hook{{Name: "fails", Task: "kubelet", When: spec.HookBefore, Commands: []string{"echo the disk is not there >&2; exit 7"}}}
	e.Expect(e.api.Patch(t.Context(), &worker, client.MergeFrom(before))).To(Succeed())
	e.Eventually(func(g Gomega) {
		worker := e.workerConfigs(g, 1)[0]
		g.Expect(conditions.IsFalse(&worker, bootstrapv1.HostConvergedCondition)).To(BeTrue())
		g.Expect(conditions.GetMessage(&worker, bootstrapv1.HostConvergedCondition)).To(And(
			ContainSubstring(worker.Status.Host.Name), ContainSubstring("hook/fails"), ContainSubstring("the disk is not there")))
	}, time.Minute).Should(Succeed())
	before = worker.DeepCopy()
	worker.Spec.Hooks[0].Commands = []string{"true"} // what is taken off the list would stay on the host
	e.Expect(e.api.Patch(t.Context(), &worker, client.MergeFrom(before))).To(Succeed())
	e.expectDev(1, 1)

	phase("deleted")
	e.requestDeletion(clusterName)
	e.expectDeleted(clusterName, converging)
	e.expectNothingLeft()
	e.stopManagers()
}

// ownAddress is an address of this machine that containers reach.
func (e *environment) ownAddress() string {
	e.t.Helper()
	addresses, err := net.InterfaceAddrs()
	e.Expect(err).NotTo(HaveOccurred())
	for _, a := range addresses {
		if prefix, ok := a.(*net.IPNet); ok && prefix.IP.To4() != nil && prefix.IP.IsGlobalUnicast() {
			return prefix.IP.String()
		}
	}
	e.t.Fatal("this machine has no IPv4 address but that of its loopback")
	return ""
}

// allConfigs are the KubexmConfigs of the cluster.
func (e *environment) allConfigs(g Gomega) []bootstrapv1.KubexmConfig {
	e.t.Helper()
	found, err := list(e.t.Context(), e, clusterName, &bootstrapv1.KubexmConfigList{})
	g.Expect(err).NotTo(HaveOccurred())
	return found.Items
}

// workerConfigs are those of workers, so many.
func (e *environment) workerConfigs(g Gomega, n int) []bootstrapv1.KubexmConfig {
	e.t.Helper()
	var workers []bootstrapv1.KubexmConfig
	for _, config := range e.allConfigs(g) {
		if _, is := config.Labels[clusterv1.MachineControlPlaneLabel]; !is {
			workers = append(workers, config)
		}
	}
	g.Expect(workers).To(HaveLen(n))
	return workers
}
