// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build clusterctl

package clusterctl

import (
	"strings"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/workload"
)

// hooks changes the version of a MachineDeployment while Cluster API has our extension to ask: its Machine follows, and is none other.
// Without the extension, as in all other parts, it is replaced.
func hooks(l *environment) {
	c := cluster{namespace: namespace, name: "hooked", controlPlanes: 1, workers: 1, version: older}
	l.generate(c, nil)
	l.expectReady(c)
	l.patch("kubexmcontrolplane", c.name, `{"spec":{"version":"`+release+`"}}`)
	l.Eventually(func(g Gomega) {
		g.Expect(l.controlPlane(g, c).Status.Versions).To(Equal([]clusterv1.StatusVersion{{Version: release, Replicas: 1}}))
	}).Should(Succeed())

	l.kubectl("", "apply", "-f", "config/runtimeextension/extensionconfig.yaml")
	l.kubectl("", "wait", "extensionconfig", "kubexm", "--for", "condition=Discovered", "--timeout", "60s")
	before, began := l.machines(c), time.Now()
	c.version = release
	l.patch("machinedeployment", c.name+"-workers", `{"spec":{"template":{"spec":{"version":"`+c.version+`"}}}}`)
	l.expectReady(c)
	l.t.Logf("by hooks, the worker has %s after %s", c.version, time.Since(began).Round(time.Second))
	l.Expect(l.machines(c)).To(Equal(before))
	l.kubectl("", "delete", "extensionconfig", "kubexm")
	l.delete(c)
}

// machines are the UIDs of a cluster's Machines, by name.
func (l *environment) machines(c cluster) map[string]types.UID {
	l.t.Helper()
	list := &clusterv1.MachineList{}
	l.Expect(l.api.List(l.t.Context(), list, client.InNamespace(c.namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: c.name})).To(Succeed())
	all := map[string]types.UID{}
	for _, m := range list.Items {
		all[m.Name] = m.UID
	}
	return all
}

// topology makes a cluster of the class, and changes its version: that of the topology is that of all its Machines.
func topology(l *environment) {
	c := cluster{namespace: namespace, name: "classy", controlPlanes: 1, workers: 1, version: older}
	l.generate(c, nil, "--flavor", "topology")
	l.expectReady(c)
	began := time.Now()
	c.version = release
	l.patch("cluster", c.name, `{"spec":{"topology":{"version":"`+c.version+`"}}}`)
	l.expectReady(c)
	l.t.Logf("the topology has %s after %s", c.version, time.Since(began).Round(time.Second))
	l.delete(c)
}

// highlyAvailable makes a cluster with three control plane hosts, and replaces all of its Machines, under a write load and with a
// workload that has a PodDisruptionBudget: those of the control plane when somebody has agreed, with one more for a while, on the
// host to spare, and those of the workers with one less.
func highlyAvailable(l *environment) {
	c := cluster{namespace: namespace, name: "ha", controlPlanes: 3, workers: workers, version: older}
	l.generate(c, map[string]string{"CONTROL_PLANE_ENDPOINT_HOST": l.management.VIP()}, "--flavor", "ha")
	l.expectReady(c)

	config, err := clientcmd.BuildConfigFromFlags("", l.writeKubeconfig(c))
	l.Expect(err).NotTo(HaveOccurred())
	config.Timeout = 5 * time.Second
	api, err := kubernetes.NewForConfig(config)
	l.Expect(err).NotTo(HaveOccurred())
	budget := &workload.Budget{Client: api, Replicas: 2, Least: 1, Image: "registry.k8s.io/pause:3.10.2"}
	l.Expect(budget.Deploy(l.t.Context())).To(Succeed())
	kept := budget.Watch(l.t.Context())
	writes, err := workload.Write(l.t.Context(), api)
	l.Expect(err).NotTo(HaveOccurred())

	c.version = release
	l.patch("kubexmcontrolplane", c.name, `{"spec":{"version":"`+c.version+`","cluster":{"disruption":{"approval":"Required"}}}}`)
	l.approve(c)
	began := time.Now()
	l.Eventually(func(g Gomega) {
		g.Expect(l.controlPlane(g, c).Status.Versions).To(Equal([]clusterv1.StatusVersion{
			{Version: c.version, Replicas: int32(c.controlPlanes)},
		}))
	}, 2*patience).Should(Succeed())
	l.t.Logf("the control plane has %s after %s", c.version, time.Since(began).Round(time.Second))
	l.patch("machinedeployment", c.name+"-workers", `{"spec":{"template":{"spec":{"version":"`+c.version+`"}}}}`)
	l.expectReady(c)
	l.t.Logf("all have %s after %s", c.version, time.Since(began).Round(time.Second))

	seen, err := kept()
	l.Expect(err).NotTo(HaveOccurred())
	outcome, err := writes.Stop(l.t.Context())
	l.Expect(err).NotTo(HaveOccurred())
	l.t.Logf("%s; %s", outcome, seen)
	l.Expect(outcome.Acknowledged).NotTo(BeZero())
	l.Expect(outcome.Lost).To(BeEmpty())
	l.delete(c)
}

// approve agrees to what the control plane shows, with the command that it shows, while there are none but the Machines of before.
func (l *environment) approve(c cluster) {
	l.t.Helper()
	var message string
	l.Eventually(func(g Gomega) {
		waits := conditions.Get(l.controlPlane(g, c), controlplanev1.DisruptionAllowedCondition)
		g.Expect(waits).NotTo(BeNil())
		g.Expect(waits.Reason).To(Equal(controlplanev1.WaitingForApprovalReason), waits.Message)
		message = waits.Message
	}, patience).Should(Succeed())
	l.t.Log("\n" + message)
	l.Expect(l.machines(c)).To(HaveLen(c.controlPlanes + c.workers))
	_, command, found := strings.Cut(message, ": kubectl ")
	l.Expect(found).To(BeTrue(), message)
	l.kubectl("", strings.Fields(command)...)
}

func (l *environment) controlPlane(g Gomega, c cluster) *controlplanev1.KubexmControlPlane {
	cp := &controlplanev1.KubexmControlPlane{}
	g.Expect(l.api.Get(l.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: c.name}, cp)).To(Succeed())
	return cp
}

// patch merges something into an object of the managed clusters.
func (l *environment) patch(kind, name, patch string) {
	l.t.Helper()
	l.kubectl("", "--namespace", namespace, "patch", kind, name, "--type", "merge", "--patch", patch)
}
