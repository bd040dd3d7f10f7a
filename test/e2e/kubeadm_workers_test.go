// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/management"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/pairing/kubeadm"
)

// TestKubeadmWorkers has workers of Cluster API's own bootstrap provider by kubeadm, which runs as its own program, join a control plane of
// ours. Their hosts boot an image that has what such a provider takes for granted, and their own cloud-init reads the bootstrap data.
func TestKubeadmWorkers(t *testing.T) {
	e := startOn(t, hosts.CloudInit, "kw", "control-plane", "worker", "worker")
	ctx := t.Context()
	defer func() {
		if t.Failed() {
			t.Log(e.explain(context.WithoutCancel(ctx)))
			t.Log(e.explainCloudInit(context.WithoutCancel(ctx)))
		}
	}()
	e.startManagers()
	phase := e.phases()

	phase("workers' hosts get their image")
	for _, h := range e.pool.Hosts[1:] {
		e.Expect(kubeadm.Bake(ctx, h, e.bundle,
			kubeadm.Image{Name: "pause"}, kubeadm.Image{Name: "kube-proxy", As: kubeproxy.Image}, kubeadm.Image{Name: "coredns"},
			kubeadm.Image{Name: "flannel"}, kubeadm.Image{Name: "flannel-cni-plugin"},
		)).To(Succeed())
	}
	phase("the providers are installed")
	e.runKubeadm(kubeadm.Bootstrap)
	e.runKubeadm(kubeadm.ControlPlane) // which has nothing to do here, and keeps to that
	player := e.playMetal3()
	e.apply(e.kubeadmWorkers()...)
	e.expectKubeadmWorkers(1)
	phase("proven")
	// cloud-init has given the hosts other keys than they had.
	_, err := hosts.Open(ctx, e.pool.Name, e.pool.Dir)
	e.Expect(err).NotTo(HaveOccurred())
	proven(e)

	phase("the API server knows the kubelets of all hosts")
	e.expectLogs()

	phase("a worker asks for a certificate for the API server's address")
	e.expectRefused()

	phase("scaled to two workers, and to one; the cluster says a version that kubeadm would refuse, as one that has come two versions on would")
	e.sayVersion("v1.34.0")
	e.scale(2)
	e.expectKubeadmWorkers(2)
	e.expectLogs()
	e.Expect(e.saidVersion()).To(Equal(e.bundle.Version("kubernetes")))
	e.scale(1)
	e.expectKubeadmWorkers(1)
	e.expectWiped(e.expectAvailable(player, 1))

	phase("deleted")
	e.requestDeletion(clusterName)
	e.expectDeleted(clusterName, converging)
	e.expectWiped(e.expectAvailable(player, len(e.pool.Hosts)))
	e.expectNothingLeft()
	for _, kind := range []string{"KubeadmConfig", "KubeadmConfigTemplate"} {
		e.Eventually(func(g Gomega) { g.Expect(e.ofKubeadm(ctx, g, kind)).To(BeEmpty()) }).Should(Succeed())
	}
	e.stopManagers()
}

// runKubeadm runs one of Cluster API's providers by kubeadm until the test ends.
func (e *environment) runKubeadm(name kubeadm.Name) {
	e.t.Helper()
	dir := filepath.Join(e.dir, "kubeadm-"+filepath.Dir(string(name)))
	e.Expect(os.Mkdir(dir, 0o700)).To(Succeed())
	provider, err := kubeadm.Start(e.t.Context(), kubeadm.Options{
		Name: name, Config: e.plane.RESTConfig(), Kubeconfig: management.Kubeconfig(filepath.Join(e.dir, "plane")), Dir: dir,
		Webhooks: e.freePort(), Health: e.freePort(), Diagnostics: e.freePort(),
	})
	e.Expect(err).NotTo(HaveOccurred())
	e.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopping)
		defer cancel()
		e.Expect(provider.Stop(ctx)).To(Succeed())
	})
}

