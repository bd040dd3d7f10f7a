// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/smoke/proof"
)

// TestDualStack makes clusters whose pods and services have addresses of both families, on hosts that have.
func TestDualStack(t *testing.T) {
	for _, kind := range []struct {
		name  string
		hosts int
		first corev1.IPFamily
		spec  string
	}{
		// The worker's second address is found on it. That of the control plane's host is the one at which it is reached over SSH.
		{"kubeadm, IPv4 first", 2, corev1.IPv4Protocol, `  roleGroups: {master: [$2], worker: [$1]}
  kubernetes: {version: v1.36.3, type: kubeadm}
  network:
    kubePodsCIDR: 10.233.64.0/18,fd85:ee78:d8a6:8607::1:0000/112
    kubeServiceCIDR: 10.233.0.0/18,fd85:ee78:d8a6:8607::1000/116
`},
		// Nodes' first addresses are declared. What comes by IPv4, the virtual address, goes on by IPv6.
		{"binary, IPv6 first, keepalived and haproxy", 4, corev1.IPv6Protocol, `  roleGroups: {master: [$1], worker: [$2], loadbalancer: [$3, $4]}
  kubernetes: {version: v1.36.3, type: kubexm}
  etcd: {type: kubexm}
  controlPlaneEndpoint: {externalLoadBalancer: kubexm-kh, lb_address: $VIP}
  network:
    podCIDRs: ["fd85:ee78:d8a6::/48", 10.233.64.0/18]
    serviceCIDRs: ["fd85:ee78:d8a7::/108", 10.233.0.0/18]
`},
	} {
		t.Run(kind.name, func(t *testing.T) {
			c := start(t, "had", kind.hosts, kind.spec, func(o *hosts.Options) { o.DualStack = true })
			if c.IPv6First = kind.first == corev1.IPv6Protocol; !c.IPv6First {
				c.Internal = func(h *hosts.Host) string { return c.lab.Named(h.Name)[0].Address }
				by6 := *c.Hosts[1]
				by6.Address = by6.Address6
				c.Hosts = []*hosts.Host{c.Hosts[0], &by6}
			}
			c.write(kind.spec)
			c.create()
			c.works()
			c.proves(func(p *proof.Cluster, ctx context.Context) error { return p.ProveDualStack(ctx, kind.first) })
			c.staysAsItIs()
			c.isReset()
		})
	}
}
