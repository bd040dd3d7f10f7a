// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package remediation

import (
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/fleet"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// fault is what is done to a host, and what must come of it.
type fault struct {
	name string
	// host is which of the hosts, and script what is done to it; if empty, it is switched off.
	host   int
	script string
	// by are the reasons of events that tell the means, and never those of means that must not be needed.
	by, never []string
	// repaired succeeds on the host when it is well.
	repaired string
}

const (
	converges, reboots = "ReconvergingHost", "RebootingHost"
	// A KubexmControlPlane replaces a Machine, and a KubexmRemediation leaves one to its MachineSet, which does.
	replaces, leaves = "MachineRemediated", "WaitingForOwnerRemediation"
	drifts, logsKept = "Drifted", "HostLogsCollected"
)

// How often hosts are observed: so rarely that a MachineHealthCheck is first, or so often that it has nothing to find.
const rarely, often = time.Hour, 20 * time.Second

// binary is what the cluster is where every component is a unit.
func binary() spec.Cluster {
	return spec.Cluster{
		Kubernetes: spec.Kubernetes{Type: spec.KubernetesKubexm}, Etcd: spec.Etcd{Type: spec.EtcdKubexm},
		LoadBalancer: spec.LoadBalancer{Type: spec.LoadBalancerNodeLocal},
	}
}

// controlPlane is one of three hosts, which are observed so often.
func controlPlane(t *testing.T, pool string, shared spec.Cluster, lookEvery time.Duration) cluster {
	t.Helper()
	return start(t, fleet.Options{Pool: pool, ControlPlanes: 3, DriftCheckInterval: lookEvery}, shared)
}

// start makes a cluster with a host to spare, and has unhealthy Machines of its control plane found.
func start(t *testing.T, o fleet.Options, shared spec.Cluster) cluster {
	t.Helper()
	o.Subnet, o.Bundles, o.Spare = lab.Subnet(t, "REMEDIATION_SUBNET"), []string{lab.Bundle(t, "KUBEXM_BUNDLE", "bundle")}, 1
	shared.Reset.TimeoutSeconds = ptr.To[int32](60) // as long as it takes to find out that a host is off, on a machine with other work
	o.ControlPlane = controlplanev1.KubexmControlPlaneSpec{
		Cluster: shared,
		// As short as they can be, but for tests of nobody else.
		Remediation: controlplanev1.Remediation{
			ConvergeTimeoutSeconds: ptr.To[int32](60), RebootTimeoutSeconds: ptr.To[int32](180),
			MinHealthyPeriodSeconds: ptr.To[int32](30),
		},
	}
	c := cluster{fleet.Start(t, o)}
	c.watch(fleet.ControlPlane, clusterv1.MachineControlPlaneLabel, nil)
	return c
}

func TestUnhealthy(t *testing.T) {
	c := controlPlane(t, "mu", binary(), rarely)
	c.suffers(
		kubeletStopped(1, replaces),
		kubeletHidden(2, replaces),
	)
}

// kubeletStopped is repaired by converging, and kubeletHidden by a reboot; replaces is what must not be needed.
func kubeletStopped(host int, replaces string) fault {
	return fault{
		name: "the kubelet is stopped for good", host: host, script: "systemctl disable --now kubelet",
		by: []string{converges}, never: []string{reboots, replaces}, repaired: "systemctl is-enabled kubelet && systemctl is-active kubelet",
	}
}

func kubeletHidden(host int, replaces string) fault {
	return fault{
		name: "something is mounted over the kubelet", host: host,
		script: "systemctl stop kubelet && mount --bind /dev/null /usr/local/bin/kubelet",
		by:     []string{converges, reboots, logsKept, "HostRebooted"}, never: []string{replaces},
		repaired: "systemctl is-active kubelet && test -s /usr/local/bin/kubelet",
	}
}

// TestWorkers: a worker's Machine is left to its MachineSet only when nothing else helps.
func TestWorkers(t *testing.T) {
	c := start(t, fleet.Options{Pool: "mw", ControlPlanes: 1, Workers: 2, DriftCheckInterval: rarely}, binary())
	template := &bootstrapv1.KubexmRemediationTemplate{ObjectMeta: fleet.Of(fleet.Worker)}
	template.Spec.Template.Spec = bootstrapv1.KubexmRemediationSpec{
		// Longer than a host is dialled, six times: one that does not answer is not told to reboot then.
		ConvergeTimeoutSeconds: ptr.To[int32](150), RebootTimeoutSeconds: ptr.To[int32](180),
		MinHealthyPeriodSeconds: ptr.To[int32](30),
	}
	c.Create(template)
	c.watch(fleet.Worker, fleet.Worker, template)
	c.suffers(
		kubeletStopped(1, leaves),
		kubeletHidden(2, leaves),
		fault{name: "a worker's host is switched off", host: 1, by: []string{converges, leaves, "HostResetSkipped"}, never: []string{reboots}},
	)
	c.wantQuarantined(c.Pool.Hosts[1].Name)
}

func TestUnits(t *testing.T) {
	c := controlPlane(t, "mb", binary(), often)
	c.suffers(
		fault{
			name: "a unit is spoiled", host: 0,
			script: "echo 'spoiled' >/etc/systemd/system/kube-apiserver.service && systemctl daemon-reload && systemctl kill --signal KILL kube-apiserver",
			by:     []string{drifts}, never: []string{reboots, replaces}, repaired: "systemctl is-active kube-apiserver && ! grep -q spoiled /etc/systemd/system/kube-apiserver.service",
		},
		fault{
			name: "a certificate is deleted", host: 1, script: "rm /etc/kubernetes/pki/apiserver.crt",
			by: []string{drifts}, never: []string{reboots, replaces}, repaired: "test -s /etc/kubernetes/pki/apiserver.crt && systemctl is-active kube-apiserver",
		},
		fault{
			name: "etcd is stopped for good", host: 2,
			script: "systemctl disable --now etcd && ln -sfT /dev/null /etc/systemd/system/etcd.service && systemctl daemon-reload",
			by:     []string{drifts}, never: []string{reboots, replaces}, repaired: "systemctl is-enabled etcd && systemctl is-active etcd",
		},
		fault{name: "the host with the cluster's address is switched off", host: 0, by: []string{replaces, "HostLogCollectionFailed", "HostResetSkipped"}, never: []string{reboots}},
	)
	c.wantQuarantined(c.Pool.Hosts[0].Name)
}

func TestStaticPods(t *testing.T) {
	c := controlPlane(t, "mk", spec.Cluster{
		Kubernetes: spec.Kubernetes{Type: spec.KubernetesKubeadm}, Etcd: spec.Etcd{Type: spec.EtcdKubeadm},
		LoadBalancer: spec.LoadBalancer{Type: spec.LoadBalancerNodeLocal},
	}, often)
	const manifests = "/etc/kubernetes/manifests/"
	c.suffers(
		fault{
			name: "a static Pod's manifest is spoiled", host: 1, script: "echo '{' >" + manifests + "kube-apiserver.yaml",
			by: []string{drifts}, never: []string{reboots, replaces}, repaired: "grep -q kind: " + manifests + "kube-apiserver.yaml",
		},
		fault{
			name: "etcd is stopped for good", host: 2, script: "rm " + manifests + "etcd.yaml",
			by: []string{drifts}, never: []string{reboots, replaces}, repaired: "test -s " + manifests + "etcd.yaml",
		},
	)
}

// wantLogs wants the logs of a host that failed to have been kept.
func (c cluster) wantLogs(host string) {
	c.T.Helper()
	kept, err := filepath.Glob(filepath.Join(c.Logs, fleet.Namespace, host, "*.log.gz"))
	if err != nil || len(kept) != 1 {
		c.T.Errorf("the logs of the host %s are kept in %v: %v", host, kept, err)
	}
}

// wantQuarantined wants a host not to be handed out again, and to say why.
func (c cluster) wantQuarantined(name string) {
	c.T.Helper()
	h := &infrav1.KubexmHost{}
	c.Get(name, h)
	available, clean := conditions.Get(h, infrav1.AvailableCondition), conditions.Get(h, infrav1.CleanCondition)
	if available == nil || available.Reason != infrav1.QuarantinedReason || clean == nil || clean.Message == "" {
		c.T.Errorf("the host %s is %v, and says %v", name, available, clean)
		return
	}
	c.T.Logf("the host %s: %s: %s; %s: %s", name, available.Reason, available.Message, clean.Reason, clean.Message)
}
