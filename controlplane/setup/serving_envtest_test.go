// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build envtest

package setup_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"testing"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/workload"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
)

// TestServingCertificates has kubelets ask an API server for serving certificates: what is a worker's own is approved, what is another's
// stays as it is and is told, and what a kubelet of ours asks for is nobody's business.
func TestServingCertificates(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 3)
	f.stop()
	f.serving = func(ctx context.Context, _ secret.Value, c *snapshot.ControlPlane) *snapshot.Serving {
		view, err := workload.Connect(kubeconfigOf(access))
		f.Expect(err).NotTo(HaveOccurred())
		s := view.ApproveServing(ctx, c)
		s.NotTold = view.TellKubeadm(ctx, older)
		return s
	}
	kubeadm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kubeadm-config"},
		Data:       map[string]string{"ClusterConfiguration": "kind: ClusterConfiguration\nkubernetesVersion: v1.33.1\n"},
	}
	f.Expect(api.Create(t.Context(), kubeadm)).To(Succeed())
	t.Cleanup(func() { f.Expect(api.Delete(context.Background(), kubeadm)).To(Succeed()) })
	version := func() string {
		f.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(kubeadm), kubeadm)).To(Succeed())
		return kubeadm.Data["ClusterConfiguration"]
	}
	f.start()
	f.declare(1, controlplanev1.RollingUpdateStrategy)
	f.Eventually(f.done(older), patience, interval).Should(Succeed())
	told := func() *metav1.Condition {
		return conditions.Get(f.controlPlane(), controlplanev1.ServingCertificatesApprovedCondition)
	}

	// The worker is nobody's that the fleet plays.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: f.namespace + "-"}}
	f.Expect(api.Create(t.Context(), node)).To(Succeed())
	t.Cleanup(func() { f.Expect(api.Delete(context.Background(), node)).To(Succeed()) })
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "nodes-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:nodes"}},
	}
	f.Expect(api.Create(t.Context(), binding)).To(Succeed())
	t.Cleanup(func() { f.Expect(api.Delete(context.Background(), binding)).To(Succeed()) })
	own := f.request(node.Name, "10.9.2.1")
	others := f.request(node.Name, "10.9.2.2")
	endpoint := f.request(node.Name, "10.9.0.1")

	f.Consistently(func() []certificatesv1.CertificateSigningRequestCondition {
		return append(f.decided(own), f.decided(others)...)
	}, blink, interval).Should(BeEmpty(), "no worker is another provider's, and nobody looks")
	f.Expect(version()).To(HaveSuffix("v1.33.1\n"))
	f.Expect(told()).To(BeNil())

	machine := otherWorker()
	f.create(machine)
	f.change(machine, func() {
		machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: node.Name}
		machine.Status.Addresses = clusterv1.MachineAddresses{
			{Type: clusterv1.MachineInternalIP, Address: "10.9.2.1"},
			{Type: clusterv1.MachineInternalIP, Address: "10.9.0.1"}, // of an infrastructure that is mistaken
		}
	})
	f.Eventually(func() []certificatesv1.CertificateSigningRequestCondition { return f.decided(own) }, patience, interval).Should(
		ConsistOf(SatisfyAll(HaveField("Type", certificatesv1.CertificateApproved), HaveField("Reason", "NodeOfMachine"))))
	f.Eventually(told, patience, interval).Should(SatisfyAll(
		HaveField("Status", metav1.ConditionFalse), HaveField("Reason", controlplanev1.RequestsNotApprovedReason),
		HaveField("Message", ContainSubstring(others+" of system:node:"+node.Name+": 10.9.2.2 is neither the Node's name nor"))))
	f.Expect(f.decided(others)).To(BeEmpty())
	f.Expect(conditions.Get(f.controlPlane(), controlplanev1.WorkersCanJoinCondition)).To(BeNil())

	t.Log("the infrastructure says that the address is the Machine's")
	f.change(machine, func() {
		machine.Status.Addresses = append(machine.Status.Addresses, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "10.9.2.2"})
	})
	f.Eventually(func() []certificatesv1.CertificateSigningRequestCondition {
		return f.decided(others)
	}, patience, interval).ShouldNot(BeEmpty())
	f.Eventually(told, patience, interval).Should(HaveField("Message", SatisfyAll(
		Not(ContainSubstring(others)), ContainSubstring(endpoint+" of system:node:"+node.Name+": 10.9.0.1 is how the cluster's API is reached"))))
	f.Expect(f.decided(endpoint)).To(BeEmpty())
	f.Expect(version()).To(Equal("kind: ClusterConfiguration\nkubernetesVersion: " + older + "\n"))
}

// TestKubeadmConfigsCannotJoin a control plane whose components are units, and the KubexmControlPlane says so as long as there are any.
func TestKubeadmConfigsCannotJoin(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := newFleet(t, 3)
	f.unit = true
	f.declare(1, controlplanev1.RollingUpdateStrategy)
	f.Eventually(f.done(older), patience, interval).Should(Succeed())
	told := func() *metav1.Condition {
		return conditions.Get(f.controlPlane(), controlplanev1.WorkersCanJoinCondition)
	}
	f.Expect(told()).To(BeNil())
	machine := otherWorker()
	f.create(machine)
	f.Eventually(told, patience, interval).Should(SatisfyAll(
		HaveField("Status", metav1.ConditionFalse), HaveField("Reason", controlplanev1.KubeadmConfigNotSupportedReason),
		HaveField("Message", ContainSubstring("the Machines other have a KubeadmConfig, but spec.cluster.kubernetes.type is Binary"))))
	f.Expect(api.Delete(t.Context(), machine)).To(Succeed())
	f.Eventually(told, patience, interval).Should(BeNil())
}

// otherWorker is a Machine whose host another bootstrap provider makes a Node.
func otherWorker() *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"}},
		Spec: clusterv1.MachineSpec{
			ClusterName: "prod", Version: older,
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "KubexmMachine", Name: "other"},
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfig", Name: "other",
			}},
		},
	}
}

// request has the kubelet of a Node ask for a serving certificate for an address, and returns the request's name.
func (f *fleet) request(node, address string) string {
	f.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	f.Expect(err).NotTo(HaveOccurred())
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		DNSNames: []string{node}, IPAddresses: []net.IP{net.ParseIP(address)},
	}, key)
	f.Expect(err).NotTo(HaveOccurred())
	kubelet := rest.CopyConfig(access)
	kubelet.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"}}
	c, err := client.New(kubelet, client.Options{Scheme: scheme})
	f.Expect(err).NotTo(HaveOccurred())
	r := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeletServingSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		},
	}
	f.Eventually(func() error { return c.Create(f.t.Context(), r) }, patience, interval).Should(Succeed()) // the binding is on its way
	f.t.Cleanup(func() { f.Expect(api.Delete(context.Background(), r)).To(Succeed()) })
	return r.Name
}

// decided is what has become of a request.
func (f *fleet) decided(name string) []certificatesv1.CertificateSigningRequestCondition {
	r := &certificatesv1.CertificateSigningRequest{}
	f.Expect(api.Get(f.t.Context(), client.ObjectKey{Name: name}, r)).To(Succeed())
	return r.Status.Conditions
}

// kubeconfigOf is what leads to an API server.
func kubeconfigOf(c *rest.Config) secret.Value {
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	if err != nil {
		panic(err)
	}
	return secret.New(content)
}
