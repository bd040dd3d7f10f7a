// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
)

// TestForeignControlPlane has workers join a control plane of another provider: its API server is reached by the kubeconfig in a Secret,
// and its authority is in another, as Cluster API's contract has it. What hosts share, a user writes. The provider is an object that says
// what the contract asks for; what is behind it was made in another management cluster, and runs on a real host.
func TestForeignControlPlane(t *testing.T) {
	home := startWith(t, "fo", "control-plane", "worker", "worker")
	last := home
	defer func() {
		if t.Failed() {
			t.Log(last.explain(context.WithoutCancel(t.Context())))
		}
	}()
	phase := home.phases()
	home.startManagers()
	home.apply(home.inventory()...)
	home.apply(home.template("cluster.yaml", map[string]string{
		"NAMESPACE": namespace, "CLUSTER_NAME": clusterName, "KUBERNETES_VERSION": home.bundle.Version("kubernetes"),
		"CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "0",
	})...)
	home.expectReady(0)
	phase("there is a control plane, and nobody looks after it")
	home.stopManagers()
	// Pods come and go there; what a host is made of is below /etc and /usr.
	made := func() []string {
		return slices.DeleteFunc(home.marksOf(home.pool.Hosts[0]), func(mark string) bool {
			return !strings.HasPrefix(mark, "file /etc/") && !strings.HasPrefix(mark, "file /usr/")
		})
	}
	stands := made()
	home.Expect(stands).NotTo(BeEmpty())

	away := home.elsewhere("away")
	last = away
	away.apply(slices.DeleteFunc(away.inventory(), func(o *unstructured.Unstructured) bool {
		return o.GetName() == home.pool.Hosts[0].Name
	})...)
	away.playControlPlane()
	away.trust(home)
	away.apply(away.workersAlone()...)
	away.expectWorkers(1)
	phase("a worker has joined")
	proven(away)
	away.scale(2)
	away.expectWorkers(2)
	away.scale(1)
	away.expectWorkers(1)
	away.expectReset(away.expectFree(1)...)
	phase("deleted there")
	away.scale(0) // with its Cluster, Cluster API would leave the Node
	away.expectWorkers(0)
	away.requestDeletion(clusterName)
	away.expectDeleted(clusterName, converging)
	away.expectFree(2)
	away.expectReset(home.names()[1:]...)
	away.stopManagers()
	nodes, err := home.workload().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	home.Expect(err).NotTo(HaveOccurred())
	home.Expect(namesOf(nodes)).To(ConsistOf(home.pool.Hosts[0].Name))
	now := made()
	home.Expect(onlyIn(now, stands)).To(BeEmpty(), "the control plane host was touched")
	home.Expect(onlyIn(stands, now)).To(BeEmpty(), "the control plane host was touched")

	phase("deleted")
	last = home
	home.startManagers()
	home.requestDeletion(clusterName)
	home.expectDeleted(clusterName, converging)
	home.expectReset()
	home.stopManagers()
}

// otherControlPlane is a kind that follows Cluster API's contract for control plane providers, and its one object.
const otherControlPlane = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: othercontrolplanes.controlplane.cluster.x-k8s.io
  labels:
    cluster.x-k8s.io/v1beta2: v1alpha1
spec:
  group: controlplane.cluster.x-k8s.io
  names: {kind: OtherControlPlane, listKind: OtherControlPlaneList, plural: othercontrolplanes, singular: othercontrolplane}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: controlplane.cluster.x-k8s.io/v1alpha1
kind: OtherControlPlane
metadata: {name: life, namespace: fleet}
status:
  externalManagedControlPlane: true
  initialization: {controlPlaneInitialized: true}
  conditions:
  - {type: Available, status: "True", reason: Available, message: "", lastTransitionTime: "2026-11-25T00:00:00Z"}
