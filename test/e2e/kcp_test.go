// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab/flannel"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/kubeadm"
)

// TestKubeadmControlPlane has workers of ours join a control plane of Cluster API's own provider, which runs as its own program and makes
// it by kubeadm, on hosts of Metal3. Its host boots an image that has what that provider takes for granted; workers' hosts boot one that
// has nothing of Kubernetes.
func TestKubeadmControlPlane(t *testing.T) {
	e := startOn(t, hosts.CloudInit, "kc", "control-plane", "worker", "worker")
	ctx, first := t.Context(), e.pool.Hosts[0]
	defer func() {
		if t.Failed() {
			t.Log(e.explain(context.WithoutCancel(ctx)))
			t.Log(e.explainKubeadm(context.WithoutCancel(ctx)))
		}
	}()
	e.startManagers()
	phase := e.phases()

	phase("the control plane's host gets its image")
	e.Expect(kubeadm.Bake(ctx, first, e.bundle,
		kubeadm.Image{Name: "pause"}, kubeadm.Image{Name: "etcd"}, kubeadm.Image{Name: "kube-apiserver"},
		kubeadm.Image{Name: "kube-controller-manager"}, kubeadm.Image{Name: "kube-scheduler"}, kubeadm.Image{Name: "kube-proxy"},
		kubeadm.Image{Name: "coredns"}, kubeadm.Image{Name: "flannel"}, kubeadm.Image{Name: "flannel-cni-plugin"},
	)).To(Succeed())
	phase("the providers are installed")
	e.runKubeadm(kubeadm.Bootstrap)
	e.runKubeadm(kubeadm.ControlPlane)
	player := e.playMetal3()
	e.apply(e.underKubeadm()...)
	e.addNetwork()
	e.expectUnderKubeadm(0)
	phase("there is a control plane")
	// Pods come and go there; what a host is made of is below /etc and /usr.
	made := func() []string {
		return slices.DeleteFunc(e.marksOf(first), func(mark string) bool {
			return !strings.HasPrefix(mark, "file /etc/") && !strings.HasPrefix(mark, "file /usr/")
		})
	}
	stands := made()
	e.Expect(len(stands)).To(BeNumerically(">", 1000))

	e.scale(1)
	e.expectUnderKubeadm(1)
	phase("a worker has joined")
	// cloud-init has given the hosts other keys than they had.
	_, err := hosts.Open(ctx, e.pool.Name, e.pool.Dir)
	e.Expect(err).NotTo(HaveOccurred())
	proven(e)

	phase("scaled to two workers, and to one")
	e.scale(2)
	e.expectUnderKubeadm(2)
	e.scale(1)
	e.expectUnderKubeadm(1)
	e.expectWiped(e.expectAvailable(player, 1))
	now := made()
	e.Expect(onlyIn(now, stands)).To(BeEmpty(), "the control plane host was touched")
	e.Expect(onlyIn(stands, now)).To(BeEmpty(), "the control plane host was touched")
	e.Expect(first.Exec(ctx, "sh", "-c", "ls -d /etc/kubexm /var/lib/kubexm 2>/dev/null; getent passwd kubexm || true")).To(BeEmpty())

	phase("deleted")
	e.requestDeletion(clusterName)
	e.expectDeleted(clusterName, converging) // so its KubeadmControlPlane is, too
	e.expectWiped(e.expectAvailable(player, len(e.pool.Hosts)))
	e.expectNothingLeft()
	e.Eventually(func(g Gomega) { g.Expect(e.ofKubeadm(ctx, g, "KubeadmConfig")).To(BeEmpty()) }).Should(Succeed())
	e.stopManagers()
}

// kubeadmControlPlane is as a user writes it, but for what a bundle's images need, and hosts that are containers on a machine with cgroup
// v1. KubeadmControlPlane has no place for the configuration of kubelets and kube-proxy.
const kubeadmControlPlane = `
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: life, namespace: fleet}
spec:
  replicas: 1
  version: $VERSION
  machineTemplate:
    spec:
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: life-control-plane}
  kubeadmConfigSpec:
    clusterConfiguration:
      etcd: {local: {imageTag: $ETCD_TAG}}
      dns: {imageRepository: $DNS_REPOSITORY, imageTag: $DNS_TAG}
    initConfiguration:
      nodeRegistration:
        name: '{{ ds.meta_data.local_hostname }}'
        imagePullPolicy: Never
        ignorePreflightErrors: [SystemVerification]
        kubeletExtraArgs:
        - {name: node-labels, value: 'metal3.io/uuid={{ ds.meta_data.uuid }}'}
    files:
    - path: /run/kubeadm/more.yaml
      content: |
        ---
        apiVersion: kubelet.config.k8s.io/v1beta1
        kind: KubeletConfiguration
        cgroupDriver: cgroupfs
        failCgroupV1: false
        ---
        apiVersion: kubeproxy.config.k8s.io/v1alpha1
        kind: KubeProxyConfiguration
        conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
    preKubeadmCommands:
    - cat /run/kubeadm/more.yaml >>/run/kubeadm/kubeadm.yaml
`

