// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/kubexm"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// command is a cluster that the program makes, and upgrades.
type command struct {
	kubexm.Cluster
	t *testing.T
}

// TestCommand upgrades a cluster by the program alone: it is killed while the first host is changed, and goes on when it is run
// again. Of the workers, the last goes first. The Nodes stay who they are, and the hosts are what they were after the reset.
func TestCommand(t *testing.T) {
	for _, kind := range []string{"kubeadm", "kubexm"} {
		t.Run(kind, func(t *testing.T) {
			c := &command{t: t}
			before := c.start("upgradecmd")
			old, updated := c.make(kind)
			nodes := c.nodes(old)

			canary := []string{"--canary", c.Hosts[2].Name}
			plan := c.must(c.upgradeArgs(append(canary, "--to", updated, "--plan")...)...)
			for _, h := range c.Hosts {
				if !strings.Contains(plan, h.Name) {
					t.Errorf("the plan says nothing of %s", h.Name)
				}
			}
			t.Log("\n" + plan)
			c.declares(old)

			c.killedAfter("upgrade/begin", c.upgradeArgs(append(canary, "--to", updated)...)...)
			c.declares(updated)
			if out, err := c.Run(t.Context(), c.CreateArgs()...); err == nil || !strings.Contains(out, "kubexm upgrade cluster") {
				t.Errorf("create must leave an upgrade alone (%v):\n%s", err, out)
			}
			log := filepath.Join(c.Dir, "upgraded.log")
			t.Log("\n" + c.must(c.upgradeArgs(append(canary, "--log-file", log)...)...))
			want := []string{c.Hosts[2].Name, c.Hosts[1].Name}
			if order := c.drained(log); !slices.Equal(order[max(0, len(order)-2):], want) {
				t.Errorf("the hosts were drained in the order %v, want the workers to be last, the canary before the other: %v", order, want)
			}
			for name, id := range c.nodes(updated) {
				if nodes[name] != id {
					t.Errorf("Node %s is another one than before", name)
				}
			}
			if out := c.must(c.upgradeArgs()...); !strings.Contains(out, "already") {
				t.Errorf("a second upgrade does something:\n%s", out)
			}
			if out := c.must(c.CreateArgs()...); !strings.Contains(out, "0 changes") {
				t.Errorf("a create after it changes something:\n%s", out)
			}

			c.must("delete", "cluster", c.Name, "--yes")
			before.WantReset(t)
		})
	}
}

// make makes a cluster of the older version of two, with the bundles of both at hand.
func (c *command) make(kind string) (old, updated string) {
	c.t.Helper()
	from := openBundle(c.t, "KUBEXM_BUNDLE_PREVIOUS", "bundle-v1.35.4", "artifacts-previous")
	to := openBundle(c.t, "KUBEXM_BUNDLE", "bundle", "artifacts")
	old, updated = from.Manifest().KubernetesVersion, to.Manifest().KubernetesVersion
	for version, dir := range map[string]string{old: from.Dir(), updated: to.Dir()} {
		if err := os.Symlink(dir, filepath.Join(c.Bundle, version)); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := c.Write("  roleGroups: {master: [$1], worker: [$2, $3]}\n  kubernetes: {type: " + kind + ", version: " + old + "} # of ours\n"); err != nil {
		c.t.Fatal(err)
	}
	c.must(c.CreateArgs()...)
	return old, updated
}

// start makes three hosts.
func (c *command) start(pool string) *lab.Lab {
	c.t.Helper()
	dir := lab.Dir(c.t)
	c.Name, c.Dir, c.Bundle, c.KnownHosts = pool, dir, filepath.Join(dir, "bundles"), filepath.Join(dir, "hosts", "known_hosts")
	if err := os.Mkdir(c.Bundle, 0o755); err != nil {
		c.t.Fatal(err)
	}
	c.Program = lab.Program(c.t)
	made := lab.Start(c.t, hosts.Options{Name: pool, Count: 3, Dir: filepath.Join(dir, "hosts")})
	c.Hosts = made.Hosts
	return made
}

func (c *command) upgradeArgs(more ...string) []string {
	return append([]string{"upgrade", "cluster", "-f", c.Config(), "--bundle", c.Bundle, "--known-hosts", c.KnownHosts, "--yes"}, more...)
}

// must runs the program, and returns what it prints.
func (c *command) must(args ...string) string {
	c.t.Helper()
	began := time.Now()
	out, err := c.Run(c.t.Context(), args...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Logf("kubexm %s: %.1f s", strings.Join(args[:2], " "), time.Since(began).Seconds())
	return out
}

// killedAfter runs the program, and kills it as soon as a step has changed something on a host.
func (c *command) killedAfter(step string, args ...string) {
	c.t.Helper()
	log := filepath.Join(c.Dir, "killed.log")
	ctx, kill := context.WithCancel(c.t.Context())
	defer kill()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, append(args, "--log-file", log)...)
		ended <- err
	}()
	changed(c.t, log, step, c.Hosts, ended)
	kill()
	<-ended
}

// changed waits until the log says that a step has changed something on one of the hosts, and returns its name.
func changed(t *testing.T, log, step string, on []*hosts.Host, ended <-chan error) string {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			t.Fatalf("it ended before %s had changed anything: %v", step, err)
		case <-tick.C:
		}
		for _, e := range logged(t, log) {
			if e.Event == event.Changed && e.Step == step && slices.ContainsFunc(on, func(h *hosts.Host) bool { return h.Name == e.Node }) {
				return e.Node
			}
		}
	}
}

// drained are the hosts in the order in which they were made ready to be upgraded, as a log tells it.
func (c *command) drained(log string) []string {
	var order []string
	for _, l := range logged(c.t, log) {
		if l.Event == event.Changed && l.Step == "upgrade/begin" {
			order = append(order, l.Node)
		}
	}
	return order
}

// line is what is of interest of one in a log.
type line struct {
	Time  time.Time  `json:"timestamp"`
	Event event.Type `json:"event"`
	Step  string     `json:"step"`
	Node  string     `json:"node"`
}

// logged are the lines of a log so far, none if it has not begun.
func logged(t *testing.T, path string) []line {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var all []line
	for text := range bytes.Lines(content) {
		var l line
		if json.Unmarshal(text, &l) == nil { // the last may not be whole
			all = append(all, l)
		}
	}
	return all
}

// declares wants the config file to declare a version, and to be what it was else.
func (c *command) declares(version string) {
	c.t.Helper()
	content, err := os.ReadFile(c.Config())
	if err != nil {
		c.t.Fatal(err)
	}
	if !strings.Contains(string(content), "version: "+version+"} # of ours\n") {
		c.t.Errorf("the config file does not declare %s:\n%s", version, content)
	}
}

// nodes wants all Nodes to have a version, and returns who they are.
func (c *command) nodes(version string) map[string]types.UID {
	c.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		c.t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		c.t.Fatal(err)
	}
	list, err := client.CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	all := map[string]types.UID{}
	for _, n := range list.Items {
		if has := n.Status.NodeInfo.KubeletVersion; has != version || n.Spec.Unschedulable {
			c.t.Errorf("Node %s has %s (unschedulable: %v), want %s", n.Name, has, n.Spec.Unschedulable, version)
		}
		all[n.Name] = n.UID
	}
	if len(all) != len(c.Hosts) {
		c.t.Errorf("there are %d Nodes", len(all))
	}
	return all
}