// kubeadmWorkers are the objects of a cluster on Metal3 with one worker, which Cluster API's provider bootstraps. Hosts that are
// containers on a machine with cgroup v1 need more of kubeadm and the kubelet than a user's do.
func (e *environment) kubeadmWorkers() []*unstructured.Unstructured {
	e.t.Helper()
	const images = "http://images.example/"
	all := e.template("cluster-metal3-kubeadm-workers.yaml", map[string]string{
		"NAMESPACE": namespace, "CLUSTER_NAME": clusterName, "KUBERNETES_VERSION": e.bundle.Version("kubernetes"),
		"CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "1", "CONTROL_PLANE_ENDPOINT_HOST": e.pool.Hosts[0].Address,
		"IMAGE_URL": images + "debian-12.qcow2", "IMAGE_FORMAT": "qcow2", "IMAGE_CHECKSUM": images + "debian-12.qcow2.sha256sum",
		"WORKER_IMAGE_URL": images + "kubernetes.qcow2", "WORKER_IMAGE_FORMAT": "qcow2", "WORKER_IMAGE_CHECKSUM": images + "kubernetes.qcow2.sha256sum",
	})
	at := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return o.GetKind() == "KubeadmConfigTemplate" })
	spec, found, err := unstructured.NestedMap(all[at].Object, "spec", "template", "spec")
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(found).To(BeTrue())
	patch := spec["files"].([]any)[0].(map[string]any)
	patch["content"] = patch["content"].(string) + "cgroupDriver: cgroupfs\nfailCgroupV1: false\n"
	e.Expect(unstructured.SetNestedStringSlice(spec, []string{"SystemVerification"},
		"joinConfiguration", "nodeRegistration", "ignorePreflightErrors")).To(Succeed())
	e.Expect(unstructured.SetNestedMap(all[at].Object, spec, "spec", "template", "spec")).To(Succeed())
	return all
}

// expectKubeadmWorkers waits until the cluster is one control plane host and so many workers, which Cluster API's provider bootstraps.
func (e *environment) expectKubeadmWorkers(workers int) {
	e.t.Helper()
	ctx := e.t.Context()
	e.Eventually(func(g Gomega) {
		machines, err := list(ctx, e, clusterName, &clusterv1.MachineList{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(namesOf(machines)).To(HaveLen(1 + workers))
		kinds := map[string]int{}
		for i := range machines.Items {
			expectTrue(g, "Machine "+machines.Items[i].Name, &machines.Items[i], clusterv1.MachineReadyCondition)
			kinds[machines.Items[i].Spec.Bootstrap.ConfigRef.Kind]++
		}
		g.Expect(kinds).To(Equal(map[string]int{"KubexmConfig": 1, "KubeadmConfig": workers}))
		g.Expect(e.ofKubeadm(ctx, g, "KubeadmConfig")).To(HaveLen(workers))
		e.readyCluster(ctx, g, workers)
		e.readyNodes(ctx, g, 1+workers)
	}, converging).Should(Succeed())
}

// ofKubeadm are the names of all objects of a kind of Cluster API's bootstrap provider.
func (e *environment) ofKubeadm(ctx context.Context, g Gomega, kind string) []string {
	all := &unstructured.UnstructuredList{}
	all.SetAPIVersion("bootstrap.cluster.x-k8s.io/v1beta2")
	all.SetKind(kind + "List")
	g.Expect(e.api.List(ctx, all, client.InNamespace(namespace))).To(Succeed())
	return namesOf(all)
}

// expectLogs reads the logs of kube-proxy of all Nodes: the API server asks each kubelet for them, and must know its certificate.
func (e *environment) expectLogs() {
	e.t.Helper()
	ctx, workload := e.t.Context(), e.workload()
	e.Eventually(func(g Gomega) {
		nodes, err := workload.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		pods, err := workload.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		var read []string
		for i := range pods.Items {
			pod := &pods.Items[i]
			if !strings.HasPrefix(pod.Name, "kube-proxy-") {
				continue
			}
			logs, err := workload.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
			g.Expect(err).NotTo(HaveOccurred(), pod.Spec.NodeName)
			g.Expect(logs).NotTo(BeEmpty(), pod.Spec.NodeName)
			read = append(read, pod.Spec.NodeName)
		}
		slices.Sort(read)
		g.Expect(read).To(ConsistOf(namesOf(nodes)))
	}, converging).Should(Succeed())
}

// expectRefused has a worker's kubelet ask for a certificate by which it could pass for the API server. The KubexmControlPlane tells of
// it, and approves nothing.
func (e *environment) expectRefused() {
	e.t.Helper()
	ctx, workload := e.t.Context(), e.workload()
	machines, err := list(ctx, e, clusterName, &clusterv1.MachineList{})
	e.Expect(err).NotTo(HaveOccurred())
	at := slices.IndexFunc(machines.Items, func(m clusterv1.Machine) bool { return m.Spec.Bootstrap.ConfigRef.Kind == "KubeadmConfig" })
	node := machines.Items[at].Status.NodeRef.Name
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	e.Expect(err).NotTo(HaveOccurred())
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		IPAddresses: []net.IP{net.ParseIP(e.pool.Hosts[0].Address)},
	}, key)
	e.Expect(err).NotTo(HaveOccurred())
	kubelet := e.workloadConfig()
	kubelet.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"}}
	asking, err := kubernetes.NewForConfig(kubelet)
	e.Expect(err).NotTo(HaveOccurred())
	request, err := asking.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeletServingSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		},
	}, metav1.CreateOptions{})
	e.Expect(err).NotTo(HaveOccurred())
	told := func(g Gomega) *metav1.Condition {
		controlPlane, err := get(ctx, e, clusterName, &controlplanev1.KubexmControlPlane{})
		g.Expect(err).NotTo(HaveOccurred())
		return conditions.Get(controlPlane, controlplanev1.ServingCertificatesApprovedCondition)
	}
	e.Eventually(told, converging).Should(SatisfyAll(
		HaveField("Reason", controlplanev1.RequestsNotApprovedReason), HaveField("Message", ContainSubstring(request.Name+" of system:node:"+node))))
	request, err = workload.CertificatesV1().CertificateSigningRequests().Get(ctx, request.Name, metav1.GetOptions{})
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(request.Status.Conditions).To(BeEmpty())
	e.Expect(request.Status.Certificate).To(BeEmpty())
	e.Expect(workload.CertificatesV1().CertificateSigningRequests().Delete(ctx, request.Name, metav1.DeleteOptions{})).To(Succeed())
}

