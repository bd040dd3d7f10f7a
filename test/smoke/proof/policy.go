// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
)

// ProvePolicies returns when NetworkPolicies are kept to between pods of different Nodes, and of one: one that denies all does, one that
// allows a pod allows this one alone, and a rule for what may leave a pod keeps the rest in it.
func (c *Cluster) ProvePolicies(ctx context.Context) error {
	nodes, err := c.readyNodes(ctx)
	if err != nil {
		return err
	}
	image, err := c.LoadImage(ctx, nodes)
	if err != nil {
		return err
	}
	defer c.clean()
	from, to := nodes[len(nodes)-2].Name, nodes[len(nodes)-1].Name
	if _, err := c.serve(ctx, from, to, image, corev1.IPFamilyPolicySingleStack); err != nil {
		return err
	}
	clients := []string{"client", "stranger", "neighbour"}
	for name, node := range map[string]string{"stranger": from, "neighbour": to} {
		if _, err := c.Client.CoreV1().Pods(namespace).Create(ctx, pod(name, node, image), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	isServer := metav1.LabelSelector{MatchLabels: map[string]string{"app": "server"}}
	isClient := metav1.LabelSelector{MatchLabels: map[string]string{"app": "client"}}
	for _, act := range []struct {
		what    string
		policy  networkingv1.NetworkPolicySpec
		answers map[string]bool
	}{
		{"no policy", networkingv1.NetworkPolicySpec{}, map[string]bool{"client": true, "stranger": true, "neighbour": true}},
		{"deny", networkingv1.NetworkPolicySpec{
			PodSelector: isServer, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		}, nil},
		{"allow", networkingv1.NetworkPolicySpec{
			PodSelector: isServer, Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &isClient}},
				Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(port))}},
			}},
		}, map[string]bool{"client": true}},
		// Answers to the API server, by whose proxy clients are asked, come in with what asked for them.
		{"keep", networkingv1.NetworkPolicySpec{
			PodSelector: isClient, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		}, nil},
	} {
		if len(act.policy.PodSelector.MatchLabels) > 0 {
			object := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: act.what}, Spec: act.policy}
			if _, err := c.Client.NetworkingV1().NetworkPolicies(namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		if err := c.answeredTo(ctx, clients, act.answers); err != nil {
			return fmt.Errorf("with the policies up to %q: %w", act.what, err)
		}
		c.say("policies up to %q: the server answers %v of %v\n", act.what, act.answers, clients)
	}
	return nil
}

// answeredTo waits until the server's address answers those clients, and no others, three times in a row.
func (c *Cluster) answeredTo(ctx context.Context, clients []string, want map[string]bool) error {
	server, err := c.addressOf(ctx, "server")
	if err != nil {
		return err
	}
	var last error
	inARow := 0
	err = wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		for _, name := range clients {
			answer, err := c.dialFrom(ctx, name, server, fmt.Sprint(port), "hostname")
			// A client that cannot be asked is no proof.
			if unanswered := errors.Is(err, errUnanswered); unanswered == want[name] ||
				err == nil && answer != "server" || err != nil && !unanswered {
				last, inARow = fmt.Errorf("pod %s: answer %q, %w", name, answer, err), 0
				return false, nil
			}
		}
		inARow++
		return inARow == 3, nil
	})
	if err != nil {
		return fmt.Errorf("%w (last: %w)", err, last)
	}
	return nil
}

// addressOf waits for a pod's address.
func (c *Cluster) addressOf(ctx context.Context, name string) (string, error) {
	found, err := c.podAddresses(ctx, name)
	if err != nil {
		return "", err
	}
	return found[0], nil
}
