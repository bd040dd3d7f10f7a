// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import "slices"

// Place is where a task runs.
type Place int

const (
	// OnHosts tasks make a host what it must be.
	OnHosts Place = iota
	// OnController tasks wait for the cluster, or change it through its API.
	OnController
	// OnRequest tasks run on hosts when somebody asks for them, again and again.
	OnRequest
)

// Task is a task as hooks and limits know it.
type Task struct {
	Name  string
	Place Place
	// Steps are the names of all steps that the task may have.
	Steps []string
}

// Tasks are all tasks that plans may have, with what is a host's name in a task's or step's name left out (ready-<host>). The
// steps of hooks are not among them. They are written down because what is checked here must not depend on what plans are made
// of; a test of package pipeline sees that both agree.
func Tasks() []Task {
	return []Task{
		{"administrators", OnController, []string{"kubernetes/administrators"}},
		{"api", OnController, []string{"gate/api"}},
		{"await", OnHosts, []string{"etcd/await"}},
		{"certificates", OnRequest, []string{
			"etcd/certificates", "etcd/client", "kubeadm/certificates", "kubeadm/node-certificates", "kubernetes/certificates",
			"kubernetes/node-certificates", "kubernetes/ready", "renewal/done", "renewal/outdate",
		}},
		{"cni", OnHosts, []string{"cni/plugins", "cni/template"}},
		{"components", OnHosts, []string{
			"kubelet/resolv", "kubernetes/authorities", "kubernetes/authority", "kubernetes/claim", "kubernetes/programs",
		}},
		{"containerd", OnHosts, []string{
			"containerd/claim", "containerd/config", "containerd/pods", "containerd/programs", "containerd/service",
		}},
		{"control-plane", OnHosts, []string{
			"apiserver/encryption", "apiserver/files", "kubernetes/apiserver", "kubernetes/certificates", "kubernetes/controller-manager", "kubernetes/follow",
			"kubernetes/kubeconfigs", "kubernetes/ready", "kubernetes/scheduler",
		}},
		{"dns", OnController, []string{"coredns/deploy"}},
		{"drain", OnController, []string{"node/drain"}},
		{"etcd", OnHosts, []string{"etcd/certificates", "etcd/member", "etcd/programs", "etcd/snapshot"}},
		{"etcd-care", OnHosts, []string{"etcd/certificates", "etcd/maintenance", "etcd/members", "etcd/programs"}},
		{"etcd-client", OnHosts, []string{"etcd/client", "etcd/programs"}},
		{"etcd-data", OnHosts, []string{"etcd/claim"}},
		{"external", OnController, []string{"gate/etcd"}},
		{"flannel", OnController, []string{"flannel/release"}},
		{"haproxy", OnHosts, []string{"haproxy/config", "haproxy/packages", "haproxy/pod"}},
		{"images", OnHosts, []string{"containerd/images"}},
		{"installed", OnHosts, []string{"upgrade/installed"}},
		{"keepalived", OnHosts, []string{"keepalived/config", "keepalived/packages"}},
		{"kube-proxy", OnController, []string{"kube-proxy/deploy"}},
		{"kube-vip", OnHosts, []string{"kubevip/claim", "kubevip/pod"}},
		{"kubeadm", OnHosts, []string{
			"apiserver/encryption", "apiserver/files", "kubeadm/authorities", "kubeadm/certificates", "kubeadm/control-plane", "kubeadm/etcd-data", "kubeadm/join",
			"kubeadm/kubelet", "kubeadm/node-certificates", "kubeadm/static-pods", "kubelet/healthy", "kubelet/service",
		}},
		{"kubeadm-config", OnController, []string{"kubeadm/config"}},
		{"kubelet", OnHosts, []string{"kubeadm/claim", "kubelet/programs", "kubelet/resolv", "kubelet/unit"}},
		{"nginx", OnHosts, []string{"nginx/config", "nginx/packages", "nginx/pod"}},
		{"node", OnHosts, []string{
			"kubelet/follow", "kubelet/healthy", "kubernetes/joined", "kubernetes/kubelet", "kubernetes/node-certificates",
			"kubernetes/node-kubeconfigs", "kubernetes/proxy",
		}},
		{"ready", OnController, []string{"gate/network", "gate/node", "node/metadata", "node/uncordon"}},
		{"system", OnHosts, []string{
			"system/firewall", "system/hostname", "system/hosts", "system/modules", "system/packages", "system/swap", "system/sysctls",
		}},
		{"token", OnController, []string{"gate/token"}},
		{"upgrade", OnHosts, []string{"upgrade/begin"}},
		{"upgraded", OnHosts, []string{"upgrade/end"}},
		{"user", OnHosts, []string{"system/files", "system/pre-commands"}},
		{"user-after", OnHosts, []string{"system/post-commands"}},
		{"verify", OnController, []string{"gate/version"}},
		{"withdraw", OnHosts, []string{"kubeadm/withdraw", "kubernetes/withdraw"}},
	}
}

func taskNames() []string {
	var names []string
	for _, t := range Tasks() {
		names = append(names, t.Name)
	}
	return names
}

func stepNames() []string {
	var names []string
	for _, t := range Tasks() {
		names = append(names, t.Steps...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