// sayVersion has the cluster say another version to who joins it by kubeadm, and saidVersion is what it says.
func (e *environment) sayVersion(version string) {
	e.t.Helper()
	configs := e.workload().CoreV1().ConfigMaps(metav1.NamespaceSystem)
	config, err := configs.Get(e.t.Context(), "kubeadm-config", metav1.GetOptions{})
	e.Expect(err).NotTo(HaveOccurred())
	said := config.Data["ClusterConfiguration"]
	config.Data["ClusterConfiguration"] = kubeadmVersion.ReplaceAllString(said, "kubernetesVersion: "+version)
	e.Expect(config.Data["ClusterConfiguration"]).NotTo(Equal(said))
	_, err = configs.Update(e.t.Context(), config, metav1.UpdateOptions{})
	e.Expect(err).NotTo(HaveOccurred())
}

func (e *environment) saidVersion() string {
	e.t.Helper()
	config, err := e.workload().CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(e.t.Context(), "kubeadm-config", metav1.GetOptions{})
	e.Expect(err).NotTo(HaveOccurred())
	return strings.TrimPrefix(kubeadmVersion.FindString(config.Data["ClusterConfiguration"]), "kubernetesVersion: ")
}

var kubeadmVersion = regexp.MustCompile(`kubernetesVersion: \S+`)

// explainCloudInit is what cloud-init and the kubelet say on all workers' hosts.
func (e *environment) explainCloudInit(ctx context.Context) string {
	var all strings.Builder
	for _, h := range e.pool.Hosts[1:] {
		said, err := h.Exec(ctx, "sh", "-c", "tail -n 60 /var/log/cloud-init-output.log; journalctl --unit kubelet --no-pager | tail -n 40")
		all.WriteString("== " + h.Name + "\n" + said + "\n")
		if err != nil {
			all.WriteString(err.Error() + "\n")
		}
	}
	return all.String()
}
