// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metricsserver answers how much processor time and memory Nodes and Pods use, by metrics-server's own Helm chart. Certificates are
// verified on both ways: kubelets' by the cluster's authority, which signs them, and metrics-server's own by the API server.
package metricsserver

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
)

// name is that of the component in the catalogue, of its chart, its image, and what it is in the cluster.
const name = "metrics-server"

// Addon is metrics-server.
type Addon struct{}

var _ component.Addon = Addon{}

// Needs are the image, and on control plane hosts the chart. Which Node it runs on is the scheduler's choice.
func (Addon) Needs(in component.Inputs) component.Needs {
	if !in.IsNode() {
		return component.Needs{}
	}
	n := component.Needs{Optional: component.Optional{Component: name}, Images: component.ImagesNamed(name)}
	if in.IsControlPlane() {
		n.Charts = []string{name}
	}
	return n
}

// authority is the cluster's, as each Pod has it.
const authority = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"

// Release verifies certificates, and runs in a cluster that has no workers yet.
func (Addon) Release(in component.Inputs) component.Chart {
	ref := in.ImageRef(name)
	at := strings.LastIndex(ref, ":")
	return component.Chart{Namespace: metav1.NamespaceSystem, Archive: in.Chart(name), Values: map[string]any{
		"fullnameOverride": name,
		"image":            map[string]any{"repository": ref[:max(at, 0)], "tag": ref[at+1:]},
		"args":             []any{"--kubelet-certificate-authority=" + authority},
		"apiService":       map[string]any{"create": true, "insecureSkipTLSVerify": false},
		// Helm makes the certificate once, and keeps it in upgrades.
		"tls": map[string]any{
			"type": "helm", "clusterDomain": in.Target.Cluster.DNS.ClusterDomain,
			"helm": map[string]any{"lookup": true, "certDurationDays": 3650},
		},
		"tolerations": []any{map[string]any{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}},
	}}
}

// Deployments are one.
func (Addon) Deployments() []string { return []string{metav1.NamespaceSystem + "/" + name} }
