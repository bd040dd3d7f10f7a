// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package templates

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// soon is how long Cluster API may take for something, on a machine that has other things to do.
const soon = 2 * time.Minute

// TestClusterClass has Cluster API's own reconcilers make clusters of the class, with and without variables, and change
// them as a person who changes a Cluster's topology asks for.
func TestClusterClass(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(soon)
	ctx := t.Context()
	create(t, read(t, "cluster/clusterclass.yaml", values("")))
	g.Eventually(func(g Gomega) {
		class := &clusterv1.ClusterClass{}
		g.Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "kubexm"}, class)).To(Succeed())
		for _, condition := range []string{clusterv1.ClusterClassVariablesReadyCondition,
			clusterv1.ClusterClassRefVersionsUpToDateCondition} {
			g.Expect(conditions.IsTrue(class, condition)).To(BeTrue(), "%s: %s", condition, conditions.GetMessage(class, condition))
		}
	}).Should(Succeed())

	t.Run("as the template has it", func(t *testing.T) {
		create(t, read(t, "cluster/cluster-topology.yaml", values("plain")))
		expectControlPlane(t, "plain", `
containerRuntime: {type: Containerd}
etcd: {type: Binary}
kubernetes: {type: Kubeadm, encryptionAtRest: {provider: Secretbox}}
network: {plugin: Flannel, flannel: {backend: VXLAN}}
`)
		expectWorkers(t, "plain", 2)
	})
	t.Run("with every variable", func(t *testing.T) {
		given := values("full")
		given["CONTROL_PLANE_MACHINE_COUNT"] = "3"
		create(t, withVariables(t, read(t, "cluster/cluster-topology.yaml", given), `
- {name: kubernetesType, value: Binary}
- {name: networkBackend, value: HostGateway}
- {name: controlPlaneRollout, value: RollingUpdate}
- {name: controlPlaneEndpoint, value: {address: 172.16.0.100, loadBalancer: Nginx}}
`))
		expectControlPlane(t, "full", `
containerRuntime: {type: Containerd}
etcd: {type: Binary}
kubernetes: {type: Binary, encryptionAtRest: {provider: Secretbox}}
loadBalancer:
  type: Keepalived
  keepalived: {proxy: Nginx, hosts: {selector: {matchLabels: {role: load-balancer}}}}
network: {plugin: Flannel, flannel: {backend: HostGateway}}
`)
		if got := controlPlane(t, "full").Spec.Rollout.Strategy.Type; got != controlplanev1.RollingUpdateStrategy {
			t.Errorf("the strategy is %s", got)
		}
		want := clusterv1.APIEndpoint{Host: "172.16.0.100", Port: 6443}
		if got := controlPlane(t, "full").Spec.ControlPlaneEndpoint; got != want {
			t.Errorf("the endpoint is %v, not %v", got, want)
		}
	})
	t.Run("a variable's bad value", func(t *testing.T) {
		objects := withVariables(t, read(t, "cluster/cluster-topology.yaml", values("bad")), `[{name: networkBackend, value: ipip}]`)
		err := api.Create(ctx, objects[0])
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("spec.topology.variables[networkBackend].value: Unsupported value")))
	})
	t.Run("scaled", func(t *testing.T) {
		change(t, "plain", func(c *clusterv1.Cluster) { *c.Spec.Topology.Workers.MachineDeployments[0].Replicas = 5 })
		expectWorkers(t, "plain", 5)
	})
	t.Run("upgraded", func(t *testing.T) {
		const from, to = "v1.35.4", "v1.36.3"
		given := values("old")
		given["KUBERNETES_VERSION"] = from
		create(t, read(t, "cluster/cluster-topology.yaml", given))
		expectVersions(t, "old", from, from)
		settle(t, "old", from)
		change(t, "old", func(c *clusterv1.Cluster) { c.Spec.Topology.Version = to })
		expectVersions(t, "old", to, from) // workers wait for the control plane
		settle(t, "old", to)
		expectVersions(t, "old", to, to)
	})
}

