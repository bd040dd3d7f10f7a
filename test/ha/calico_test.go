// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/smoke/proof"
)

// TestCalico makes clusters whose pods Calico connects: in VXLAN, with an MTU and blocks of their own. NetworkPolicies are kept to; packets
// go by the hosts' addresses when asked for; a worker that goes releases its block; and hosts are reset without a trace of it.
func TestCalico(t *testing.T) {
	for _, by := range []string{"kubeadm", "kubexm"} {
		t.Run(by, func(t *testing.T) {
			spec := func(workers, vxlan string) string {
				return strings.NewReplacer("$BY", by, "$WORKERS", workers, "$VXLAN", vxlan).Replace(`  roleGroups: {master: [$1], worker: [$WORKERS]}
  kubernetes: {version: v1.36.3, type: $BY}
  network:
    plugin: calico
    calico: {ipipMode: Never, vxlanMode: $VXLAN, vethMTU: 1400}
    ippool: {blockSize: 28}
`)
			}
			c := start(t, "hac", 3, spec("$2, $3", "Always"))
			c.Bundle = lab.Bundle(t, "KUBEXM_BUNDLE_CALICO", "bundle-calico")
			for _, part := range []struct {
				name string
				do   func(*cluster)
			}{
				{"made", func(c *cluster) { c.create(); c.works() }},
				{"as declared", func(c *cluster) { c.carriedByCalico("dev vxlan.calico", 1400); c.blocksHave(28) }},
				{"policies", func(c *cluster) { c.proves((*proof.Cluster).ProvePolicies) }},
				{"as it is", (*cluster).staysAsItIs},
				{"without a tunnel", func(c *cluster) {
					c.write(spec("$2, $3", "CrossSubnet"))
					c.create()
					c.carriedByCalico("dev eth0", 1400)
					c.works()
					c.staysAsItIs()
				}},
				{"a worker less", func(c *cluster) {
					c.write(spec("$2", "CrossSubnet"))
					c.create()
					c.blocksAreOf(c.lab.Hosts[0].Name, c.lab.Hosts[1].Name)
					c.staysAsItIs()
				}},
				{"reset", (*cluster).isReset},
			} {
				if !t.Run(part.name, func(t *testing.T) { part.do(c.in(t)) }) {
					t.FailNow() // what comes next would not tell anything
				}
			}
		})
	}
}

// carriedByCalico wants each host to send what is for other hosts' blocks by a device, its tunnel to be Calico's, and pods to have an MTU.
func (c *cluster) carriedByCalico(device string, mtu int) {
	c.t.Helper()
	pods := 0
	for _, h := range c.lab.Hosts {
		if device == "dev vxlan.calico" {
			link, err := h.Exec(c.t.Context(), "ip", "-d", "-o", "link", "show", "vxlan.calico")
			if err != nil || !strings.Contains(link, " dstport 4789 ") || !strings.Contains(link, fmt.Sprintf(" mtu %d ", mtu)) {
				c.t.Errorf("%s has another tunnel: %s (%v)", h.Name, link, err)
			}
		}
		// Hosts learn of each other's blocks in their own time.
		var routes string
		err := wait.PollUntilContextTimeout(c.t.Context(), time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
			var err error
			if routes, err = h.Exec(ctx, "ip", "-4", "route", "show", "root", "10.233.64.0/18"); err != nil {
				return false, err
			}
			others := slices.DeleteFunc(strings.Split(routes, "\n"), func(r string) bool { return !strings.Contains(r, " via ") })
			return len(others) > 0 && !slices.ContainsFunc(others, func(r string) bool { return !strings.Contains(r, device+" ") }), nil
		})
		if err != nil {
			c.t.Errorf("%s does not reach all other hosts' blocks by %s: %v\n%s", h.Name, device, err, routes)
		}
		links, err := h.Exec(c.t.Context(), "ip", "-o", "link", "show", "type", "veth")
		if err != nil {
			c.t.Fatal(err)
		}
		for link := range strings.Lines(links) {
			if !strings.Contains(link, ": cali") {
				continue
			}
			if pods++; !strings.Contains(link, fmt.Sprintf(" mtu %d ", mtu)) {
				c.t.Errorf("a pod on %s has another MTU than %d: %s", h.Name, mtu, link)
			}
		}
	}
	if pods == 0 {
		c.t.Error("no host has a pod's interface")
	}
}

// blocks are Calico's, each with what it is assigned to.
func (c *cluster) blocks() map[netip.Prefix]string {
	c.t.Helper()
	client, err := dynamic.NewForConfig(c.rest(10 * time.Second))
	if err != nil {
		c.t.Fatal(err)
	}
	list, err := client.Resource(schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}).
		List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	all := map[netip.Prefix]string{}
	for _, b := range list.Items {
		cidr, _, _ := unstructured.NestedString(b.Object, "spec", "cidr")
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			c.t.Fatal(err)
		}
		all[prefix], _, _ = unstructured.NestedString(b.Object, "spec", "affinity")
	}
	return all
}

// blocksHave wants each host to have a block of this length, in the pods' network.
func (c *cluster) blocksHave(bits int) {
	c.t.Helper()
	blocks := c.blocks()
	pods := netip.MustParsePrefix("10.233.64.0/18")
	for b, of := range blocks {
		if b.Bits() != bits || !pods.Overlaps(b) {
			c.t.Errorf("%s has the block %s, want one of /%d in %s", of, b, bits, pods)
		}
	}
	if len(blocks) < len(c.lab.Hosts) {
		c.t.Errorf("of %d hosts there are these blocks: %v", len(c.lab.Hosts), blocks)
	}
}

// blocksAreOf waits until these hosts have blocks, and nobody else.
func (c *cluster) blocksAreOf(hosts ...string) {
	c.t.Helper()
	var found []string
	began := time.Now()
	err := wait.PollUntilContextTimeout(c.t.Context(), time.Second, 5*time.Minute, true, func(context.Context) (bool, error) {
		found = nil
		for _, of := range c.blocks() {
			found = append(found, strings.TrimPrefix(of, "host:"))
		}
		slices.Sort(found)
		found = slices.Compact(found)
		return slices.Equal(found, slices.Sorted(slices.Values(hosts))), nil
	})
	if err != nil {
		c.t.Errorf("blocks are of %v, want them of %v: %v", found, hosts, err)
	}
	c.t.Logf("blocks are of %v alone after %.0f s", found, time.Since(began).Seconds())
}
