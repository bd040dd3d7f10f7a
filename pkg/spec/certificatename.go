// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"slices"
	"strings"
)

// CertificateName is what a certificate that kubexm or kubeadm makes on a host is renewed by: its file's name, without that of the host.
//
// +kubebuilder:validation:Enum=admin;admin.conf;apiserver;apiserver-etcd-client;apiserver-kubelet-client;controller-manager;controller-manager.conf;etcd-admin;etcd-healthcheck-client;etcd-member;etcd-peer;etcd-server;front-proxy-client;kube-proxy;kube-vip;kubelet;kubelet-client;scheduler;scheduler.conf;super-admin.conf
type CertificateName string

// AllCertificates names them all.
const AllCertificates = "all"

// CertificateNames are all that a host may have, whatever fills its cluster's slots, sorted.
var CertificateNames = []CertificateName{
	"admin", "admin.conf", "apiserver", "apiserver-etcd-client", "apiserver-kubelet-client", "controller-manager", "controller-manager.conf",
	"etcd-admin", "etcd-healthcheck-client", "etcd-member", "etcd-peer", "etcd-server", "front-proxy-client", "kube-proxy", "kube-vip", "kubelet",
	"kubelet-client", "scheduler", "scheduler.conf", "super-admin.conf",
}

// ParseCertificates are the certificates of a list such as "apiserver,etcd-member", each once, in the order of CertificateNames; none for
// AllCertificates. Its error names one that there is not.
func ParseCertificates(list string) ([]CertificateName, error) {
	if list == AllCertificates {
		return nil, nil
	}
	asked := map[CertificateName]bool{}
	for word := range strings.SplitSeq(list, ",") {
		name := CertificateName(strings.TrimSpace(word))
		if !slices.Contains(CertificateNames, name) {
			return nil, fmt.Errorf("there is no certificate %q: there are %s, and %s", string(name), JoinCertificates(CertificateNames), AllCertificates)
		}
		asked[name] = true
	}
	return slices.DeleteFunc(slices.Clone(CertificateNames), func(name CertificateName) bool { return !asked[name] }), nil
}

// JoinCertificates is the list that ParseCertificates reads: AllCertificates where there is none.
func JoinCertificates(names []CertificateName) string {
	if len(names) == 0 {
		return AllCertificates
	}
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = string(name)
	}
	return strings.Join(words, ",")
}
