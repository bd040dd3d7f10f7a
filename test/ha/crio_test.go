// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeproxy"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestCRIO makes clusters whose pods CRI-O runs: images are from the bundle, or from a mirror that wants a password; containers go on
// while CRI-O is restarted; and the hosts are what they were after the reset.
func TestCRIO(t *testing.T) {
	for _, by := range []string{"kubexm", "kubeadm"} {
		t.Run(by, func(t *testing.T) {
			c := start(t, "haro", 2, "")
			c.Bundle = lab.Bundle(t, "KUBEXM_BUNDLE_CRIO", "bundle-cri-o")
			mirror := c.privateRegistry()
			c.write(fmt.Sprintf(`  roleGroups: {master: [$1], worker: [$2]}
  kubernetes: {version: v1.36.3, type: %s}
  containerRuntime:
    type: cri-o
    registries:
      mirrors: [{registry: images.example, endpoints: ["http://%s"]}]
`, by, mirror.address))
			c.create()
			c.works()
			c.runsCRIO()
			c.pullsFrom(mirror)
			c.containersGoOn()
			c.staysAsItIs()
			c.isReset()
		})
	}
}

// runsCRIO wants each Node to have its pods from CRI-O, and all images that it has to be the bundle's.
func (c *cluster) runsCRIO() {
	c.t.Helper()
	nodes, err := c.api(10*time.Second).CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, n := range nodes.Items {
		if got := n.Status.NodeInfo.ContainerRuntimeVersion; got != "cri-o://1.34.0" {
			c.t.Errorf("the runtime of %s is %s", n.Name, got)
		}
	}
	known := append(c.bundleImages(), kubeproxy.Image) // which is another name of one of them
	for _, h := range c.lab.Hosts {
		out := c.on(h, "crictl", "images", "--no-trunc")
		for line := range strings.Lines(out) {
			words := strings.Fields(line)
			if len(words) < 2 || words[0] == "IMAGE" {
				continue
			}
			if ref := words[0] + ":" + words[1]; !slices.Contains(known, ref) {
				c.t.Errorf("%s has the image %s, which the bundle has not", h.Name, ref)
			}
		}
		if !strings.Contains(out, "registry.k8s.io/pause") || !strings.Contains(out, "flannel") {
			c.t.Errorf("%s lacks images:\n%s", h.Name, out)
		}
	}
}

// pullsFrom wants a pod to get its image from the mirror, with the password that the host has for the mirror and not with another.
func (c *cluster) pullsFrom(r *registry) {
	c.t.Helper()
	api := c.api(10 * time.Second)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pulls"}}
	if _, err := api.CoreV1().Namespaces().Create(c.t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	host := c.lab.Hosts[1]
	for _, one := range []struct{ name, password, want string }{
		{"wrong", "wrong", "ImagePullBackOff ErrImagePull"},
		{"right", r.password, "Running"},
	} {
		word := base64.StdEncoding.EncodeToString([]byte(r.user + ":" + one.password))
		c.on(host, "sh", "-euc", `umask 077; printf '{"auths": {"%s": {"auth": "%s"}}}' "$1" "$2" >/etc/crio/auth.json`, "sh", r.address, word)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: one.name},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "pause", Image: "images.example/" + r.image, ImagePullPolicy: corev1.PullAlways}},
				NodeName:   host.Name, TerminationGracePeriodSeconds: new(int64),
				AutomountServiceAccountToken: new(bool),
			},
		}
		if _, err := api.CoreV1().Pods(namespace.Name).Create(c.t.Context(), pod, metav1.CreateOptions{}); err != nil {
			c.t.Fatal(err)
		}
		var seen string
		err := wait.PollUntilContextTimeout(c.t.Context(), time.Second, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			p, err := api.CoreV1().Pods(namespace.Name).Get(ctx, one.name, metav1.GetOptions{})
			if err != nil {
				seen = err.Error()
				return false, nil
			}
			seen = string(p.Status.Phase)
			for _, s := range p.Status.ContainerStatuses {
				if s.State.Waiting != nil {
					seen = s.State.Waiting.Reason + " " + s.State.Waiting.Message
				}
			}
			return slices.Contains(strings.Fields(one.want), strings.Split(seen, " ")[0]), nil
		})
		if err != nil {
			c.t.Fatalf("the pod with the %s password: %v: %s", one.name, err, seen)
		}
		c.t.Logf("the pod with the %s password: %s", one.name, seen)
	}
	if r.served() == 0 {
		c.t.Error("the mirror was not asked for the image")
	}
	c.on(host, "rm", "/etc/crio/auth.json")
	if err := api.CoreV1().Namespaces().Delete(c.t.Context(), namespace.Name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// containersGoOn wants the containers of a host to be the same after CRI-O was restarted as before, and CRI-O to know them.
func (c *cluster) containersGoOn() {
	c.t.Helper()
	for _, h := range c.lab.Hosts {
		before := c.flannelOn(h)
		c.on(h, "systemctl", "restart", "crio.service")
		if after := c.flannelOn(h); before == "" || after != before {
			c.t.Errorf("on %s flannel ran as %q, and after a restart of CRI-O as %q", h.Name, before, after)
		}
	}
	c.works()
}

// flannelOn is the container and the process of flannel's on a host.
func (c *cluster) flannelOn(h *hosts.Host) string {
	c.t.Helper()
	id := c.on(h, "crictl", "ps", "--quiet", "--name", "^kube-flannel$")
	if id == "" || strings.Contains(id, "\n") {
		c.t.Fatalf("%s has not one container of flannel's but %q", h.Name, id)
	}
	return id + " " + c.on(h, "crictl", "inspect", "--output", "go-template", "--template", "{{.info.pid}}", id)
}

// on runs a command on a host.
func (c *cluster) on(h *hosts.Host, argv ...string) string {
	c.t.Helper()
	out, err := h.Exec(c.t.Context(), argv...)
	if err != nil {
		c.t.Fatalf("%s on %s: %v: %s", strings.Join(argv, " "), h.Name, err, out)
	}
	return strings.TrimSpace(out)
}
