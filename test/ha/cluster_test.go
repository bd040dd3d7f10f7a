// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/kubexm"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/smoke/proof"
)

const (
	clusterName = "ha"
	// creating is how long a cluster may take, with some to spare for machines that have other things to do.
	creating = 20 * time.Minute
	// stopping is how long the end of everything may take.
	stopping = 2 * time.Minute
)

// cluster is one that kubexm makes of a pool of hosts, and what the hosts were before.
type cluster struct {
	kubexm.Cluster
	t   *testing.T
	lab *lab.Lab
	// given are the hosts that the cluster has, and that its deletion resets.
	given []*hosts.Host
	// domain is that of services and pods, cluster.local if empty.
	domain string
}

// start makes hosts, and writes the config file; see kubexm.Cluster.Write. Where it has $ETCD, the URL of an etcd of others, one
// is started; $DIR is where what trusts it lies. Where it has $LB, the address of a load balancer of others, the last host is one.
func start(t *testing.T, pool string, count int, spec string, change ...func(*hosts.Options)) *cluster {
	t.Helper()
	dir := lab.Dir(t)
	c := &cluster{t: t}
	c.Cluster = kubexm.Cluster{
		Name: clusterName, Dir: dir, KnownHosts: filepath.Join(dir, "hosts", "known_hosts"),
		Program: lab.Program(t), Bundle: lab.Bundle(t, "KUBEXM_BUNDLE", "bundle"),
	}
	options := hosts.Options{Name: pool, Count: count, Subnet: lab.Subnet(t, "HA_SUBNET"), Dir: filepath.Join(c.Dir, "hosts")}
	for _, f := range change {
		f(&options)
	}
	c.lab = lab.Start(t, options)
	c.Hosts = c.lab.Hosts
	c.given = c.Hosts
	if strings.Contains(spec, "$ETCD") {
		spec = strings.NewReplacer("$ETCD", c.externalEtcd(t), "$DIR", c.Dir).Replace(spec)
	}
	if strings.Contains(spec, "$LB") {
		of := c.externalLoadBalancer(t)
		c.given = slices.DeleteFunc(slices.Clone(c.Hosts), func(h *hosts.Host) bool { return h == of })
		spec = strings.ReplaceAll(spec, "$LB", of.Address)
	}
	c.write(spec)
	return c
}

// write writes the config file. It has the hosts that the specification speaks of.
func (c *cluster) write(spec string) {
	c.t.Helper()
	if err := c.Write(spec); err != nil {
		c.t.Fatal(err)
	}
}

// kubexm runs the program, and returns what it prints.
func (c *cluster) kubexm(args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), creating)
	defer cancel()
	began := time.Now()
	out, err := c.Run(ctx, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Logf("kubexm %s: %.1f s", strings.Join(args[:2], " "), time.Since(began).Seconds())
	return out
}

// create makes the cluster what the config file says.
func (c *cluster) create() string {
	c.t.Helper()
	return c.kubexm(c.CreateArgs()...)
}

// in is the cluster for a part of the test.
func (c *cluster) in(t *testing.T) *cluster {
	part := *c
	part.t = t
	return &part
}

// staysAsItIs wants nothing to be changed when the same is asked again.
func (c *cluster) staysAsItIs() {
	c.t.Helper()
	if out := c.create(); !strings.Contains(out, "0 changes") {
		c.t.Errorf("a second create changes something:\n%s", out)
	}
}

// renews makes all certificates anew while the cluster runs.
func (c *cluster) renews() {
	c.t.Helper()
	before := c.certificates()
	c.kubexm("certs", "renew", "all", "-f", c.Config(), "--known-hosts", c.KnownHosts, "--yes")
	after := c.certificates()
	if len(before) == 0 || len(after) != len(before) {
		c.t.Errorf("there were %d certificates, and are %d", len(before), len(after))
	}
	renewed := 0
	for name, ends := range before {
		if after[name].After(ends) {
			renewed++
		} else if strings.HasSuffix(name, "/pki/apiserver.crt") {
			c.t.Errorf("%s ended %s, and ends %s", name, ends, after[name])
		}
	}
	// Those that the kubelet makes for itself, and those of an etcd of others, are not ours.
	c.t.Logf("%d of %d certificates were renewed", renewed, len(before))
}

// certsCheckArgs are what tells when certificates end.
func (c *cluster) certsCheckArgs() []string {
	return []string{"certs", "check", "-f", c.Config(), "--known-hosts", c.KnownHosts, "-o", "json"}
}

// certificates are the ends of all, by host and file.
func (c *cluster) certificates() map[string]time.Time {
	c.t.Helper()
	out := c.kubexm(c.certsCheckArgs()...)
	var listed []struct {
		Host      string    `json:"host"`
		Path      string    `json:"path"`
		Authority bool      `json:"authority"`
		NotAfter  time.Time `json:"notAfter"`
	}
	if err := json.Unmarshal([]byte(out[strings.Index(out, "["):]), &listed); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	ends := map[string]time.Time{}
	for _, l := range listed {
		if !l.Authority {
			ends[l.Host+" "+l.Path] = l.NotAfter
		}
	}
	return ends
}

// isReset deletes the cluster, and compares its hosts with what they were before.
func (c *cluster) isReset() {
	c.t.Helper()
	c.kubexm("delete", "cluster", clusterName, "--yes")
	c.lab.WantReset(c.t, c.given...)
}

// api is the cluster's, for a client that gives up after so long.
func (c *cluster) api(patience time.Duration) kubernetes.Interface {
	c.t.Helper()
	client, err := kubernetes.NewForConfig(c.rest(patience))
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

func (c *cluster) rest(patience time.Duration) *rest.Config {
	c.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		c.t.Fatal(err)
	}
	config.Timeout = patience
	return config
}

// works proves the cluster by pods.
func (c *cluster) works() {
	c.t.Helper()
	c.proves((*proof.Cluster).Prove)
}

// proves puts the cluster to a proof.
func (c *cluster) proves(prove func(*proof.Cluster, context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Minute)
	defer cancel()
	var said bytes.Buffer
	of := proof.Cluster{
		Client: c.api(10 * time.Second), Bundle: c.Bundle, SSHConfig: filepath.Join(c.Dir, "hosts", "ssh_config"), Domain: c.domain, Out: &said,
	}
	if err := prove(&of, ctx); err != nil {
		c.t.Fatalf("%v\n%s", err, said.String())
	}
	c.t.Log("\n" + said.String())
}
