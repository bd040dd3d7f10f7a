// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeproxy leads connections to Services to their Pods by kube-proxy. Where it is a Pod on each Node, it has the names and labels
// that every kubeadm cluster has.
package kubeproxy

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	// DaemonSet is its name in kube-system.
	DaemonSet = "kube-proxy"
	// Image is what Pods run: on each Node the kube-proxy of the Node's own version, to which containerd gives this name. So
	// Nodes of two versions live in one cluster, and none needs an image that its host was not given.
	Image = "kubexm.mensylisir.io/kube-proxy:node"
)

//go:embed manifest.yaml
var manifest string

// Deploy makes kube-proxy run on each Node. With strictARP, Nodes answer for the addresses of their own interfaces alone: one of another
// may move between them. After must be there first.
func Deploy(c spec.Cluster, strictARP bool, after graph.Output[string]) step.Step {
	config := document(configuration(c, strictARP))
	sum := sha256.Sum256([]byte(config))
	objects := strings.NewReplacer("$IMAGE", Image, "$DIGEST", hex.EncodeToString(sum[:])).Replace(manifest)
	configMap := document(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "kube-proxy", "namespace": "kube-system", "labels": map[string]any{"app": "kube-proxy"}},
		"data":     map[string]any{"config.conf": config, "kubeconfig.conf": kubeconfig(c)},
	})
	return step.New(step.Meta{
		Name: "kube-proxy/deploy", Description: "deploy kube-proxy", Timeout: step.Duration(time.Minute),
		Retry: step.Retry{Attempts: 5, Delay: step.Duration(time.Second), MaxDelay: step.Duration(10 * time.Second)},
	}, step.Apply{Title: "kube-proxy", Manifest: step.Literal(configMap + "---\n" + objects), After: []string{after.Name}})
}

// configuration is kubeproxy.config.k8s.io/v1alpha1.
func configuration(c spec.Cluster, strictARP bool) map[string]any {
	k := c.Kubernetes
	all := k.Proxy.Masquerade == spec.MasqueradeAll
	o := map[string]any{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"bindAddress": "0.0.0.0", "clientConnection": map[string]any{"kubeconfig": "/var/lib/kube-proxy/kubeconfig.conf"},
		"mode": string(k.Proxy.Mode), "clusterCIDR": strings.Join(c.Network.PodCIDRs, ","),
		"iptables": map[string]any{"masqueradeAll": all}, "nftables": map[string]any{"masqueradeAll": all},
		// Left as they are: the host's plan sets these kernel parameters, so that a reset puts them back.
		"conntrack": map[string]any{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
	}
	if k.Proxy.Mode == spec.ProxyIPVS {
		o["ipvs"] = map[string]any{
			"excludeCIDRs": k.Proxy.IPVS.ExcludeCIDRs, "strictARP": strictARP,
		}
	}
	if len(k.FeatureGates) > 0 {
		gates := make(map[string]bool, len(k.FeatureGates))
		for _, g := range k.FeatureGates {
			gates[g.Name] = g.State == spec.FeatureEnabled
		}
		o["featureGates"] = gates
	}
	return o
}

func kubeconfig(c spec.Cluster) string {
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	return document(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "default",
		"clusters": []map[string]any{{"name": "default", "cluster": map[string]any{
			"certificate-authority": account + "ca.crt", "server": "https://" + c.ControlPlaneEndpoint.HostPort(),
		}}},
		"contexts": []map[string]any{{"name": "default", "context": map[string]any{"cluster": "default", "namespace": "default", "user": "default"}}},
		"users":    []map[string]any{{"name": "default", "user": map[string]any{"tokenFile": account + "token"}}},
	})
}

func document(o map[string]any) string {
	// A map of strings, numbers, lists and maps always marshals.
	text, _ := yaml.Marshal(o)
	return string(text)
}
