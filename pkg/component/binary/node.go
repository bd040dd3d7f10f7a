// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

const (
	kubeletName   = "kubelet"
	kubeletConfig = kubeletDir + "/config.yaml"
	proxy         = "kube-proxy"
	proxyConfig   = dir + "/kube-proxy.yaml"
)

// kubeletUnit is the kubelet as a unit.
func kubeletUnit(n Node) unit {
	nodeIP := n.Address
	if n.SecondAddress != "" {
		nodeIP += "," + n.SecondAddress
	}
	ours := []spec.Arg{
		{Name: "config", Value: kubeletConfig},
		{Name: "hostname-override", Value: n.Name},
		{Name: "kubeconfig", Value: kubeletConf},
		{Name: "node-ip", Value: nodeIP},
	}
	if len(n.Labels) > 0 {
		ours = append(ours, spec.Arg{Name: "node-labels", Value: component.JoinLabels(n.Labels)})
	}
	return unit{
		about: "kubelet, the Kubernetes node agent", program: kubeletName, after: n.Runtime.Unit, waited: true,
		args: args(n.Kubelet.ExtraArgs, ours),
	}
}

// BeginKubelet comes before the kubelet's files are written; see kubelet.BeginChange. upgrading is a path that exists while programs
// are replaced.
func BeginKubelet(c Cluster, n Node, upgrading string) step.Step {
	u := kubeletUnit(n)
	return kubelet.BeginChange(n.Kubelet, kubelet.Changes{
		Replaces: []step.Content{
			contentOf(kubeletConfig, kubeletDocument(c, n)),
			contentOf(u.file(), u.String()),
		},
		Upgrading: upgrading,
	})
}

// Kubelet runs the kubelet. It also runs the static pods that others put into /etc/kubernetes/manifests.
func Kubelet(c Cluster, n Node) step.Step {
	parts := []step.Step{
		step.Directory{Path: manifests, Mode: 0o755},
		step.File{Path: kubeletConfig, Mode: 0o600, Content: step.Literal(kubeletDocument(c, n))},
	}
	return step.New(step.Meta{Name: "kubernetes/kubelet", Description: "run the kubelet", Disrupts: "restarts kubelet"},
		append(parts, service(kubeletUnit(n), kubeletConfig, kubeletConf, caFile)...)...)
}

// kubeletDocument is the kubelet's configuration as a file.
func kubeletDocument(c Cluster, n Node) string { return yamlOf(kubeletConfiguration(c, n)) }

// kubeletConfiguration is kubelet.config.k8s.io/v1beta1.
func kubeletConfiguration(c Cluster, n Node) object {
	o := object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": object{
			"anonymous": object{"enabled": false}, "webhook": object{"enabled": true}, "x509": object{"clientCAFile": caFile},
		},
		"authorization": object{"mode": "Webhook"},
		"cgroupDriver":  n.CgroupDriver,
		// One family is enough for pods to ask by: that of every pod's first address.
		"clusterDNS": c.Spec.Network.DNSAddresses()[:1], "clusterDomain": c.Spec.DNS.ClusterDomain,
		"containerRuntimeEndpoint": n.Runtime.Socket,
		"enableProfilingHandler":   false,
		"failSwapOn":               !n.Swap,
		"healthzBindAddress":       "127.0.0.1",
		"maxPods":                  n.Kubelet.MaxPods, "podPidsLimit": n.Kubelet.PodPidsLimit,
		"readOnlyPort": 0,
		// Certificates are made and renewed by us.
		"rotateCertificates": false,
		"staticPodPath":      manifests,
		"tlsCertFile":        kubeletServingCert + ".crt", "tlsPrivateKeyFile": kubeletServingCert + ".key", "tlsMinVersion": tls12,
	}
	if n.CgroupVersion == 1 {
		o["failCgroupV1"] = false
	}
	if n.ProviderID != "" {
		o["providerID"] = n.ProviderID
	}
	if n.ResolvConf != "" {
		o["resolvConf"] = n.ResolvConf
	}
	if len(n.Taints) > 0 {
		o["registerWithTaints"] = n.Taints
	}
	if gates := c.Spec.Kubernetes.FeatureGates; len(gates) > 0 {
		o["featureGates"] = component.GateMap(gates)
	}
	return o
}

// Proxy runs kube-proxy. It needs the program of its mode (iptables, nft) on the host.
func Proxy(c Cluster, n Node) step.Step {
	parts := []step.Step{step.File{Path: proxyConfig, Mode: 0o600, Content: document(proxyConfiguration(c, n))}}
	return step.New(step.Meta{Name: "kubernetes/proxy", Description: "run kube-proxy", Disrupts: "restarts kube-proxy", Retry: again},
		append(parts, service(unit{
			about: "kube-proxy, the Kubernetes service proxy", program: proxy, after: "network-online.target",
			args: []spec.Arg{{Name: "config", Value: proxyConfig}},
		}, proxyConfig, proxyConf, caFile)...)...)
}

// Joined makes done when what comes before it runs. That the Node is there and Ready is seen through the API.
func Joined(done graph.Output[string]) step.Step {
	return step.New(step.Meta{Name: "kubernetes/joined", Description: "the Node's components run", Makes: []string{done.Name}})
}

// proxyConfiguration is kubeproxy.config.k8s.io/v1alpha1.
func proxyConfiguration(c Cluster, n Node) object {
	k := c.Spec.Kubernetes
	all := k.Proxy.Masquerade == spec.MasqueradeAll
	o := object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"bindAddress": "0.0.0.0", "clientConnection": object{"kubeconfig": proxyConf},
		"clusterCIDR": strings.Join(c.Spec.Network.PodCIDRs, ","), "hostnameOverride": n.Name, "mode": string(k.Proxy.Mode),
		// The mode ipvs masquerades by iptables.
		"iptables": object{"masqueradeAll": all}, "nftables": object{"masqueradeAll": all},
		// Left as they are: the host's plan sets these kernel parameters, so that a reset restores them.
		"conntrack": object{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
	}
	if exclude := k.Proxy.IPVS.ExcludeCIDRs; len(exclude) > 0 {
		o["ipvs"] = object{"excludeCIDRs": exclude}
	}
	if len(k.FeatureGates) > 0 {
		o["featureGates"] = component.GateMap(k.FeatureGates)
	}
	return o
}