// TestClassesOfOthers has Cluster API's own reconcilers make clusters of the classes for other infrastructure providers.
func TestClassesOfOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		given            map[string]string
		cluster, machine string // the specs of the infrastructure's objects
		loadBalancer     spec.LoadBalancerType
	}{
		"byoh": {
			given:   map[string]string{"CONTROL_PLANE_ENDPOINT_HOST": "172.16.0.11"},
			cluster: `{controlPlaneEndpoint: {host: 172.16.0.11, port: 6443}}`, machine: `{selector: {matchLabels: {role: control-plane}}}`,
		},
		"metal3": {
			given: map[string]string{
				"CONTROL_PLANE_ENDPOINT_HOST": "172.16.0.11", "IMAGE_URL": "http://172.16.0.1/os.raw", "IMAGE_CHECKSUM": "http://172.16.0.1/os.sum",
				"IMAGE_FORMAT": "raw",
			},
			cluster: `{cloudProviderEnabled: false, controlPlaneEndpoint: {host: 172.16.0.11, port: 6443}}`,
			machine: `{hostSelector: {matchLabels: {role: control-plane}},
				image: {url: "http://172.16.0.1/os.raw", checksum: "http://172.16.0.1/os.sum", checksumType: sha256, format: raw}}`,
		},
		"dev": {
			given: map[string]string{"HOST_IMAGE": "debian:12", "LOAD_BALANCER_IMAGE_REPOSITORY": "kindest", "LOAD_BALANCER_IMAGE_TAG": "v1"},
			cluster: `{controlPlaneEndpoint: {port: 6443},
				backend: {docker: {loadBalancer: {imageRepository: kindest, imageTag: v1}}}}`,
			machine: `{backend: {docker: {customImage: "debian:12"}}}`, loadBalancer: spec.LoadBalancerInfrastructure,
		},
	} {
		t.Run(name, func(t *testing.T) {
			create(t, read(t, "cluster/clusterclass-"+name+".yaml", values("")))
			given := values("of-" + name)
			maps.Copy(given, tc.given)
			create(t, read(t, "cluster/cluster-topology-"+name+".yaml", given))
			made := controlPlane(t, "of-"+name)
			if got := made.Spec.Cluster.LoadBalancer.Type; got != tc.loadBalancer {
				t.Errorf("the load balancer is %q, not %q", got, tc.loadBalancer)
			}
			cluster := &clusterv1.Cluster{}
			NewWithT(t).Eventually(func(g Gomega) {
				g.Expect(api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "of-" + name}, cluster)).To(Succeed())
				g.Expect(cluster.Spec.InfrastructureRef.IsDefined()).To(BeTrue(), func() string { return state(t, "of-"+name) })
			}, soon).Should(Succeed())
			expectSpec(t, cluster.Spec.InfrastructureRef, tc.cluster)
			expectSpec(t, made.Spec.MachineTemplate.Spec.InfrastructureRef, tc.machine, "template", "spec")
		})
	}
}

// expectSpec wants an object's spec, or what is at a path in it, to be this.
func expectSpec(t *testing.T, ref clusterv1.ContractVersionedObjectReference, spec string, path ...string) {
	t.Helper()
	object, err := external.GetObjectFromContractVersionedRef(t.Context(), api, ref, namespace)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := unstructured.NestedMap(object.Object, append([]string{"spec"}, path...)...)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal([]byte(spec), &want); err != nil {
		t.Fatal(err)
	}
	text := func(of map[string]any) string {
		content, err := yaml.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	if diff := cmp.Diff(text(want), text(got)); diff != "" {
		t.Errorf("the %s (-want +got):\n%s", ref.Kind, diff)
	}
}

// expectVersions waits until a Cluster's KubexmControlPlane and MachineDeployment are declared with these versions.
func expectVersions(t *testing.T, cluster, controlPlaneVersion, workers string) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		g.Expect(controlPlane(t, cluster).Spec.Version).To(Equal(controlPlaneVersion), func() string { return state(t, cluster) })
		all := &clusterv1.MachineDeploymentList{}
		g.Expect(api.List(t.Context(), all, client.InNamespace(namespace),
			client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})).To(Succeed())
		g.Expect(all.Items).To(HaveLen(1))
		g.Expect(all.Items[0].Spec.Template.Spec.Version).To(Equal(workers), func() string { return state(t, cluster) })
	}, soon).Should(Succeed())
}

