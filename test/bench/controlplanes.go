// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// joinedAs are the names of the measurements of those who join a control plane, in their order.
var joinedAs = []string{"join/control-plane-2", "join/control-plane-3"}

// controlPlanes measures how a control plane grows from one host to three.
func controlPlanes() experiment {
	const about = "a fresh host that answers SSH becomes the %s of a kubeadm control plane with kubeadm's etcd, artifacts in place at the controller: " +
		"Node Ready, its API server ready, its etcd member voting, as asked by the same code on both sides; " +
		"reference: test/bench/join.sh with the same artifacts in a cluster of its own, begun by the pipeline too. " +
		"The script verifies no digests, records nothing for undo, and does not look after etcd"
	e := experiment{
		// Each side has a cluster of its own, which is off while the other is measured.
		hosts: func(rounds int) int { return 6 * rounds },
		round: func(ctx context.Context, l *lab, hosts []string, round int, take note) error {
			mine, theirs := hosts[6*round:6*round+3], hosts[6*round+3:6*round+6]
			return inTurn(round,
				func() error { return l.grow(ctx, mine, ours, take) },
				func() error { return l.grow(ctx, theirs, reference, take) },
			)
		},
	}
	for i, which := range []string{"second", "third"} {
		e.measurements = append(e.measurements, measurement{
			name: joinedAs[i], unit: "s", goal: goal{of: "ratio", bound: 1.1}, about: fmt.Sprintf(about, which),
		})
	}
	return e
}

// grow begins a control plane on the first host, and has the others join one after the other.
func (l *lab) grow(ctx context.Context, hosts []string, of side, take note) error {
	defer l.switchOff(ctx, hosts...)
	c, err := l.begin(ctx, hosts[0], l.options.bundle, byKubeadm)
	if err != nil {
		return err
	}
	for i, name := range hosts[1:] {
		joins := func(ctx context.Context) error { return c.joinControlPlane(ctx, name) }
		if of == reference {
			if joins, err = c.script(name, spec.RoleControlPlane); err != nil {
				return err
			}
		}
		took, err := timed(func() error {
			if err := joins(ctx); err != nil {
				return err
			}
			return c.awaitControlPlane(ctx, name)
		})
		if err != nil {
			return err
		}
		take(joinedAs[i], of, took)
	}
	return nil
}

// joinControlPlane makes a host one more of the control plane, by the pipeline.
func (c *cluster) joinControlPlane(ctx context.Context, name string) error {
	node, err := c.node(ctx, name, spec.RoleControlPlane)
	if err != nil {
		return err
	}
	p, err := pipeline.JoinControlPlane(node, c.bundle)
	if err != nil {
		return err
	}
	var told steps
	if _, err := c.engine(&told).Run(ctx, p); err != nil {
		return err
	}
	c.joined(node)
	c.lab.log("  %s", told.longest())
	return nil
}

// arrival is how long a host whose join has ended may take until all of it works.
const arrival = 2 * time.Minute

// awaitControlPlane waits until a host is a whole part of the control plane. Both sides end with it.
func (c *cluster) awaitControlPlane(ctx context.Context, name string) error {
	h, err := c.lab.host(name)
	if err != nil {
		return err
	}
	own, err := c.connect(h.Address, "")
	if err != nil {
		return err
	}
	votes, err := c.voter(h.Address)
	if err != nil {
		return err
	}
	return await(ctx, func(ctx context.Context) error { return c.api.NodeReady(ctx, name) }, own.Healthy, votes)
}

// await waits until one after the other holds.
func await(ctx context.Context, conditions ...func(context.Context) error) error {
	var missing error
	for _, holds := range conditions {
		err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, arrival, true, func(ctx context.Context) (bool, error) {
			missing = holds(ctx)
			return missing == nil, nil
		})
		if err != nil {
			return errors.Join(err, missing)
		}
	}
	return nil
}

// voter asks whether etcd's member at an address answers and votes.
func (c *cluster) voter(address string) (func(context.Context) error, error) {
	etcdctl, err := c.bundle.Binary("etcd", "", c.arch, "etcdctl")
	if err != nil {
		return nil, err
	}
	ca, _ := c.authorities.Get("etcd")
	client, err := ca.Sign(pki.LeafRequest{CommonName: "bench", Usages: []pki.Usage{pki.Client}})
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.lab.dir, "etcd-"+address)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"ca.crt": ca.Cert, "client.crt": client.Cert, "client.key": client.Key.Reveal()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, etcdctl.Path, "--endpoints=https://"+net.JoinHostPort(address, "2379"),
			"--dial-timeout=2s", "--command-timeout=4s", "--cacert="+filepath.Join(dir, "ca.crt"),
			"--cert="+filepath.Join(dir, "client.crt"), "--key="+filepath.Join(dir, "client.key"),
			"endpoint", "status", "-w", "json")
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("etcd's member at %s: %w", address, err)
		}
		var members []struct {
			Status struct {
				Learner bool `json:"isLearner"`
			}
		}
		if err := json.Unmarshal(out, &members); err != nil {
			return fmt.Errorf("etcd's member at %s: %w: %s", address, err, out)
		}
		if len(members) != 1 || members[0].Status.Learner {
			return fmt.Errorf("etcd's member at %s does not vote: %s", address, out)
		}
		return nil
	}, nil
}
