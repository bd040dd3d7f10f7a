// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes and checks the keys of a cluster: certificate authorities, the certificates that they sign, the
// service account keys, and kubeconfigs. It is a thin layer over cfssl (https://github.com/cloudflare/cfssl) that knows
// what kubeadm and Cluster API expect of each; it touches neither hosts nor clusters.
//
//	authorities, err := pki.NewAuthorities(pki.CARequest{})
//	admin, err := authorities.Cluster.Sign(pki.LeafRequest{
//		CommonName: "kubernetes-admin", Organizations: []string{"kubeadm:cluster-admins"}, Usages: []pki.Usage{pki.Client},
//	})
//	kubeconfig, err := pki.Kubeconfig(pki.KubeconfigRequest{
//		Cluster: "c1", Server: "https://10.0.0.10:6443", CA: authorities.Cluster.Cert, User: "kubernetes-admin", Client: admin,
//	})
//
// Private keys are secret.Values: they leave this package through Reveal alone, and no error quotes them.
package pki