`

// workersAlone are the objects of a cluster with one worker whose control plane is another provider's, and of what its hosts share.
func (e *environment) workersAlone() []*unstructured.Unstructured {
	e.t.Helper()
	var kept []*unstructured.Unstructured
	for _, object := range e.cluster(clusterName) {
		switch {
		case object.GetKind() == "KubexmControlPlane", object.GetName() == clusterName+"-control-plane":
			continue
		case object.GetKind() == "Cluster":
			e.Expect(unstructured.SetNestedField(object.Object, "OtherControlPlane", "spec", "controlPlaneRef", "kind")).To(Succeed())
		case object.GetKind() == "KubexmCluster":
			e.Expect(unstructured.SetNestedField(object.Object, map[string]any{
				"host": e.pool.Hosts[0].Address, "port": int64(6443),
			}, "spec", "controlPlaneEndpoint")).To(Succeed())
		}
		kept = append(kept, object)
	}
	return append(kept, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": bootstrapv1.GroupVersion.String(), "kind": "KubexmClusterConfig",
		"metadata": map[string]any{"namespace": namespace, "name": clusterName},
		"spec":     map[string]any{"version": e.bundle.Version("kubernetes")},
	}})
}

// playControlPlane installs the other provider's kind, and makes its object.
func (e *environment) playControlPlane() {
	e.t.Helper()
	ctx := e.t.Context()
	documents := strings.SplitN(otherControlPlane, "---\n", 2)
	objects := make([]*unstructured.Unstructured, len(documents))
	for i, document := range documents {
		objects[i] = &unstructured.Unstructured{}
		e.Expect(yaml.Unmarshal([]byte(document), &objects[i].Object)).To(Succeed())
	}
	for _, of := range []string{"spec", "status"} {
		e.Expect(unstructured.SetNestedField(objects[1].Object, e.bundle.Version("kubernetes"), of, "version")).To(Succeed())
	}
	e.apply(objects[0])
	status := objects[1].DeepCopy()
	e.Eventually(func() error { return e.api.Create(ctx, objects[1]) }).Should(Succeed()) // the kind is served a moment later
	status.SetResourceVersion(objects[1].GetResourceVersion())
	e.Expect(e.api.Status().Update(ctx, status)).To(Succeed())
}

// trust has the Cluster here reach the API server that another management cluster's Cluster has, and know its authority.
func (e *environment) trust(of *environment) {
	e.t.Helper()
	ctx := e.t.Context()
	for purpose, keys := range map[secret.Purpose][]string{secret.Kubeconfig: {"value"}, secret.ClusterCA: {"tls.crt", "tls.key"}} {
		theirs, err := get(ctx, of, secret.Name(clusterName, purpose), &corev1.Secret{})
		e.Expect(err).NotTo(HaveOccurred())
		ours := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: theirs.Name, Labels: map[string]string{clusterv1.ClusterNameLabel: clusterName},
			},
			Type: clusterv1.ClusterSecretType, Data: map[string][]byte{},
		}
		for _, key := range keys {
			ours.Data[key] = theirs.Data[key]
		}
		e.Expect(e.api.Create(ctx, ours)).To(Succeed())
	}
}

// expectWorkers waits until so many workers are Nodes, and their Machines run.
func (e *environment) expectWorkers(count int) {
	e.t.Helper()
	ctx := e.t.Context()
	e.Eventually(func(g Gomega) {
		machines, err := list(ctx, e, clusterName, &clusterv1.MachineList{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(namesOf(machines)).To(HaveLen(count))
		for i := range machines.Items {
			m := &machines.Items[i]
			config, err := get(ctx, e, m.Spec.Bootstrap.ConfigRef.Name, &bootstrapv1.KubexmConfig{})
			g.Expect(err).NotTo(HaveOccurred())
			expectTrue(g, "KubexmConfig "+config.Name, config, bootstrapv1.HostReadyCondition)
			expectTrue(g, "Machine "+m.Name, m, clusterv1.MachineReadyCondition)
		}
		e.readyNodes(ctx, g, 1+count)
	}, converging).Should(Succeed())
}
