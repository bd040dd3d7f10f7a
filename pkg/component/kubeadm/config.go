// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/apiserver"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

// Cluster is what kubeadm must know of the cluster.
type Cluster struct {
	Name, Version string
	Spec          spec.Cluster
	// EtcdImageTag is that of the bundle's image. EtcdEndpoints are the URLs of an etcd that kubeadm does not run; where it runs
	// one there are none.
	EtcdImageTag  string
	EtcdEndpoints []string
	// EtcdCA, EtcdCertificate and EtcdKey are the files by which API servers reach it there, "" where it has no TLS.
	EtcdCA, EtcdCertificate, EtcdKey string
}

// The documents below are kubeadm.k8s.io/v1beta4 and kubelet.config.k8s.io/v1beta1, as far as they are used here.
type (
	object map[string]any
	arg    struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
)

func initConfig(c Cluster, n kubelet.Node) string {
	return documents(
		object{
			"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration",
			"nodeRegistration": registration(n), "patches": object{"directory": patches},
			"localAPIEndpoint": localEndpoint(c, n),
			// kubeadm insists on making a token. Nobody is given this one.
			"bootstrapTokens": []object{{"ttl": "1m0s", "description": "made by kubeadm init and not used"}},
		},
		clusterConfiguration(c, n), kubeletConfiguration(c),
	)
}

// joinConfig ends where the bootstrap token goes. controlPlane is what is said of a control plane host, nil for a worker.
func joinConfig(n kubelet.Node, controlPlane object) string {
	o := object{
		"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "JoinConfiguration",
		"nodeRegistration": registration(n), "patches": object{"directory": patches},
	}
	if controlPlane != nil {
		o["controlPlane"] = controlPlane
	}
	return documents(o) + "discovery:\n  file:\n    kubeConfigPath: " + discovery + "\n"
}

func localEndpoint(c Cluster, n kubelet.Node) object {
	return object{"advertiseAddress": n.Address, "bindPort": c.Spec.ControlPlaneEndpoint.Port}
}

func discoveryConfig(c Cluster) string {
	return documents(object{
		"apiVersion": "v1", "kind": "Config", "current-context": c.Name,
		"clusters": []object{{"name": c.Name, "cluster": object{
			"server": "https://" + c.Spec.ControlPlaneEndpoint.HostPort(), "certificate-authority": pki + "/ca.crt",
		}}},
		// kubeadm wants a user, even one without credentials: the bootstrap token takes their place.
		"contexts": []object{{"name": c.Name, "context": object{"cluster": c.Name, "user": "bootstrap"}}},
		"users":    []object{{"name": "bootstrap", "user": object{}}},
	})
}

func clusterConfiguration(c Cluster, n kubelet.Node) object {
	k := c.Spec.Kubernetes
	gates := []arg{{"profiling", "false"}}
	for _, a := range component.GateArgs(k.FeatureGates) {
		gates = append(gates, arg(a))
	}
	controllers := slices.Clone(gates)
	for _, a := range c.Spec.NodeMaskArgs() {
		controllers = append(controllers, arg(a))
	}
	server := append(slices.Clone(gates), arg{"kubelet-certificate-authority", pki + "/ca.crt"}, arg{"service-account-lookup", "true"})
	for _, a := range apiserver.Args(k) {
		server = append(server, arg(a))
	}
	return object{
		"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration",
		"clusterName": c.Name, "kubernetesVersion": c.Version,
		"certificateValidityPeriod": c.Spec.Certificates.Validity().String(),
		"controlPlaneEndpoint":      c.Spec.ControlPlaneEndpoint.HostPort(),
		"networking":                networking(c),
		"etcd":                      etcd(c),
		"apiServer": object{
			"certSANs": certSANs(c, n), "extraArgs": args(k.APIServer.ExtraArgs, server...), "extraVolumes": volumes(k),
		},
		"controllerManager": object{"extraArgs": args(k.ControllerManager.ExtraArgs, controllers...)},
		"scheduler":         object{"extraArgs": args(k.Scheduler.ExtraArgs, gates...)},
	}
}

// volumes are what the API server's pod has of the host, besides what kubeadm gives it.
func volumes(k spec.Kubernetes) []object {
	all := []object{{
		"name": "policies", "hostPath": apiserver.Dir, "mountPath": apiserver.Dir, "readOnly": true, "pathType": "DirectoryOrCreate",
	}}
	if k.APIServer.Audit.IsOn() {
		all = append(all, object{
			"name": "audit", "hostPath": apiserver.AuditDir, "mountPath": apiserver.AuditDir, "pathType": "DirectoryOrCreate",
		})
	}
	if k.EncryptionAtRest.IsOn() {
		all = append(all, object{
			"name": "encryption", "hostPath": apiserver.EncryptionDir, "mountPath": apiserver.EncryptionDir, "readOnly": true, "pathType": "Directory",
		})
	}
	return all
}

