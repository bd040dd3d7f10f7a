// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"net/netip"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	// authority is the Secret of etcd's certificate authority, which Cluster API names so too.
	authority = "etcd"

	// These are where kubeadm has them.
	kubernetes = "/etc/kubernetes/pki"
	clientCA   = kubernetes + "/etcd/ca.crt"
	clientCert = kubernetes + "/apiserver-etcd-client.crt"
	clientKey  = kubernetes + "/apiserver-etcd-client.key"

	clientCAKey = kubernetes + "/etcd/ca.key"
)

func (s Settings) certificate(of string) string { return ssl + "/" + of + "-" + s.Name + ".pem" }
func (s Settings) key(of string) string         { return ssl + "/" + of + "-" + s.Name + "-key.pem" }

// directory is that of the certificates. The account that etcd runs as gets at what is its own there.
func (s Settings) directory() step.Directory {
	if s.Form == Unit {
		return step.Directory{Path: ssl, Mode: 0o750, Group: account}
	}
	return step.Directory{Path: ssl, Mode: 0o700}
}

// Certificates makes the member's certificate, by which it serves clients and peers and is a peer itself, and that of the
// administrator on this host. etcd reads its certificate anew at each handshake; only another authority needs a restart.
func Certificates(s Settings) step.Step {
	addresses := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	if a, err := netip.ParseAddr(s.Address); err == nil {
		addresses = append(addresses, a)
	}
	validity, before := step.Duration(s.Certificates.Validity()), step.Duration(s.Certificates.RenewBefore())
	return step.New(step.Meta{Name: "etcd/certificates", Description: "make etcd's certificates", Follows: step.FollowsUnlessDisruptive}, append(
		append([]step.Step{s.directory()}, step.Authority(authority, caFile, "")...),
		step.Certificate{
			Path: s.certificate("member"), KeyPath: s.key("member"), Owner: s.owner(), Group: s.owner(),
			Authority: authority, Trusted: caFile, CommonName: s.Name,
			DNSNames: []string{s.Name, "localhost"}, Addresses: addresses,
			Usages: []pki.Usage{pki.Server, pki.Client}, Validity: validity, RenewBefore: before,
		},
		step.Certificate{
			Path: s.certificate("admin"), KeyPath: s.key("admin"), Authority: authority, Trusted: caFile, CommonName: "admin-" + s.Name,
			Usages: []pki.Usage{pki.Client}, Validity: validity, RenewBefore: before,
		},
	)...)
}

// ClientCertificates make the certificate by which the API server on the host node is known to etcd. etcd's authority is installed with
// its key, as kubeadm does, so that it can be recovered from the host. before are parts that come first.
func ClientCertificates(c spec.Certificates, node string, before ...step.Step) step.Step {
	return step.New(step.Meta{Name: "etcd/client", Description: "make the API server's certificate for etcd"}, append(
		append(append(before,
			step.Directory{Path: kubernetes, Mode: 0o755},
			step.Directory{Path: kubernetes + "/etcd", Mode: 0o755},
		), step.Authority(authority, clientCA, clientCAKey)...),
		step.Certificate{
			Path: clientCert, KeyPath: clientKey, Authority: authority, Trusted: clientCA, CommonName: "kube-apiserver-etcd-client",
			// etcd gives every certificate of its authority all rights; this tells people whose it is.
			Organizations: []string{node},
			Usages:        []pki.Usage{pki.Client}, Validity: step.Duration(c.Validity()), RenewBefore: step.Duration(c.RenewBefore()),
		},
	)...)
}

// ExternalClient installs what the API server needs to reach an etcd that others run: ca.crt, tls.crt and tls.key of the user's
// Secret.
func ExternalClient(secret string) step.Step {
	return step.New(step.Meta{Name: "etcd/client", Description: "install the API server's certificate for the external etcd"},
		step.Directory{Path: kubernetes, Mode: 0o755},
		step.Directory{Path: kubernetes + "/etcd", Mode: 0o755},
		step.File{Path: clientCA, Mode: 0o644, Content: step.Secret(secret, "ca.crt")},
		step.File{Path: clientCert, Mode: 0o644, Content: step.Secret(secret, "tls.crt")},
		step.File{Path: clientKey, Mode: 0o600, Content: step.Secret(secret, "tls.key")},
	)
}
