// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	_ "embed"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

const (
	kubeletDir = "/var/lib/kubelet"
	// kubeletFile is what the kubelet's files were made of: what kubeadm has made once is rendered anew when that is to be another.
	kubeletFile = dir + "/kubeadm-kubelet.yaml"
)

//go:embed kubelet.sh
var kubeletConfig string

// KubeletReads are the files that the kubelet reads when it starts.
func KubeletReads() []string {
	return []string{kubeletDir + "/config.yaml", kubeletDir + "/kubeadm-flags.env", kubeletDir + "/instance-config.yaml"}
}

// BeginKubelet comes before KubeletConfig; see kubelet.BeginChange. upgrading is a path that exists while programs are replaced.
func BeginKubelet(c Cluster, n kubelet.Node, upgrading string) step.Step {
	return kubelet.BeginChange(n.Kubelet, kubelet.Changes{
		Unless: []step.Done{rendered(kubeletFile, kubeletDocuments(c, n))}, InUse: nodeConf, Keeps: KubeletReads(), Upgrading: upgrading,
	})
}

// KubeletConfig brings the kubelet's configuration and flags to what c and n say. The kubelet is restarted for it by the step
// that runs it.
func KubeletConfig(c Cluster, n kubelet.Node) step.Step {
	config := kubeletDocuments(c, n)
	return step.New(step.Meta{Name: "kubeadm/kubelet", Description: "bring the kubelet's configuration up to date"},
		step.Command{
			Title: "configure the kubelet",
			Argv: []string{
				"/usr/bin/env", "config=" + config, "dir=" + dir, "kubelet=" + kubeletDir, "/bin/sh", "-uc", fail + kubeletConfig, "kubeadm",
			},
			Done: rendered(kubeletFile, config),
		},
		step.File{Path: kubeletFile, Mode: 0o600, Content: step.Literal(config)},
	)
}

// made records that kubeadm has just made the kubelet's configuration of this. From then on the file is another step's.
func made(file, content string) step.Step {
	return step.Command{Title: "record what kubeadm has made", Argv: []string{
		"/bin/sh", "-euc", `umask 077; chmod 0600 "$3/config.yaml"; printf %s "$2" >"$1.part"; mv "$1.part" "$1"`, "sh",
		file, content, kubeletDir,
	}}
}

// kubeletDocuments are what the kubelet's configuration is made of. A worker has no keys of authorities, which kubeadm would take
// for a mistake if it saw their certificates: so it is given another directory.
func kubeletDocuments(c Cluster, n kubelet.Node) string {
	if !n.ControlPlane && len(n.Taints) > 0 {
		// As "kubeadm join" has it, for a Node that is deleted and registers anew.
		n.Kubelet.ExtraArgs = append([]spec.Arg{{Name: "register-with-taints", Value: taintFlag(n.Taints)}}, n.Kubelet.ExtraArgs...)
	}
	config := kubeletConfiguration(c)
	maps.Copy(config, kubeletOwn(n))
	config["containerRuntimeEndpoint"] = n.Runtime.Socket
	config["authentication"] = object{"x509": object{"clientCAFile": pki + "/ca.crt"}}
	return documents(
		object{
			"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration", "localAPIEndpoint": localEndpoint(c, n),
			"nodeRegistration": registration(n),
		},
		object{
			"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "clusterName": c.Name, "kubernetesVersion": c.Version,
			"certificatesDir": dir + "/none", "networking": networking(c),
		},
		config,
	)
}

func taintFlag(taints []corev1.Taint) string {
	var all []string
	for _, t := range taints {
		value := ""
		if t.Value != "" {
			value = "=" + t.Value
		}
		all = append(all, t.Key+value+":"+string(t.Effect))
	}
	return strings.Join(all, ",")
}