func networking(c Cluster) object {
	return object{
		"podSubnet": strings.Join(c.Spec.Network.PodCIDRs, ","), "serviceSubnet": strings.Join(c.Spec.Network.ServiceCIDRs, ","),
		"dnsDomain": c.Spec.DNS.ClusterDomain,
	}
}

func etcd(c Cluster) object {
	if len(c.EtcdEndpoints) == 0 {
		return object{"local": object{
			"dataDir": c.Spec.Etcd.DataDir, "imageTag": c.EtcdImageTag, "extraArgs": args(c.Spec.Etcd.Flags()),
		}}
	}
	o := object{"endpoints": c.EtcdEndpoints}
	if c.EtcdCA != "" {
		o["caFile"], o["certFile"], o["keyFile"] = c.EtcdCA, c.EtcdCertificate, c.EtcdKey
	}
	return object{"external": o}
}

// certSANs are the names of the endpoint and of the host, and the user's; kubeadm adds those of the kubernetes Service, but for
// its address of a second family.
func certSANs(c Cluster, n kubelet.Node) []string {
	var names, second []string
	if c.Spec.Network.IsDualStack() {
		second = c.Spec.Network.APIAddresses()[1:]
	}
	for _, name := range slices.Concat(
		[]string{c.Spec.ControlPlaneEndpoint.Domain, c.Spec.ControlPlaneEndpoint.Address}, n.Addresses, []string{n.SecondAddress}, second,
		c.Spec.Kubernetes.APIServer.CertSANs,
	) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// kubeletConfiguration is what all kubelets share. kubeadm keeps it in the cluster, from where hosts that join take it.
func kubeletConfiguration(c Cluster) object {
	k := c.Spec.Kubernetes.Kubelet
	o := object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"maxPods": k.MaxPods, "podPidsLimit": k.PodPidsLimit, "rotateCertificates": true,
	}
	if len(c.Spec.Kubernetes.FeatureGates) > 0 {
		o["featureGates"] = component.GateMap(c.Spec.Kubernetes.FeatureGates)
	}
	return o
}

// kubeletPatch is what this host's kubelet has of its own. kubeadm lays it over what is shared.
func kubeletPatch(n kubelet.Node) string { return documents(kubeletOwn(n)) }

func kubeletOwn(n kubelet.Node) object {
	o := object{
		"cgroupDriver": n.CgroupDriver, "maxPods": n.Kubelet.MaxPods, "podPidsLimit": n.Kubelet.PodPidsLimit, "failSwapOn": !n.Swap,
	}
	if n.CgroupVersion == 1 {
		o["failCgroupV1"] = false
	}
	// Without these the kubelet signs a certificate for itself, which the API server could not know it by.
	o["tlsCertFile"], o["tlsPrivateKeyFile"] = servingCert+".crt", servingCert+".key"
	return o
}

func registration(n kubelet.Node) object {
	nodeIP := n.Address
	if n.SecondAddress != "" {
		nodeIP += "," + n.SecondAddress
	}
	extra := []arg{{"node-ip", nodeIP}}
	if n.ProviderID != "" {
		extra = append(extra, arg{"provider-id", n.ProviderID})
	}
	if n.ResolvConf != "" {
		extra = append(extra, arg{"resolv-conf", n.ResolvConf})
	}
	if len(n.Labels) > 0 {
		extra = append(extra, arg{"node-labels", component.JoinLabels(n.Labels)})
	}
	taints := n.Taints
	if taints == nil {
		taints = []corev1.Taint{}
	}
	return object{
		"name": n.Name, "criSocket": n.Runtime.Socket, "imagePullPolicy": "Never",
		"taints": taints, "kubeletExtraArgs": args(n.Kubelet.ExtraArgs, extra...),
	}
}

// args are the user's arguments after ours; where both name one, the user's count.
func args(users []spec.Arg, ours ...arg) []arg {
	named := make(map[string]bool)
	for _, a := range users {
		named[a.Name] = true
	}
	all := []arg{}
	for _, a := range ours {
		if !named[a.Name] {
			all = append(all, a)
		}
	}
	for _, a := range users {
		all = append(all, arg(a))
	}
	return all
}

func documents(os ...object) string {
	var docs []string
	for _, o := range os {
		// A map of strings, numbers, lists and maps always marshals.
		doc, _ := yaml.Marshal(o)
		docs = append(docs, string(doc))
	}
	return strings.Join(docs, "---\n")
}
