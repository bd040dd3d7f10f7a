// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"net/netip"
	"slices"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// The files that components are given. Of a certificate, the name without its ending.
const (
	caFile           = pkiDir + "/ca.crt"
	caKeyFile        = pkiDir + "/ca.key"
	saPublicFile     = pkiDir + "/sa.pub"
	saPrivateFile    = pkiDir + "/sa.key"
	frontProxyCAFile = pkiDir + "/front-proxy-ca.crt"

	frontProxyCAKeyFile = pkiDir + "/front-proxy-ca.key"

	apiServerCert         = pkiDir + "/apiserver"
	apiServerKubeletCert  = pkiDir + "/apiserver-kubelet-client"
	frontProxyCert        = pkiDir + "/front-proxy-client"
	adminCert             = pkiDir + "/admin"
	controllerManagerCert = pkiDir + "/controller-manager"
	schedulerCert         = pkiDir + "/scheduler"
	proxyCert             = pkiDir + "/kube-proxy"
	kubeletClientCert     = kubeletDir + "/pki/kubelet-client"
	kubeletServingCert    = kubeletDir + "/pki/kubelet"
)

// The users of certificates that roles are bound to, see Administrators. No certificate on a host is of the group system:masters,
// which may do everything whatever roles are bound, and from which nothing can be taken back.
const (
	// adminsGroup has the name that kubeadm gives it.
	adminsGroup   = "kubeadm:cluster-admins"
	kubeletClient = "kube-apiserver-kubelet-client"
)

// Authorities installs the cluster's authorities and service account keys on a control plane host: those that its controller manager
// signs with, and that of the front proxy, so that all of them can be recovered from the host. etcd's is etcd.ClientCertificates'.
func Authorities() step.Step {
	return step.New(step.Meta{Name: "kubernetes/authorities", Description: "install the certificate authorities"},
		slices.Concat(
			[]step.Step{step.Directory{Path: pkiDir, Mode: 0o755}},
			step.Authority("ca", caFile, caKeyFile),
			step.Authority("proxy", frontProxyCAFile, frontProxyCAKeyFile),
			step.Authority("sa", saPublicFile, saPrivateFile),
		)...)
}

// WorkerAuthority installs the certificate by which a worker knows the API server.
func WorkerAuthority() step.Step {
	return step.New(step.Meta{Name: "kubernetes/authority", Description: "install the cluster's certificate authority"},
		append([]step.Step{step.Directory{Path: pkiDir, Mode: 0o755}}, step.Authority("ca", caFile, "")...)...)
}

// Certificates makes those of a control plane host.
func Certificates(c Cluster, n Node) step.Step {
	names, addresses := apiServerNames(c, n)
	serving := certificate(c.Spec.Certificates, apiServerCert, "ca", pki.Server, "kube-apiserver")
	serving.DNSNames, serving.Addresses = names, addresses
	client := func(path, authority, name string, organizations ...string) step.Certificate {
		return certificate(c.Spec.Certificates, path, authority, pki.Client, name, organizations...)
	}
	return step.New(step.Meta{Name: "kubernetes/certificates", Description: "make the control plane's certificates", Follows: step.FollowsUnlessDisruptive},
		serving,
		client(apiServerKubeletCert, "ca", kubeletClient),
		client(frontProxyCert, "proxy", "front-proxy-client"),
		client(controllerManagerCert, "ca", "system:kube-controller-manager"),
		client(schedulerCert, "ca", "system:kube-scheduler"),
		client(adminCert, "ca", "kubernetes-admin", adminsGroup),
	)
}

// NodeCertificates makes those of every host. The API server lets the kubelet's client act for its own Node only, and trusts
// the kubelet by its serving certificate.
func NodeCertificates(c Cluster, n Node) step.Step {
	nodeName := "system:node:" + n.Name
	serving := certificate(c.Spec.Certificates, kubeletServingCert, "ca", pki.Server, nodeName, "system:nodes")
	serving.DNSNames, serving.Addresses = split(n.ServingNames(&c.Spec))
	parts := []step.Step{
		step.Directory{Path: kubeletDir + "/pki", Mode: 0o755},
		certificate(c.Spec.Certificates, kubeletClientCert, "ca", pki.Client, nodeName, "system:nodes"),
		serving,
	}
	if !n.NoProxy {
		parts = append(parts, certificate(c.Spec.Certificates, proxyCert, "ca", pki.Client, "system:kube-proxy"))
	}
	return step.New(step.Meta{
		Name: "kubernetes/node-certificates", Description: "make the Node's certificates", Follows: step.FollowsUnlessDisruptive,
	}, parts...)
}

func certificate(
	c spec.Certificates, path, authority string, usage pki.Usage, name string, organizations ...string,
) step.Certificate {
	trusted := caFile
	if authority == "proxy" {
		trusted = frontProxyCAFile
	}
	return step.Certificate{
		Path: path + ".crt", KeyPath: path + ".key", Authority: authority, Trusted: trusted, CommonName: name, Organizations: organizations,
		Usages: []pki.Usage{usage}, Validity: step.Duration(c.Validity()), RenewBefore: step.Duration(c.RenewBefore()),
	}
}

// apiServerNames are those of the kubernetes Service, of the endpoint and of the host, and the user's.
func apiServerNames(c Cluster, n Node) ([]string, []netip.Addr) {
	e := c.Spec.ControlPlaneEndpoint
	return split(slices.Concat(
		[]string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + c.Spec.DNS.ClusterDomain,
		},
		c.Spec.Network.APIAddresses(), []string{"127.0.0.1", "localhost", e.Domain, e.Address, n.Name, n.Address, n.SecondAddress},
		n.Addresses, c.Spec.Kubernetes.APIServer.CertSANs,
	))
}

// split sorts names and addresses apart, each once.
func split(all []string) (names []string, addresses []netip.Addr) {
	for _, one := range all {
		address, err := netip.ParseAddr(one)
		switch {
		case err == nil && !slices.Contains(addresses, address.Unmap()):
			addresses = append(addresses, address.Unmap())
		case err != nil && one != "" && !slices.Contains(names, one):
			names = append(names, one)
		}
	}
	return names, addresses
}
