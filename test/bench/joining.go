// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// joining measures a worker's way into a cluster, and what it costs to look at one that is in.
func joining() experiment {
	return experiment{
		measurements: []measurement{
			{
				name: "worker/ready", unit: "s", goal: goal{of: "ratio", bound: 1.25},
				about: "a fresh host that answers SSH becomes a Ready Node, artifacts in place at the controller; reference: test/bench/join.sh with the same artifacts",
			},
			{
				name: "worker/observe-exchanges", unit: "exchanges", goal: goal{of: "ours", bound: 1},
				about: "how often a worker that has joined is talked to in a run that finds nothing to change",
			},
			{
				name: "worker/observe", unit: "ms",
				about: "how long such a run takes for its host, from the first packet to the last; reference: ssh host true",
			},
		},
		// Each round has two fresh hosts, so that neither side finds what the other has left.
		hosts: func(rounds int) int { return 1 + 2*rounds },
		round: func(ctx context.Context, l *lab, hosts []string, round int, take note) error {
			c, err := l.controlPlane(ctx, hosts[0])
			if err != nil {
				return err
			}
			mine, theirs := hosts[1+2*round], hosts[2+2*round]
			return inTurn(round,
				func() error { return c.join(ctx, mine, take) },
				func() error { return c.joinByScript(ctx, hosts[0], theirs, take) },
			)
		},
	}
}

// join makes a host a worker by the pipeline, and looks at it again.
func (c *cluster) join(ctx context.Context, name string, take note) error {
	defer c.switchOff(ctx, name)
	var p *plan.Plan
	took, err := timed(func() error {
		node, err := c.node(ctx, name, spec.RoleWorker)
		if err != nil {
			return err
		}
		if p, err = pipeline.JoinWorker(node, c.bundle); err != nil {
			return err
		}
		_, err = c.engine().Run(ctx, p)
		return err
	})
	if err != nil {
		return err
	}
	take("worker/ready", ours, took)
	report, err := c.engine().Run(ctx, p)
	if err != nil {
		return err
	}
	if !report.Converged() {
		return fmt.Errorf("host %s: a second run changed %d of %d nodes", name, report.Total().Changed, report.Total().Total)
	}
	take("worker/observe-exchanges", ours, float64(report.Hosts[0].Exchanges))
	take("worker/observe", ours, report.Hosts[0].Duration.Seconds()*1e3)
	took, err = timed(func() error { return c.lab.ssh(ctx, name, nil, "true") })
	if err != nil {
		return err
	}
	take("worker/observe", reference, took*1e3)
	return nil
}

//go:embed join.sh
var joinScript string

// joinByScript makes a host a worker by the script.
func (c *cluster) joinByScript(ctx context.Context, controlPlane, name string, take note) error {
	defer c.switchOff(ctx, name)
	artifacts, err := c.artifacts()
	if err != nil {
		return err
	}
	h, err := c.lab.host(name)
	if err != nil {
		return err
	}
	images := c.bundle.Images(c.arch)
	took, err := timed(func() error {
		cmd := exec.CommandContext(ctx, "sh", "-s", controlPlane, name)
		cmd.Env = append(os.Environ(),
			"SSH_CONFIG="+filepath.Join(c.lab.dir, "ssh_config"), "ARTIFACTS="+artifacts, "KUBECONFIG="+c.kubeconfig,
			"ADDRESS="+h.Address, "PAUSE="+images["pause"])
		return run(cmd, strings.NewReader(joinScript))
	})
	if err != nil {
		return err
	}
	take("worker/ready", reference, took)
	return nil
}

// switchOff takes a worker that was measured off the power, so that it costs the next nothing.
func (c *cluster) switchOff(ctx context.Context, name string) {
	h, err := c.lab.host(name)
	if err == nil {
		err = h.Kill(ctx)
	}
	if err != nil {
		c.lab.log("cannot switch off %s: %v", name, err)
	}
}

// artifacts lays out for the script what the pipeline sends to a worker: bin and cni with programs, images.tar, and
// kubectl.
func (c *cluster) artifacts() (string, error) {
	dir := filepath.Join(c.lab.dir, "artifacts")
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	for component, into := range map[string]string{"kubernetes": "bin", "containerd": "bin", "runc": "bin", "cni-plugins": "cni"} {
		files, err := c.bundle.Binaries(component, "", c.arch)
		if err != nil {
			return "", err
		}
		if err := os.MkdirAll(filepath.Join(dir, into), 0o755); err != nil {
			return "", err
		}
		for _, f := range files {
			if component == "kubernetes" && f.Name != "kubelet" && f.Name != "kubeadm" && f.Name != "kubectl" {
				continue
			}
			if err := os.Symlink(f.Path, filepath.Join(dir, into, f.Name)); err != nil {
				return "", err
			}
		}
	}
	return dir, c.imageArchive(filepath.Join(dir, "images.tar"))
}

func (c *cluster) imageArchive(path string) (err error) {
	refs, err := c.bundle.Images(c.arch).Refs("pause", "kube-proxy", "coredns", "flannel", "flannel-cni-plugin")
	if err != nil {
		return err
	}
	archive, err := c.bundle.ImageArchive(c.arch, refs...)
	if err != nil {
		return err
	}
	from, err := archive.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err = io.Copy(to, from); err != nil {
		_ = to.Close()
		return err
	}
	return to.Close()
}
