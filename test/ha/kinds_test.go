// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import "testing"

// TestKinds takes each kind of cluster through a life without accidents.
func TestKinds(t *testing.T) {
	for _, kind := range []struct {
		name  string
		hosts int
		spec  string
	}{
		{"binary, stacked etcd, keepalived and nginx", 6, `  roleGroups: {master: [$1, $2, $3], worker: [$4], loadbalancer: [$5, $6]}
  kubernetes: {version: v1.36.3, type: kubexm}
  etcd: {type: kubexm}
  controlPlaneEndpoint: {externalLoadBalancer: kubexm-kn, lb_address: $VIP}
`},
		{"binary, dedicated etcd, haproxy on workers, nftables", 5, `  roleGroups: {master: [$1], worker: [$2], etcd: [$3, $4, $5]}
  kubernetes: {version: v1.36.3, type: kubexm, proxyMode: nftables}
  etcd: {type: kubexm}
  controlPlaneEndpoint: {internalLoadbalancer: haproxy}
`},
		{"kubeadm, stacked etcd, haproxy on workers, nftables", 4, `  roleGroups: {master: [$1, $2, $3], worker: [$4]}
  kubernetes: {version: v1.36.3, type: kubeadm, proxyMode: nftables}
  etcd: {type: kubexm, heartbeatInterval: 250, electionTimeout: 5000, maxWals: 3}
  controlPlaneEndpoint: {internalLoadbalancer: haproxy}
`},
		{"kubeadm, external etcd, nginx on workers", 2, `  roleGroups: {master: [$1], worker: [$2]}
  kubernetes: {version: v1.36.3, type: kubeadm}
  etcd:
    type: external
    external: {endpoints: [$ETCD], caFile: "$DIR/ca.crt", certFile: "$DIR/client.crt", keyFile: "$DIR/client.key"}
  controlPlaneEndpoint: {internalLoadbalancer: nginx}
`},
		{"kubeadm, etcd of the type that is the default, a load balancer of others", 5, `  roleGroups: {master: [$1, $2, $3], worker: [$4]}
  kubernetes: {version: v1.36.3, type: kubeadm}
  controlPlaneEndpoint: {externalLoadBalancer: external, lb_address: $LB}
`},
	} {
		t.Run(kind.name, func(t *testing.T) {
			c := start(t, "hak", kind.hosts, kind.spec)
			for _, part := range []struct {
				name string
				do   func(*cluster)
			}{
				{"made", func(c *cluster) { c.create(); c.works() }},
				{"renewed", (*cluster).renews},
				{"renewed by itself", func(c *cluster) { c.renewsByItself(); c.works() }},
				{"as it is", (*cluster).staysAsItIs},
				{"reset", (*cluster).isReset},
			} {
				if !t.Run(part.name, func(t *testing.T) { part.do(c.in(t)) }) {
					t.FailNow() // what comes next would not tell anything
				}
			}
		})
	}
}
