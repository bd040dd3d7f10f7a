// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// ProveDualStack returns when every Node has an internal address of each family, a pod has too, and its Service, which
// requires both, was reached at both of its addresses by a pod on another Node; and so was the pod itself. first is the
// cluster's primary family.
func (c *Cluster) ProveDualStack(ctx context.Context, first corev1.IPFamily) error {
	nodes, err := c.readyNodes(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		var internal []string
		for _, a := range n.Status.Addresses {
			if a.Type == corev1.NodeInternalIP {
				internal = append(internal, a.Address)
			}
		}
		if err := c.wantBoth("the addresses of node "+n.Name, internal, first); err != nil {
			return err
		}
		if err := c.wantBoth("the pod networks of node "+n.Name, n.Spec.PodCIDRs, first); err != nil {
			return err
		}
	}
	image, err := c.LoadImage(ctx, nodes)
	if err != nil {
		return err
	}
	from, to := nodes[0].Name, nodes[len(nodes)-1].Name
	defer c.clean()
	service, err := c.serve(ctx, from, to, image, corev1.IPFamilyPolicyRequireDualStack)
	if err != nil {
		return err
	}
	if err := c.wantBoth("the addresses of the Service", service.Spec.ClusterIPs, first); err != nil {
		return err
	}
	own, err := c.podAddresses(ctx, "server")
	if err != nil {
		return err
	}
	if err := c.wantBoth("the addresses of the pod on "+to, own, first); err != nil {
		return err
	}
	for _, address := range service.Spec.ClusterIPs {
		if err := c.answered(ctx, address, from, to); err != nil {
			return err
		}
	}
	dns, err := c.Client.CoreV1().Services("kube-system").Get(ctx, "kube-dns", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return c.wantBoth("the addresses of the Service kube-dns", dns.Spec.ClusterIPs, first)
}

// podAddresses waits for the addresses of a pod.
func (c *Cluster) podAddresses(ctx context.Context, name string) ([]string, error) {
	var addresses []string
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		p, err := c.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		addresses = nil
		for _, ip := range p.Status.PodIPs {
			addresses = append(addresses, ip.IP)
		}
		return len(addresses) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("pod %s has no address: %w", name, err)
	}
	return addresses, nil
}

// wantBoth wants two addresses or networks, the first of the primary family, the second of the other.
func (c *Cluster) wantBoth(of string, found []string, first corev1.IPFamily) error {
	if len(found) != 2 || familyOf(found[0]) != first || familyOf(found[1]) == first || familyOf(found[1]) == "" {
		return fmt.Errorf("%s are %v: want one of %s and then one of the other family", of, found, first)
	}
	c.say("%s are %s and %s\n", of, found[0], found[1])
	return nil
}

// familyOf is the family of an address or network, "" where the text is neither.
func familyOf(text string) corev1.IPFamily {
	address, err := netip.ParseAddr(text)
	if prefix, notCIDR := netip.ParsePrefix(text); notCIDR == nil {
		address, err = prefix.Addr(), nil
	}
	switch {
	case err != nil:
		return ""
	case address.Is4():
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}
