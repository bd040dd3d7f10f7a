// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/kubexm"
)

// sixHostsSpec is a highly available cluster on six hosts, in the version of the bundle.
const sixHostsSpec = `  roleGroups: {master: [$1, $2, $3], worker: [$4], loadbalancer: [$5, $6]}
  kubernetes: {version: %s, type: kubeadm}
  etcd: {type: kubeadm}
  controlPlaneEndpoint: {externalLoadBalancer: kubexm-kh, lb_address: $VIP}
`

// sixHosts measures the way from bare hosts to a highly available cluster, by the program as a user runs it.
func sixHosts() experiment {
	return experiment{
		measurements: []measurement{
			{
				name: "ha/six-hosts", unit: "s",
				about: "kubexm create cluster, from 6 hosts that answer SSH: 3 become a kubeadm control plane with kubeadm's etcd, 2 get keepalived " +
					"and haproxy, which they download from their distribution, and 1 a worker; with the start and the end of the program's own " +
					"management plane and the last drift check of all hosts. Until the API answers at the virtual address, all API servers are ready, all " +
					"members of etcd vote, all Nodes are Ready and have a network, and CoreDNS runs, as asked by the same code on both sides; " +
					"reference: test/bench/six.sh with the same artifacts, which verifies no digests and records nothing for undo",
			},
			{
				name: "ha/six-hosts-doing", unit: "%",
				about: "the share of that time in which something was done or observed on at least one host, or in the cluster",
			},
			{
				name: "ha/six-hosts-waiting", unit: "%",
				about: "the share in which nothing was done but to wait for the cluster: kubeadm init and join, which wait for the kubelet, etcd and " +
					"the API server but for a second or two, and our gates for the API server and Nodes. In the rest no step was running",
			},
		},
		// Each side has hosts of its own, which are idle while the other is measured, or off.
		hosts: func(rounds int) int { return 12 * rounds },
		round: func(ctx context.Context, l *lab, hosts []string, round int, take note) error {
			mine, theirs := hosts[12*round:12*round+6], hosts[12*round+6:12*round+12]
			return inTurn(round,
				func() error { return l.createSix(ctx, mine, take) },
				func() error { return l.createSixByScript(ctx, theirs, take) },
			)
		},
	}
}

// createSix makes the cluster of six hosts.
func (l *lab) createSix(ctx context.Context, names []string, take note) error {
	defer l.switchOff(ctx, names...)
	bundle, err := artifact.Open(ctx, l.options.bundle, nil)
	if err != nil {
		return fmt.Errorf("%w; make artifacts makes it", err)
	}
	c := kubexm.Cluster{Name: "bench", Dir: filepath.Join(l.dir, "six-"+names[0]), KnownHosts: filepath.Join(l.dir, "known_hosts")}
	for _, name := range names {
		h, err := l.host(name)
		if err != nil {
			return err
		}
		c.Hosts = append(c.Hosts, h)
	}
	if c.Program, err = filepath.Abs(l.options.program); err != nil {
		return err
	}
	if c.Bundle, err = filepath.Abs(l.options.bundle); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	if err := c.Write(fmt.Sprintf(sixHostsSpec, bundle.Version("kubernetes"))); err != nil {
		return err
	}
	log := filepath.Join(c.Dir, "events.log")
	took, err := timed(func() error {
		if _, err := c.Run(ctx, append(c.CreateArgs(), "--log-file", log)...); err != nil {
			return err
		}
		return l.awaitSix(ctx, c.Kubeconfig(), names)
	})
	if err != nil {
		return err
	}
	told, err := os.Open(log)
	if err != nil {
		return err
	}
	defer told.Close()
	all, err := readSteps(told)
	if err != nil {
		return err
	}
	doing, waiting := all.split()
	l.log("  %s", all.longest())
	take("ha/six-hosts", ours, took)
	take("ha/six-hosts-doing", ours, 100*doing.Seconds()/took)
	take("ha/six-hosts-waiting", ours, 100*waiting.Seconds()/took)
	return nil
}
