// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Settings are what Pods find where a cluster is not set as by default.
type Settings struct {
	// Port is what API servers listen on.
	Port int32
	// NameServer is the first that Pods ask that want their Node's.
	NameServer string
	// Names are what the cluster's DNS server calls the Service of the proof beside its own name, and APINames the Service kubernetes.
	Names, APINames []string
}

// ProveSettings returns when a Pod has reached a Pod on another Node, and an API server, by the names that their Services have in the
// cluster's domain and beside it, and what Pods have for a resolv.conf leads to name servers that they can reach.
func (c *Cluster) ProveSettings(ctx context.Context, s Settings) error {
	nodes, err := c.readyNodes(ctx)
	if err != nil {
		return err
	}
	image, err := c.LoadImage(ctx, nodes)
	if err != nil {
		return err
	}
	from, to := nodes[0].Name, nodes[len(nodes)-1].Name
	defer c.clean()
	if _, err := c.serve(ctx, from, to, image, corev1.IPFamilyPolicySingleStack); err != nil {
		return err
	}
	for _, name := range append([]string{c.name("hello", namespace), "hello"}, s.Names...) {
		if err := c.answered(ctx, name, from, to); err != nil {
			return err
		}
	}
	if err := c.reachesAPI(ctx, s); err != nil {
		return err
	}
	return c.resolves(ctx, from, image, s.NameServer)
}

// reachesAPI wants the Service kubernetes to lead to the port of API servers, and a Pod to reach one by each of its names.
func (c *Cluster) reachesAPI(ctx context.Context, s Settings) error {
	list, err := c.Client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{
		LabelSelector: "kubernetes.io/service-name=kubernetes",
	})
	if err != nil {
		return err
	}
	for _, slice := range list.Items {
		for _, p := range slice.Ports {
			if p.Port == nil || *p.Port != s.Port {
				return fmt.Errorf("the Service kubernetes leads to %v: want the port %d", slice.Ports, s.Port)
			}
		}
	}
	for _, name := range append([]string{c.name("kubernetes", metav1.NamespaceDefault)}, s.APINames...) {
		// It speaks TLS, and says so to who does not.
		answer, err := c.dial(ctx, name, "443", "version")
		if err != nil || !strings.Contains(answer, "HTTPS server") {
			return fmt.Errorf("an API server at %s: answer %q: %w", name, answer, err)
		}
		c.say("an API server on port %d was reached by a pod as %s\n", s.Port, name)
	}
	return nil
}

// resolves wants Pods' resolv.conf to have the cluster's DNS server and domain, or, for those that want their Node's, its name servers.
func (c *Cluster) resolves(ctx context.Context, node, image, own string) error {
	dns, err := c.Client.CoreV1().Services(metav1.NamespaceSystem).Get(ctx, "kube-dns", metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, one := range []struct {
		name    string
		policy  corev1.DNSPolicy
		command string
		want    string
	}{
		{"search", corev1.DNSClusterFirst, "dns-suffix", strings.TrimPrefix(c.name("", namespace), ".")},
		{"servers", corev1.DNSClusterFirst, "dns-server-list", dns.Spec.ClusterIP},
		{"own", corev1.DNSDefault, "dns-server-list", own},
	} {
		printed, err := c.prints(ctx, one.name, node, image, one.policy, one.command)
		if err != nil {
			return err
		}
		if first, _, _ := strings.Cut(printed, ","); first != one.want {
			return fmt.Errorf("%s in a pod with the DNS policy %s: %q, want %q first", one.command, one.policy, printed, one.want)
		}
		c.say("%s in a pod with the DNS policy %s: %s\n", one.command, one.policy, printed)
	}
	return nil
}

// prints is what a command of the test image prints in a Pod of its own.
func (c *Cluster) prints(ctx context.Context, name, node, image string, policy corev1.DNSPolicy, command string) (string, error) {
	p := pod(name, node, image)
	p.Spec.DNSPolicy, p.Spec.RestartPolicy, p.Spec.Containers[0].Args = policy, corev1.RestartPolicyNever, []string{command}
	if _, err := c.Client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	phase := corev1.PodPending
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		now, err := c.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		phase = now.Status.Phase
		return phase == corev1.PodSucceeded || phase == corev1.PodFailed, nil
	})
	if err != nil {
		return "", fmt.Errorf("the pod %s does not end: %w", name, err)
	}
	out, err := c.Client.CoreV1().Pods(namespace).GetLogs(name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil || phase != corev1.PodSucceeded {
		return "", fmt.Errorf("%s in a pod: %s: %q: %w", command, phase, out, err)
	}
	return strings.TrimSpace(string(out)), nil
}
