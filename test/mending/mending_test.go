// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package mending

import (
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// fault is what is done to a host, and what must come of it.
type fault struct {
	name string
	// host is which of the hosts, and script what is done to it; if empty, it is switched off.
	host   int
	script string
	// by are the reasons of events that tell the means, and never those of means that must not be needed.
	by, never []string
	// mended succeeds on the host when it is well.
	mended string
}

const (
	converges, reboots = "HostConverges", "HostReboots"
	// A KubexmControlPlane replaces a Machine, and a KubexmRemediation leaves one to its MachineSet, which does.
	replaces, leaves = "MachineRemediated", "MachineToBeReplaced"
	drifts           = "Drifted"
)

// How often hosts are looked at: so rarely that a MachineHealthCheck is first, or so often that it has nothing to find.
const rarely, often = time.Hour, 20 * time.Second

// binary is what the cluster is where every component is a unit.
func binary() spec.Cluster {
	return spec.Cluster{
		Kubernetes: spec.Kubernetes{Type: spec.KubernetesKubexm}, Etcd: spec.Etcd{Type: spec.EtcdKubexm},
		ControlPlaneEndpoint: spec.ControlPlaneEndpoint{Internal: spec.LoadBalancerHAProxy},
	}
}

// three is a control plane of three hosts.
var three = size{controlPlanes: 3}

func TestUnhealthy(t *testing.T) {
	c := start(t, "mu", binary(), three, rarely)
	c.suffers(
		kubeletStopped(1, replaces),
		kubeletHidden(2, replaces),
	)
	c.wantLogs(c.pool.Hosts[2].Name)
}

// kubeletStopped is mended by converging, and kubeletHidden by a reboot; replaces is what must not be needed.
func kubeletStopped(host int, replaces string) fault {
	return fault{
		name: "the kubelet is stopped for good", host: host, script: "systemctl disable --now kubelet",
		by: []string{converges}, never: []string{reboots, replaces}, mended: "systemctl is-enabled kubelet && systemctl is-active kubelet",
	}
}

func kubeletHidden(host int, replaces string) fault {
	return fault{
		name: "something is mounted over the kubelet", host: host,
		script: "systemctl stop kubelet && mount --bind /dev/null /usr/local/bin/kubelet",
		by:     []string{converges, reboots, "HostLogsKept", "HostRebooted"}, never: []string{replaces},
		mended: "systemctl is-active kubelet && test -s /usr/local/bin/kubelet",
	}
}

// TestWorkers: a worker's Machine is left to its MachineSet only when nothing else helps.
func TestWorkers(t *testing.T) {
	c := start(t, "mw", binary(), size{controlPlanes: 1, workers: 2}, rarely)
	c.suffers(
		kubeletStopped(1, leaves),
		kubeletHidden(2, leaves),
		fault{name: "a worker's host is switched off", host: 1, by: []string{converges, leaves, "HostGivenUp"}, never: []string{reboots}},
	)
	c.wantLogs(c.pool.Hosts[2].Name)
	c.wantQuarantined(c.pool.Hosts[1].Name)
}

func TestUnits(t *testing.T) {
	c := start(t, "mb", binary(), three, often)
	c.suffers(
		fault{
			name: "a unit is spoiled", host: 0,
			script: "echo 'spoiled' >/etc/systemd/system/kube-apiserver.service && systemctl daemon-reload && systemctl kill --signal KILL kube-apiserver",
			by:     []string{drifts}, never: []string{reboots, replaces}, mended: "systemctl is-active kube-apiserver && ! grep -q spoiled /etc/systemd/system/kube-apiserver.service",
		},
		fault{
			name: "a certificate is deleted", host: 1, script: "rm /etc/kubernetes/pki/apiserver.crt",
			by: []string{drifts}, never: []string{reboots, replaces}, mended: "test -s /etc/kubernetes/pki/apiserver.crt && systemctl is-active kube-apiserver",
		},
		fault{
			name: "etcd is stopped for good", host: 2,
			script: "systemctl disable --now etcd && ln -sfT /dev/null /etc/systemd/system/etcd.service && systemctl daemon-reload",
			by:     []string{drifts}, never: []string{reboots, replaces}, mended: "systemctl is-enabled etcd && systemctl is-active etcd",
		},
		fault{name: "the host with the cluster's address is switched off", host: 0, by: []string{replaces, "HostLogsNotKept", "HostGivenUp"}, never: []string{reboots}},
	)
	c.wantQuarantined(c.pool.Hosts[0].Name)
}

func TestStaticPods(t *testing.T) {
	c := start(t, "mk", spec.Cluster{
		Kubernetes: spec.Kubernetes{Type: spec.KubernetesKubeadm}, Etcd: spec.Etcd{Type: spec.EtcdKubeadm},
		ControlPlaneEndpoint: spec.ControlPlaneEndpoint{Internal: spec.LoadBalancerHAProxy},
	}, three, often)
	const manifests = "/etc/kubernetes/manifests/"
	c.suffers(
		fault{
			name: "a static Pod's manifest is spoiled", host: 1, script: "echo '{' >" + manifests + "kube-apiserver.yaml",
			by: []string{drifts}, never: []string{reboots, replaces}, mended: "grep -q kind: " + manifests + "kube-apiserver.yaml",
		},
		fault{
			name: "etcd is stopped for good", host: 2, script: "rm " + manifests + "etcd.yaml",
			by: []string{drifts}, never: []string{reboots, replaces}, mended: "test -s " + manifests + "etcd.yaml",
		},
	)
}

// wantLogs wants the logs of a host that failed to have been kept.
func (c *cluster) wantLogs(host string) {
	c.t.Helper()
	kept, err := filepath.Glob(filepath.Join(c.logs, namespace, host, "*.log.gz"))
	if err != nil || len(kept) != 1 {
		c.t.Errorf("the logs of the host %s are kept in %v: %v", host, kept, err)
	}
}

// wantQuarantined wants a host not to be handed out again, and to say why.
func (c *cluster) wantQuarantined(name string) {
	c.t.Helper()
	h := &infrav1.KubexmHost{}
	c.get(name, h)
	available, clean := conditions.Get(h, infrav1.AvailableCondition), conditions.Get(h, infrav1.CleanCondition)
	if available == nil || available.Reason != infrav1.QuarantinedReason || clean == nil || clean.Message == "" {
		c.t.Errorf("the host %s is %v, and says %v", name, available, clean)
		return
	}
	c.t.Logf("the host %s: %s: %s; %s: %s", name, available.Reason, available.Message, clean.Reason, clean.Message)
}
