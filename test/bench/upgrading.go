// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/workload"
)

// upgradedAs are the names of the measurements of hosts that are upgraded, in their order, and their parts.
var upgradedAs = []struct {
	name string
	role spec.Role
	// programs are what another version of Kubernetes brings, in the order in which their units are restarted.
	programs []string
	// before are the components whose programs the newer bundle has in other versions, too: their units, which are restarted first.
	before []string
}{
	{
		"upgrade/control-plane", spec.RoleControlPlane,
		[]string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"}, []string{"containerd", "etcd"},
	},
	{"upgrade/worker", spec.RoleWorker, []string{"kubelet", "kube-proxy"}, []string{"containerd"}},
}

// upgrading measures hosts that come to another version of Kubernetes where they are.
func upgrading() experiment {
	const about = "the %s of a cluster of two hosts whose components are units comes to the next minor version of Kubernetes where it is: " +
		"drained of a Pod with a budget, its programs and those of etcd and containerd replaced, its units restarted in order, Node Ready with the version and uncordoned; " +
		"reference: test/bench/upgrade.sh with the same programs in a cluster of its own, made by the pipeline too. " +
		"The script verifies no digests, keeps nothing to go back to, and does not check whether units stay up"
	e := experiment{
		// Each side has a cluster of its own, which is off while the other is measured.
		hosts: func(rounds int) int { return 4 * rounds },
		round: func(ctx context.Context, l *lab, hosts []string, round int, take note) error {
			mine, theirs := hosts[4*round:4*round+2], hosts[4*round+2:4*round+4]
			return inTurn(round,
				func() error { return l.upgrade(ctx, mine, ours, take) },
				func() error { return l.upgrade(ctx, theirs, reference, take) },
			)
		},
	}
	for i, which := range []string{"control plane", "worker"} {
		e.measurements = append(e.measurements,
			measurement{name: upgradedAs[i].name, unit: "s", goal: goal{of: "ratio", bound: 1.1}, about: fmt.Sprintf(about, which)},
			measurement{name: upgradedAs[i].name + "/waiting", unit: "%", about: "the share of that time in which nothing was done but to wait for the cluster: " +
				"for Pods to go, for the API server to be ready, for the Node to have the version"},
		)
	}
	return e
}

// upgrade makes a cluster of two hosts with the older bundle, and brings both to the newer one.
func (l *lab) upgrade(ctx context.Context, hosts []string, of side, take note) error {
	defer l.switchOff(ctx, hosts...)
	c, err := l.begin(ctx, hosts[0], l.options.older, byUnits)
	if err != nil {
		return err
	}
	if err := c.addWorker(ctx, hosts[1]); err != nil {
		return err
	}
	if err := c.use(ctx); err != nil {
		return err
	}
	was := c.target.KubernetesVersion
	if c.bundle, err = artifact.Open(ctx, l.options.bundle, nil); err != nil {
		return fmt.Errorf("%w; make artifacts makes it", err)
	}
	c.target.KubernetesVersion = c.bundle.Version(artifact.Kubernetes)
	for i, u := range upgradedAs {
		act := func() (time.Duration, error) { return c.upgradeHost(ctx, hosts[i], u.role, was) }
		if of == reference {
			if act, err = c.scriptedUpgrade(ctx, hosts[i], u.programs, u.before); err != nil {
				return err
			}
		}
		var waited time.Duration
		took, err := timed(func() (err error) { waited, err = act(); return err })
		if err != nil {
			return err
		}
		if err := c.api.NodeVersion(ctx, hosts[i], c.target.KubernetesVersion); err != nil {
			return err
		}
		if err := c.serves(); err != nil {
			return err
		}
		take(u.name, of, took)
		take(u.name+"/waiting", of, 100*waited.Seconds()/took)
	}
	return nil
}

// addWorker makes a host a worker by the pipeline.
func (c *cluster) addWorker(ctx context.Context, name string) error {
	node, err := c.node(ctx, name, spec.RoleWorker)
	if err != nil {
		return err
	}
	p, err := pipeline.JoinWorker(node, c.bundle)
	if err != nil {
		return err
	}
	_, err = c.engine(nil).Run(ctx, p)
	return err
}

// serves sees that the API server is of the version that the control plane was brought to.
func (c *cluster) serves() error {
	client, err := c.client()
	if err != nil {
		return err
	}
	is, err := client.Discovery().ServerVersion()
	if err == nil && is.GitVersion != c.target.KubernetesVersion {
		err = fmt.Errorf("the API server is %s, and is to be %s", is.GitVersion, c.target.KubernetesVersion)
	}
	return err
}

func (c *cluster) client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// use has a Pod with a budget on each of two Nodes, which both take any Pod, so that each drain has one to move.
func (c *cluster) use(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	untaint := []byte(`{"spec":{"taints":null}}`)
	if _, err := client.CoreV1().Nodes().Patch(ctx, c.members[0].Name, types.MergePatchType, untaint, metav1.PatchOptions{}); err != nil {
		return err
	}
	budget := &workload.Budget{Client: client, Replicas: 2, Least: 1, Image: c.bundle.Images(c.arch)["pause"]}
	return budget.Deploy(ctx)
}

// upgradeHost brings a host to the bundle's version by the pipeline, and says for how long the cluster was waited for.
func (c *cluster) upgradeHost(ctx context.Context, name string, role spec.Role, was string) (time.Duration, error) {
	node, err := c.node(ctx, name, role)
	if err != nil {
		return 0, err
	}
	node.Was = was
	plans := pipeline.JoinWorker
	if role == spec.RoleControlPlane {
		// It is planned as when it began.
		plans, node.Target.BootstrapMode, node.Target.Members = pipeline.CreateControlPlane, spec.BootstrapInit, nil
	}
	p, err := plans(node, c.bundle)
	if err != nil {
		return 0, err
	}
	var told steps
	if _, err := c.engine(&told).Run(ctx, p); err != nil {
		return 0, err
	}
	c.lab.log("  %s", told.longest())
	_, waiting := told.split()
	return waiting, nil
}

//go:embed upgrade.sh
var upgradeScript string

// scriptedUpgrade is the reference for that. What it sends is laid out before it is returned.
func (c *cluster) scriptedUpgrade(ctx context.Context, name string, programs, before []string) (func() (time.Duration, error), error) {
	dir := filepath.Join(c.lab.dir, "upgrade-"+name)
	if err := c.link(filepath.Join(dir, "bin"), artifact.Kubernetes, programs); err != nil {
		return nil, err
	}
	for _, component := range before {
		if err := c.link(filepath.Join(dir, "bin"), component, nil); err != nil {
			return nil, err
		}
	}
	kubectl, err := c.bundle.Binary(artifact.Kubernetes, "", c.arch, "kubectl")
	if err != nil {
		return nil, err
	}
	args := append([]string{"-c", upgradeScript, "upgrade.sh", name}, before...)
	for _, p := range programs {
		if p != "kubectl" {
			args = append(args, p)
		}
	}
	waited := filepath.Join(dir, "waited")
	return func() (time.Duration, error) {
		// Not by standard input, which ssh reads.
		cmd := exec.CommandContext(ctx, "sh", args...)
		cmd.Env = append(os.Environ(), "DIR="+c.lab.dir, "ARTIFACTS="+dir, "KUBECTL="+kubectl.Path, "KUBECONFIG="+c.kubeconfig,
			"VERSION="+c.target.KubernetesVersion, "WAITED="+waited)
		if err := run(cmd, nil); err != nil {
			return 0, err
		}
		content, err := os.ReadFile(waited)
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
		return time.Duration(n), err
	}, nil
}