// settle says of a Cluster's control plane what its provider says when all of its Machines have a version.
func settle(t *testing.T, cluster, version string) {
	t.Helper()
	NewWithT(t).Eventually(func() error {
		object := controlPlane(t, cluster)
		before := object.DeepCopy()
		status := &object.Status
		status.Initialization.ControlPlaneInitialized = ptr.To(true)
		status.Replicas, status.ReadyReplicas, status.AvailableReplicas, status.UpToDateReplicas = ptr.To[int32](1),
			ptr.To[int32](1), ptr.To[int32](1), ptr.To[int32](1)
		status.Version, status.Versions = version, []clusterv1.StatusVersion{{Version: version, Replicas: 1}}
		status.ObservedGeneration = object.Generation
		return api.Status().Patch(t.Context(), object, client.MergeFrom(before))
	}, soon).Should(Succeed())
}

// withVariables gives the Cluster of a topology these variables instead of its own.
func withVariables(t *testing.T, objects []*unstructured.Unstructured, variables string) []*unstructured.Unstructured {
	t.Helper()
	var list []any
	if err := yaml.Unmarshal([]byte(variables), &list); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(objects[0].Object, list, "spec", "topology", "variables"); err != nil {
		t.Fatal(err)
	}
	return objects
}

// expectControlPlane waits for a Cluster's KubexmControlPlane, and wants its spec.cluster to be this.
func expectControlPlane(t *testing.T, cluster, spec string) {
	t.Helper()
	var got, want any
	if err := yaml.Unmarshal([]byte(spec), &want); err != nil {
		t.Fatal(err)
	}
	content, err := yaml.Marshal(controlPlane(t, cluster).Spec.Cluster)
	if err == nil {
		err = yaml.Unmarshal(content, &got)
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\nspec.cluster (-want +got):\n%s", err, diff)
	}
}

// controlPlane waits until a Cluster has its KubexmControlPlane.
func controlPlane(t *testing.T, cluster string) *controlplanev1.KubexmControlPlane {
	t.Helper()
	all := &controlplanev1.KubexmControlPlaneList{}
	NewWithT(t).Eventually(func(g Gomega) {
		g.Expect(api.List(t.Context(), all, client.InNamespace(namespace),
			client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})).To(Succeed())
		g.Expect(all.Items).To(HaveLen(1), func() string { return state(t, cluster) })
	}, soon).Should(Succeed())
	return &all.Items[0]
}

// state is what a Cluster says of its topology.
func state(t *testing.T, name string) string {
	cluster := &clusterv1.Cluster{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, cluster); err != nil {
		return err.Error()
	}
	return conditions.GetMessage(cluster, clusterv1.ClusterTopologyReconciledCondition)
}

func expectWorkers(t *testing.T, cluster string, replicas int32) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		all := &clusterv1.MachineDeploymentList{}
		g.Expect(api.List(t.Context(), all, client.InNamespace(namespace),
			client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})).To(Succeed())
		g.Expect(all.Items).To(HaveLen(1))
		deployment := &all.Items[0]
		g.Expect(*deployment.Spec.Replicas).To(Equal(replicas), func() string { return state(t, cluster) })
		template := deployment.Spec.Template
		g.Expect(template.Labels).To(HaveKey("node-role.kubernetes.io/worker"))
		g.Expect(template.Spec.Bootstrap.ConfigRef.Kind).To(Equal("KubexmConfigTemplate"))
		g.Expect(template.Spec.InfrastructureRef.Kind).To(Equal("KubexmMachineTemplate"))
		g.Expect(deployment.Spec.Rollout.Strategy.RollingUpdate.MaxSurge.IntValue()).To(BeZero())
	}, soon).Should(Succeed())
}

// change changes a Cluster as a person does.
func change(t *testing.T, name string, to func(*clusterv1.Cluster)) {
	t.Helper()
	NewWithT(t).Eventually(func() error {
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		before := cluster.DeepCopy()
		to(cluster)
		return api.Patch(t.Context(), cluster, client.MergeFrom(before))
	}, soon).Should(Succeed())
}
