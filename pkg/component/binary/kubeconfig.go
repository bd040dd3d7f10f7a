// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import "github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"

const (
	adminConf             = dir + "/admin.conf"
	controllerManagerConf = dir + "/controller-manager.conf"
	schedulerConf         = dir + "/scheduler.conf"
	kubeletConf           = dir + "/kubelet.conf"
	proxyConf             = dir + "/kube-proxy.conf"
)

// Kubeconfigs writes those of a control plane host: its controller manager and scheduler use the API server beside them, as one
// of another version might not serve what they ask for; people use the endpoint. They name certificates and hold none.
func Kubeconfigs(c Cluster, n Node) step.Step {
	endpoint := "https://" + c.Spec.ControlPlaneEndpoint.HostPort()
	return step.New(step.Meta{Name: "kubernetes/kubeconfigs", Description: "write the control plane's kubeconfigs"},
		kubeconfig(c, adminConf, endpoint, "kubernetes-admin", adminCert),
		kubeconfig(c, controllerManagerConf, n.LocalServer, "system:kube-controller-manager", controllerManagerCert),
		kubeconfig(c, schedulerConf, n.LocalServer, "system:kube-scheduler", schedulerCert),
	)
}

// NodeKubeconfigs writes those of every host.
func NodeKubeconfigs(c Cluster, n Node) step.Step {
	parts := []step.Step{kubeconfig(c, kubeletConf, n.Server, "system:node:"+n.Name, kubeletClientCert)}
	if !n.NoProxy {
		parts = append(parts, kubeconfig(c, proxyConf, n.Server, "system:kube-proxy", proxyCert))
	}
	return step.New(step.Meta{Name: "kubernetes/node-kubeconfigs", Description: "write the Node's kubeconfigs"}, parts...)
}

// kubeconfig names its parts as kubeadm does.
func kubeconfig(c Cluster, path, server, user, cert string) step.Step {
	context := user + "@" + c.Name
	return step.File{Path: path, Mode: 0o600, Content: document(object{
		"apiVersion": "v1", "kind": "Config", "current-context": context,
		"clusters": []object{{"name": c.Name, "cluster": object{"server": server, "certificate-authority": caFile}}},
		"contexts": []object{{"name": context, "context": object{"cluster": c.Name, "user": user}}},
		"users":    []object{{"name": user, "user": object{"client-certificate": cert + ".crt", "client-key": cert + ".key"}}},
	})}
}
