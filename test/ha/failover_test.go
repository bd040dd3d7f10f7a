// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/workload"
)

// answersAgain is how long the API may be away when the host with its address fails.
const answersAgain = 10 * time.Second

func TestFailover(t *testing.T) {
	c := start(t, "haf", 6, `  roleGroups: {master: [$1, $2, $3], worker: [$4], loadbalancer: [$5, $6]}
  kubernetes: {version: v1.36.3, type: kubeadm}
  etcd: {type: kubeadm}
  controlPlaneEndpoint: {externalLoadBalancer: kubexm-kh, lb_address: $VIP}
`)
	c.create()
	c.works()
	c.staysAsItIs()

	writes := c.written()
	t.Run("the host with the address is paused", func(t *testing.T) {
		h := c.withAddress(t)
		if err := h.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		away := c.untilAnswered(t)
		t.Logf("the API answered again after %.1f s", away.Seconds())
		if away > answersAgain {
			t.Errorf("the API was away for %s, longer than %s", away, answersAgain)
		}
		if err := h.Unpause(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a control plane host is killed and comes back", func(t *testing.T) {
		h := c.lab.Hosts[0]
		if err := h.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Logf("the API answered again after %.1f s", c.untilAnswered(t).Seconds())
		c.awaitNode(t, h.Name, corev1.ConditionUnknown)
		if err := h.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.awaitNode(t, h.Name, corev1.ConditionTrue)
		c.awaitWhole(t, h.Name)
	})
	c.stopped(writes)
	c.works()
	c.isReset()
}

// withAddress is the host that has the virtual address now.
func (c *cluster) withAddress(t *testing.T) *hosts.Host {
	t.Helper()
	for _, h := range c.lab.Hosts[4:] {
		out, err := h.Exec(t.Context(), "ip", "-brief", "address")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out, c.VIP()+"/32") {
			return h
		}
	}
	t.Fatal("no host has the virtual address")
	return nil
}

// untilAnswered is how long it takes until the API answers three times in a row.
func (c *cluster) untilAnswered(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	client, in := c.api(time.Second), 0
	var answered time.Time
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		if _, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{}); err != nil {
			in = 0
			return false, nil
		}
		if in++; in == 1 {
			answered = time.Now()
		}
		return in == 3, nil
	})
	if err != nil {
		t.Fatalf("the API does not answer: %v", err)
	}
	return answered.Sub(began)
}

func (c *cluster) awaitNode(t *testing.T, name string, ready corev1.ConditionStatus) {
	t.Helper()
	client := c.api(5 * time.Second)
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, nil //nolint:nilerr // it is tried again
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status == ready, nil
			}
		}
		return false, nil
	})
	if err != nil {
		t.Fatalf("the Node %s does not become Ready=%s: %v", name, ready, err)
	}
}

// awaitWhole waits until the control plane's pods on a host are ready, etcd's among them.
func (c *cluster) awaitWhole(t *testing.T, name string) {
	t.Helper()
	client := c.api(5 * time.Second)
	for _, part := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		err := wait.PollUntilContextTimeout(t.Context(), time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
			pod, err := client.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, part+"-"+name, metav1.GetOptions{})
			if err != nil {
				return false, nil //nolint:nilerr // it is tried again
			}
			for _, condition := range pod.Status.Conditions {
				if condition.Type == corev1.PodReady {
					return condition.Status == corev1.ConditionTrue, nil
				}
			}
			return false, nil
		})
		if err != nil {
			t.Errorf("the pod %s-%s does not become ready: %v", part, name, err)
		}
	}
}

// stopped ends writes, and wants everything that was acknowledged to be there.
func (c *cluster) stopped(w *workload.Writes) {
	c.t.Helper()
	o, err := w.Stop(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Log(o)
	if o.Acknowledged == 0 || len(o.Lost) > 0 {
		c.t.Errorf("writes that were acknowledged and are lost: %v, of %d", o.Lost, o.Acknowledged)
	}
}

// written begins writes.
func (c *cluster) written() *workload.Writes {
	c.t.Helper()
	w, err := workload.Write(c.t.Context(), c.api(2*time.Second))
	if err != nil {
		c.t.Fatal(err)
	}
	return w
}
