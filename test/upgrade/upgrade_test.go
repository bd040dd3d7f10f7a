// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package upgrade

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/etcd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/kube"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// TestInPlace brings both hosts of a cluster to the next minor version of Kubernetes, each way.
func TestInPlace(t *testing.T) {
	older := openBundle(t, "KUBEXM_BUNDLE_PREVIOUS", "bundle-v1.35.4", "artifacts-previous")
	newer := openBundle(t, "KUBEXM_BUNDLE", "bundle", "artifacts")
	from, to := older.Version(artifact.Kubernetes), newer.Version(artifact.Kubernetes)
	for _, way := range []struct {
		name string
		kind spec.KubernetesType
		etcd spec.EtcdType
		// undone is a step in the middle of the upgrade at which a control plane that cannot run is found out, and cut one
		// at which a run is stopped.
		undone, cut string
	}{
		{"kubexm", spec.KubernetesKubexm, spec.EtcdKubexm, "kubernetes/apiserver", "kubernetes/programs"},
		{"kubeadm", spec.KubernetesKubeadm, spec.EtcdKubeadm, "kubeadm/apiserver-ready", "kubelet/programs"},
	} {
		t.Run(way.name, func(t *testing.T) {
			shared := spec.Cluster{}
			shared.Kubernetes.Type, shared.Etcd.Type = way.kind, way.etcd
			c := start(t, fmt.Sprintf("upgrade-%s-%d", way.name, os.Getpid()), 2, shared)
			c.create(older)
			c.carries(older)
			load := c.use()

			if way.etcd == spec.EtcdKubexm {
				// etcd was restarted by then, and the API server with it, as the newer version.
				c.fails = "kubernetes/kubelet" // the others may have ended with their lease, and been started again
				c.undone(c.controlPlanePlan(newer), newer, "the replacement of its programs", c.fails)
				c.fails = ""
				c.versions(from, from)
				c.runsEtcd(newer) // its data has no way back
			}
			// A flag that no API server has.
			broken := func(target *spec.Target) {
				target.Cluster.Kubernetes.APIServer.ExtraArgs = []spec.Arg{{Name: "no-such-flag", Value: "x"}}
			}
			c.undone(c.controlPlanePlan(newer, broken), newer, "the replacement of its programs", way.undone)
			c.versions(from, from)
			if way.etcd == spec.EtcdKubexm {
				c.differs(c.controlPlanePlan(older), older, "etcd/")
			} else {
				c.converged(c.controlPlanePlan(older), older)
			}

			began := time.Now()
			c.stopped(c.controlPlanePlan(newer), newer, way.cut)
			c.converge(c.controlPlanePlan(newer), newer)
			t.Logf("the control plane has %s after %s, with a stop on the way", to, time.Since(began).Round(time.Second))
			c.versions(to, from)
			c.saved()
			c.converged(c.controlPlanePlan(newer), newer)

			before, proxy := load.pods(c), c.proxyImage(c.worker())
			began = time.Now()
			c.converge(c.workerPlan(newer), newer)
			t.Logf("the worker has %s after %s", to, time.Since(began).Round(time.Second))
			c.versions(to, to)
			c.converged(c.workerPlan(newer), newer)
			c.carries(newer)
			load.left(c, c.worker(), before)
			if way.kind == spec.KubernetesKubeadm {
				if proxy == c.proxyImage(c.worker()) {
					t.Error("kube-proxy on the worker is what it was before")
				}
				c.followsSettings(newer)
			}

			load.end(c)
			c.reset()
		})
	}
}

