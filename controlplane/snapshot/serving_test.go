// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
)

// signed is a request in PEM as a kubelet makes it.
func signed(t *testing.T, template *x509.CertificateRequest) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// nodeWith is a Node that has these addresses.
func nodeWith(name string, addresses ...string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}

// TestMayServe lets a Node have a certificate for what is its own, and refuses everything else, with the reason.
func TestMayServe(t *testing.T) {
	type asked struct {
		request  *certificatesv1.CertificateSigningRequest
		template *x509.CertificateRequest
		cluster  *snapshot.ControlPlane
		nodes    []corev1.Node
		// content takes the place of the template's.
		content []byte
	}
	template := func(change func(*x509.CertificateRequest)) func(*asked) { return func(a *asked) { change(a.template) } }
	for name, tc := range map[string]struct {
		change func(*asked)
		want   string
	}{
		"the Node's own":             {func(*asked) {}, ""},
		"its name alone":             {template(func(r *x509.CertificateRequest) { r.IPAddresses = nil }), ""},
		"all of its addresses":       {template(func(r *x509.CertificateRequest) { r.IPAddresses = append(r.IPAddresses, net.ParseIP("fd00::21")) }), ""},
		"an elliptic curve's usages": {func(a *asked) { a.request.Spec.Usages = a.request.Spec.Usages[:2] }, ""},
		"another signer": {func(a *asked) {
			a.request.Spec.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName
		}, "the signer is"},
		"a ServiceAccount":          {func(a *asked) { a.request.Spec.Username = "system:serviceaccount:kube-system:x" }, "is no Node"},
		"no name":                   {func(a *asked) { a.request.Spec.Username = "system:node:" }, "is no Node"},
		"a user who is in no group": {func(a *asked) { a.request.Spec.Groups = []string{"system:authenticated"} }, "is no Node"},
		"a Node of no Machine":      {func(a *asked) { a.request.Spec.Username = "system:node:stray" }, "no Machine of the Cluster has the Node stray"},
		"a Machine that leaves":     {func(a *asked) { deleting(&a.cluster.Machines[1]) }, "is being deleted"},
		"a Node of two Machines":    {func(a *asked) { a.cluster.Machines[2].Status.NodeRef.Name = "w1" }, "2 Machines of the Cluster have the Node w1"},
		"a control plane Machine":   {func(a *asked) { a.request.Spec.Username = "system:node:cp" }, "is given its certificate"},
		"a worker of ours":          {func(a *asked) { a.cluster.Machines[1].Spec.Bootstrap.ConfigRef.Kind = "KubexmConfig" }, "is given its certificate"},
		"a client's usage": {func(a *asked) {
			a.request.Spec.Usages = append(a.request.Spec.Usages, certificatesv1.UsageClientAuth)
		}, `"client auth"`},
		"no server's usage":      {func(a *asked) { a.request.Spec.Usages = a.request.Spec.Usages[:1] }, `lack "server auth"`},
		"another Node's subject": {template(func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:w2" }), "the subject is CN=system:node:w2"},
		"a group beside": {template(func(r *x509.CertificateRequest) {
			r.Subject.Organization = []string{"system:nodes", "system:masters"}
		}), "the subject is"},
		"a group alone": {template(func(r *x509.CertificateRequest) {
			r.Subject.Organization = []string{"system:masters"}
		}), "the subject is"},
		"a country":         {template(func(r *x509.CertificateRequest) { r.Subject.Country = []string{"XX"} }), "the subject is"},
		"an e-mail address": {template(func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b.example"} }), "e-mail"},
		"a URI": {template(func(r *x509.CertificateRequest) {
			r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}}
		}), "URIs"},
		"no name and no address at all": {template(func(r *x509.CertificateRequest) { r.IPAddresses, r.DNSNames = nil, nil }), "no name and no address"},
		"an authority": {template(func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}}}
		}), "the extension 2.5.29.19"},
		"another's name": {template(func(r *x509.CertificateRequest) { r.DNSNames = append(r.DNSNames, "w2") }), "w2 is neither the Node's name nor"},
		"another's address": {template(func(r *x509.CertificateRequest) {
			r.IPAddresses = append(r.IPAddresses, net.ParseIP("10.0.0.22"))
		}), "10.0.0.22 is neither"},
		"an address not yet told": {func(a *asked) { a.cluster.Machines[1].Status.Addresses = nil }, "10.0.0.21 is neither"},
		"an address that was once its own": {func(a *asked) {
			a.cluster.Machines[1].Status.Addresses[0].Address = "10.0.0.22"
			a.template.IPAddresses = []net.IP{net.ParseIP("10.0.0.22")}
		}, "but the Node w2 has it"},
		"a name that another Node has": {func(a *asked) {
			a.cluster.Machines[1].Status.Addresses = append(a.cluster.Machines[1].Status.Addresses, clusterv1.MachineAddress{Address: "w2"})
			a.template.DNSNames = []string{"w2"}
		}, "but the Node w2 has it"},
		"the endpoint": {func(a *asked) { a.cluster.Cluster.Spec.ControlPlaneEndpoint.Host = "10.0.0.21" }, "10.0.0.21 is how the cluster's API is reached"},
		"the API's Service": {func(a *asked) {
			a.cluster.Machines[1].Status.Addresses = append(a.cluster.Machines[1].Status.Addresses,
				clusterv1.MachineAddress{Address: "kubernetes.default.svc"})
			a.template.DNSNames = []string{"kubernetes.default.svc"}
		}, "is how the cluster's API is reached"},
		"the loopback": {func(a *asked) {
			a.cluster.Machines[1].Status.Addresses[0].Address = "127.0.0.1"
			a.template.IPAddresses = []net.IP{net.ParseIP("127.0.0.1")}
		}, "every host's own"},
		"no request": {func(a *asked) { a.content = []byte("x") }, "not one CERTIFICATE REQUEST"},
		"what is no DER": {func(a *asked) {
			a.content = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte{1}})
		}, "not readable"},
		"two requests":      {func(a *asked) { one := signed(t, a.template); a.content = append(one, one...) }, "not one CERTIFICATE REQUEST"},
		"another signature": {func(a *asked) { a.content = tampered(t, a.template) }, "not signed with its own key"},
	} {
		t.Run(name, func(t *testing.T) {
			kubeadm := func(m *clusterv1.Machine) { m.Spec.Bootstrap.ConfigRef.Kind = "KubeadmConfig" }
			a := &asked{
				request: &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
					SignerName: certificatesv1.KubeletServingSignerName, Username: "system:node:w1",
					Groups: []string{"system:nodes", "system:authenticated"},
					Usages: []certificatesv1.KeyUsage{
						certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth, certificatesv1.UsageKeyEncipherment,
					},
				}},
				template: &x509.CertificateRequest{
					Subject:  pkix.Name{CommonName: "system:node:w1", Organization: []string{"system:nodes"}},
					DNSNames: []string{"w1"}, IPAddresses: []net.IP{net.ParseIP("10.0.0.21")},
				},
				cluster: &snapshot.ControlPlane{Object: object(), Cluster: &clusterv1.Cluster{}, Machines: []clusterv1.Machine{
					machine("cp", joined), machine("w1", worker, joined, kubeadm), machine("w2", worker, joined, kubeadm),
				}},
				nodes: []corev1.Node{nodeWith("cp", "10.0.0.11"), nodeWith("w1", "10.0.0.21", "fd00::21"), nodeWith("w2", "10.0.0.22")},
			}
			a.cluster.Cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.0.0.10", Port: 6443}
			a.cluster.Machines[1].Status.Addresses = clusterv1.MachineAddresses{
				{Type: clusterv1.MachineInternalIP, Address: "10.0.0.21"}, {Type: clusterv1.MachineInternalIP, Address: "fd00:0::21"},
			}
			tc.change(a)
			if a.request.Spec.Request = a.content; a.content == nil {
				a.request.Spec.Request = signed(t, a.template)
			}
			err := a.cluster.MayServe(a.request, a.nodes)
			if tc.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// tampered is a request that was changed after it was signed.
func tampered(t *testing.T, template *x509.CertificateRequest) []byte {
	t.Helper()
	block, _ := pem.Decode(signed(t, template))
	block.Bytes = []byte(strings.Replace(string(block.Bytes), "system:node:w1", "system:node:w3", 1))
	return pem.EncodeToMemory(block)
}

// TestOtherWorkers counts those whose hosts are not made by a KubexmConfig.
func TestOtherWorkers(t *testing.T) {
	c := &snapshot.ControlPlane{Object: object(), Machines: []clusterv1.Machine{
		machine("cp"), machine("ours", worker, func(m *clusterv1.Machine) { m.Spec.Bootstrap.ConfigRef.Kind = "KubexmConfig" }),
		machine("kubeadm's", worker, func(m *clusterv1.Machine) { m.Spec.Bootstrap.ConfigRef.Kind = "KubeadmConfig" }), machine("nobody's", worker),
	}}
	var names []string
	for _, m := range c.OtherWorkers() {
		names = append(names, m.Name)
	}
	if got := strings.Join(names, " "); got != "kubeadm's nobody's" {
		t.Errorf("they are %s", got)
	}
}