// underKubeadm are the objects of a cluster on Metal3 whose control plane is a KubeadmControlPlane, with no worker of ours yet, and of what
// its hosts share.
func (e *environment) underKubeadm() []*unstructured.Unstructured {
	e.t.Helper()
	version, known := e.bundle.Version("kubernetes"), e.bundle.Images(runtime.GOARCH)
	cut := func(ref string) (string, string) { at := strings.LastIndex(ref, ":"); return ref[:at], ref[at+1:] }
	_, etcdTag := cut(known["etcd"])
	dns, dnsTag := cut(known["coredns"])
	all := e.template("cluster-metal3.yaml", map[string]string{
		"NAMESPACE": namespace, "CLUSTER_NAME": clusterName, "KUBERNETES_VERSION": version,
		"CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "0", "CONTROL_PLANE_ENDPOINT_HOST": e.pool.Hosts[0].Address,
		"IMAGE_URL": "http://images.example/debian-12.qcow2", "IMAGE_FORMAT": "qcow2",
		"IMAGE_CHECKSUM": "http://images.example/debian-12.qcow2.sha256sum",
	})
	for _, object := range all {
		switch object.GetKind() {
		case "Cluster":
			e.Expect(unstructured.SetNestedField(object.Object, "KubeadmControlPlane", "spec", "controlPlaneRef", "kind")).To(Succeed())
		case "KubexmControlPlane":
			object.Object = nil
			e.Expect(yaml.Unmarshal([]byte(strings.NewReplacer(
				"$VERSION", version, "$ETCD_TAG", etcdTag, "$DNS_REPOSITORY", path.Dir(dns), "$DNS_TAG", dnsTag,
			).Replace(kubeadmControlPlane)), &object.Object)).To(Succeed())
		}
	}
	return append(all, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": bootstrapv1.GroupVersion.String(), "kind": "KubexmClusterConfig",
		"metadata": map[string]any{"namespace": namespace, "name": clusterName},
		"spec":     map[string]any{"version": version},
	}})
}

// forward is what CoreDNS asks for names that are not the cluster's.
var forward = regexp.MustCompile(`(?m)^ *forward [^}]*}\n`)

// addNetwork does what a control plane by kubeadm leaves to its administrator. With no resolver to forward to but itself, CoreDNS would not
// start.
func (e *environment) addNetwork() {
	e.t.Helper()
	ctx := e.t.Context()
	e.Eventually(func(g Gomega) {
		cluster, err := get(ctx, e, clusterName, &clusterv1.Cluster{})
		g.Expect(err).NotTo(HaveOccurred())
		expectTrue(g, "Cluster", cluster, clusterv1.ClusterControlPlaneInitializedCondition)
	}, converging).Should(Succeed())
	configs := e.workload().CoreV1().ConfigMaps(metav1.NamespaceSystem)
	e.Eventually(func(g Gomega) {
		config, err := configs.Get(ctx, "coredns", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		config.Data["Corefile"] = forward.ReplaceAllString(config.Data["Corefile"], "")
		_, err = configs.Update(ctx, config, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}).Should(Succeed())
	raw, err := kubeconfig.FromSecret(ctx, e.api, client.ObjectKey{Namespace: namespace, Name: clusterName})
	e.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(e.dir, "workload.conf")
	e.Expect(os.WriteFile(file, raw, 0o600)).To(Succeed())
	flannel.Install(e.t, e.bundle, file)
}

// expectUnderKubeadm waits until the cluster is the one host of its KubeadmControlPlane and so many workers of ours.
func (e *environment) expectUnderKubeadm(workers int) {
	e.t.Helper()
	ctx := e.t.Context()
	e.Eventually(func(g Gomega) {
		machines, err := list(ctx, e, clusterName, &clusterv1.MachineList{})
		g.Expect(err).NotTo(HaveOccurred())
		kinds := map[string]int{"KubexmConfig": 0}
		for i := range machines.Items {
			expectTrue(g, "Machine "+machines.Items[i].Name, &machines.Items[i], clusterv1.MachineReadyCondition)
			kinds[machines.Items[i].Spec.Bootstrap.ConfigRef.Kind]++
		}
		g.Expect(kinds).To(Equal(map[string]int{"KubeadmConfig": 1, "KubexmConfig": workers}))
		g.Expect(e.configs(ctx, g, func(c *bootstrapv1.KubexmConfig) bool {
			return conditions.IsTrue(c, bootstrapv1.HostReadyCondition)
		})).To(HaveLen(workers))
		controlPlane, err := e.controlPlaneByKubeadm(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		available, err := conditions.UnstructuredGet(controlPlane, clusterv1.AvailableCondition)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(available).To(HaveField("Status", metav1.ConditionTrue))
		cluster, err := get(ctx, e, clusterName, &clusterv1.Cluster{})
		g.Expect(err).NotTo(HaveOccurred())
		expectTrue(g, "Cluster", cluster, clusterv1.ClusterAvailableCondition)
		e.readyNodes(ctx, g, 1+workers)
	}, converging).Should(Succeed())
}

func (e *environment) controlPlaneByKubeadm(ctx context.Context) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("controlplane.cluster.x-k8s.io/v1beta2")
	object.SetKind("KubeadmControlPlane")
	return get(ctx, e, clusterName, object)
}

// explainKubeadm is what the KubeadmControlPlane says, and cloud-init, the kubelet and containers on its host.
func (e *environment) explainKubeadm(ctx context.Context) string {
	var all strings.Builder
	if controlPlane, err := e.controlPlaneByKubeadm(ctx); err == nil {
		describe(&all, controlPlane)
	}
	said, err := e.pool.Hosts[0].Exec(ctx, "sh", "-c", `tail -n 80 /var/log/cloud-init-output.log
journalctl --unit kubelet --no-pager | tail -n 40
for log in /var/log/pods/*/*/*.log; do echo "== $log"; tail -n 5 "$log"; done`)
	all.WriteString(said)
	if err != nil {
		all.WriteString(err.Error() + "\n")
	}
	return all.String()
}