// carries wants the cluster to run what else is in a bundle: containerd, etcd and CoreDNS of its versions.
func (c *cluster) carries(b *artifact.Bundle) {
	c.t.Helper()
	number := func(component string) string { return strings.TrimPrefix(b.Version(component), "v") }
	for _, h := range c.pool.Hosts[:2] {
		node, err := c.client.CoreV1().Nodes().Get(c.t.Context(), h.Name, metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		if is, want := node.Status.NodeInfo.ContainerRuntimeVersion,
			number("containerd"); !strings.HasSuffix(strings.Replace(is, "//v", "//", 1), "//"+want) {
			c.t.Errorf("%s runs %s, want containerd %s", h.Name, is, want)
		}
	}
	c.runsEtcd(b)
	await(c.t, 2*time.Minute, func() error { return c.api.WorkloadReady(c.t.Context(), "Deployment", "kube-system", "coredns") })
	dns, err := c.client.AppsV1().Deployments("kube-system").Get(c.t.Context(), "coredns", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	if is, want := dns.Spec.Template.Spec.Containers[0].Image, ":"+b.Version("coredns"); !strings.HasSuffix(is, want) {
		c.t.Errorf("CoreDNS is %s, want %s", is, want)
	}
}

// runsEtcd wants the control plane host's etcd to be of the bundle's version.
func (c *cluster) runsEtcd(b *artifact.Bundle) {
	c.t.Helper()
	h := c.controlPlane()
	out, err := h.Exec(c.t.Context(), "sh", "-ec", `curl -sf --cacert "$1/ca.pem" --cert "$1/admin-$2.pem" --key "$1/admin-$2-key.pem" "https://$3:2379/version"`,
		"sh", "/etc/kubexm/etcd/ssl", h.Name, h.Address)
	if want := fmt.Sprintf("\"etcdserver\":%q", strings.TrimPrefix(b.Version("etcd"), "v")); err != nil || !strings.Contains(out, want) {
		c.t.Errorf("etcd on %s says %s, want %s: %v", h.Name, out, want, err)
	}
}

// differs wants a host to be as planned but for some steps, and for one of those at least.
func (c *cluster) differs(p *plan.Plan, b *artifact.Bundle, steps string) {
	c.t.Helper()
	r, err := c.engine(b).Check(c.t.Context(), p)
	if err != nil {
		c.t.Fatal(err)
	}
	some := false
	for _, found := range r.Checks {
		if len(found.Diff) == 0 {
			continue
		}
		if n := found.Node[strings.LastIndex(found.Node, "/etcd/")+1:]; strings.HasPrefix(n, steps) {
			some = true
		} else {
			c.t.Errorf("%s differs: %v", found.Node, found.Diff)
		}
	}
	if !some {
		c.t.Errorf("nothing of %s differs", steps)
	}
}

// create makes the cluster.
func (c *cluster) create(b *artifact.Bundle) {
	c.t.Helper()
	p, err := pipeline.CreateCluster(clusterName, []pipeline.Node{
		c.node(c.controlPlane(), spec.RoleControlPlane, b), c.node(c.worker(), spec.RoleWorker, b),
	}, b)
	if err != nil {
		c.t.Fatal(err)
	}
	c.converge(p, b)
	c.converged(c.controlPlanePlan(b), b)
	c.converged(c.workerPlan(b), b)
}

// undone wants the plan to fail at a step, and the host to be rolled back.
func (c *cluster) undone(p *plan.Plan, b *artifact.Bundle, to string, at ...string) {
	c.t.Helper()
	_, err := c.engine(b).Run(c.t.Context(), p)
	var failed *engine.Error
	if !errors.As(err, &failed) || len(failed.Failures) != 1 {
		c.t.Fatalf("want one failure, of %s, got %v", at, err)
	}
	f := failed.Failures[0]
	if !slices.Contains(at, f.Step) || !strings.Contains(f.Left, "was rolled back to what it was before "+to) {
		c.t.Fatalf("want a failure of %s, and the host rolled back: %v", at, err)
	}
	c.t.Logf("as a person reads it:\n%v", err)
	await(c.t, 2*time.Minute, func() error { return c.api.Healthy(c.t.Context()) })
}

// saved wants a snapshot of etcd on the control plane's host, from which another etcd could begin.
func (c *cluster) saved() {
	c.t.Helper()
	h := c.controlPlane()
	out, err := h.Exec(c.t.Context(), "sh", "-ec", `cd "$1"; stat -c '%a %U' .; ls; [ "$(ls | grep -c '\.db$')" = "$(ls -A | wc -l)" ]
		last=$(ls | tail -n 1); [ "$(head -c -32 "$last" | sha256sum | cut -c 1-64)" = "$(tail -c 32 "$last" | od -An -v -tx1 | tr -d ' \n')" ]
		grep -qa /registry/minions/ "$last" # as Nodes were called once
		! command -v etcdutl >/dev/null || etcdutl snapshot status "$last"`, "sh", etcd.SnapshotDir)
	if err != nil || !strings.HasPrefix(out, "700 root\n") {
		c.t.Errorf("the snapshot of etcd on %s: %v\n%s", h.Name, err, out)
	}
	c.t.Logf("%s on %s:\n%s", etcd.SnapshotDir, h.Name, out)
}

// versions wants the hosts' Nodes to be Ready with these versions, in use, and held no more; and the API server of the first.
func (c *cluster) versions(versions ...string) {
	c.t.Helper()
	for i, want := range versions {
		name := c.pool.Hosts[i].Name
		await(c.t, 2*time.Minute, func() error { return c.api.NodeVersion(c.t.Context(), name, want) })
		node, err := c.client.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		if _, held := node.Annotations[kube.MaintenanceAnnotation]; held || node.Spec.Unschedulable {
			c.t.Errorf("Node %s is held for maintenance (%t) or cordoned (%t)", node.Name, held, node.Spec.Unschedulable)
		}
	}
	is, err := c.client.Discovery().ServerVersion()
	if err != nil {
		c.t.Fatal(err)
	}
	if is.GitVersion != versions[0] {
		c.t.Errorf("the API server is %s, want %s", is.GitVersion, versions[0])
	}
}

// left wants none of the Pods that were on the host before to be there: it was drained.
func (l *load) left(c *cluster, h *hosts.Host, before map[string]string) {
	c.t.Helper()
	now, were := l.pods(c), 0
	for pod, node := range before {
		if node != h.Name {
			continue
		}
		were++
		if now[pod] == node {
			c.t.Errorf("Pod %s was on %s all the time, which was not drained", pod, h.Name)
		}
	}
	if were == 0 {
		c.t.Errorf("no Pod was on %s before", h.Name)
	}
}

// proxyImage is what the host's kube-proxy runs, where it is a Pod.
func (c *cluster) proxyImage(h *hosts.Host) string {
	c.t.Helper()
	list, err := c.client.CoreV1().Pods("kube-system").List(c.t.Context(), metav1.ListOptions{
		LabelSelector: "k8s-app=kube-proxy", FieldSelector: "spec.nodeName=" + h.Name,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, p := range list.Items {
		for _, s := range p.Status.ContainerStatuses {
			return s.ImageID
		}
	}
	return ""
}

// followsSettings changes what kubeadm has made once: flags of static pods, etcd's among them, the names in the API server's certificate,
// and the kubelet's configuration. What does not work is rolled back.
func (c *cluster) followsSettings(b *artifact.Bundle) {
	c.t.Helper()
	const name = "api.other.example"
	unknown := []spec.Arg{{Name: "no-such-flag", Value: "x"}}
	c.undone(c.controlPlanePlan(b, func(target *spec.Target) {
		target.Cluster.Kubernetes.APIServer.CertSANs = []string{name}
		target.Cluster.Kubernetes.Scheduler.ExtraArgs = unknown
	}), b, "the change of its control plane", "kubeadm/scheduler-ready")
	if c.serves(name) {
		c.t.Errorf("the API server's certificate has %s still", name)
	}
	c.undone(c.controlPlanePlan(b, func(target *spec.Target) { target.Cluster.Kubernetes.Kubelet.ExtraArgs = unknown }), b,
		"the change of its kubelet", "kubelet/service", "kubelet/healthy")
	c.converged(c.controlPlanePlan(b), b)
	change := func(target *spec.Target) {
		target.Cluster.Kubernetes.APIServer.CertSANs = []string{name}
		target.Cluster.Kubernetes.APIServer.ExtraArgs = []spec.Arg{{Name: "event-ttl", Value: "2h0m0s"}}
		target.Cluster.Kubernetes.Kubelet.MaxPods = 99
		target.Cluster.Etcd.MaxWALs = 6
	}
	c.converge(c.controlPlanePlan(b, change), b)
	c.converged(c.controlPlanePlan(b, change), b)
	for component, flag := range map[string]string{"kube-apiserver": "--event-ttl=2h0m0s", "etcd": "--max-wals=6"} {
		pod, err := c.client.CoreV1().Pods("kube-system").Get(c.t.Context(), component+"-"+c.controlPlane().Name, metav1.GetOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		if command := pod.Spec.Containers[0].Command; !slices.Contains(command, flag) {
			c.t.Errorf("%s does not follow: %q", component, command)
		}
	}
	if !c.serves(name) {
		c.t.Errorf("the API server's certificate does not have %s", name)
	}
	await(c.t, time.Minute, func() error {
		node, err := c.client.CoreV1().Nodes().Get(c.t.Context(), c.controlPlane().Name, metav1.GetOptions{})
		if err == nil && node.Status.Capacity.Pods().Value() != 99 {
			err = fmt.Errorf("the Node takes %s pods, not 99", node.Status.Capacity.Pods())
		}
		return err
	})
}

// serves reports whether the certificate that the API server serves has that name.
func (c *cluster) serves(name string) bool {
	c.t.Helper()
	h := c.controlPlane()
	out, err := h.Exec(c.t.Context(), "sh", "-ec",
		`openssl s_client -connect "$1:6443" </dev/null 2>/dev/null | openssl x509 -noout -ext subjectAltName`, "sh", h.Address)
	if err != nil {
		c.t.Fatalf("the API server's certificate: %v\n%s", err, out)
	}
	return strings.Contains(out, "DNS:"+name)
}
