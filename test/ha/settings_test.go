// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/smoke/proof"
)

// TestSettings makes clusters in which what most leave as it is has other values: the API's domain and port, the domain of services and
// pods, names of its DNS server's own, flannel's backend and MTU, and the length of Nodes' networks; on hosts with a resolver of their own,
// which reach each other in another network than the one by which they are reached.
func TestSettings(t *testing.T) {
	for _, by := range []string{"kubexm", "kubeadm"} {
		t.Run(by, func(t *testing.T) {
			spec := strings.ReplaceAll(`  roleGroups: {master: [$1], worker: [$2, $3]}
  kubernetes: {version: v1.36.3, type: $BY, nodeCidrMaskSize: 26}
  controlPlaneEndpoint: {domain: api.settings.example, port: 7443}
  network:
    podCIDRs: [172.27.0.0/20]
    serviceCIDRs: [172.28.0.0/20]
    hostCIDRs: [198.51.100.0/24]
    flannel: {backend: host-gw, mtu: 1400}
  dns:
    clusterDomain: corp.settings.example
    etcHosts: [{address: 172.28.0.1, hostnames: [api.outside.example]}]
    coreDNS:
      rewriteBlock: rewrite name ledger.outside.example hello.kubexm-smoke.svc.corp.settings.example
`, "$BY", by)
			c := start(t, "hat", 3, spec)
			c.domain = "corp.settings.example"
			c.inAnotherNetwork(spec)
			c.resolveLocally()
			c.create()
			c.works()
			c.proves(func(p *proof.Cluster, ctx context.Context) error {
				return p.ProveSettings(ctx, proof.Settings{
					Port: 7443, NameServer: upstream, Names: []string{"ledger.outside.example"}, APINames: []string{"api.outside.example"},
				})
			})
			c.endpointIs("https://api.settings.example:7443")
			c.routesByHosts()
			c.staysAsItIs()
			c.isReset()
		})
	}
}

// upstream is a name server of hosts that pods can reach.
const upstream = "192.0.2.53"

// resolveLocally gives hosts, whose name server is on a loopback address, another one behind it, as where a resolver of the host's own
// comes first.
func (c *cluster) resolveLocally() {
	c.t.Helper()
	for _, h := range c.lab.Hosts {
		line := "grep -q '^nameserver 127' /etc/resolv.conf && echo nameserver " + upstream + " >>/etc/resolv.conf"
		if out, err := h.Exec(c.t.Context(), "sh", "-euc", line); err != nil {
			c.t.Fatalf("%v: %s", err, out)
		}
	}
	c.lab.Baseline(c.t)
}

// inAnotherNetwork gives each host a second address, which is the one for the others, and writes the config file with it. Who goes by
// Nodes' addresses finds hosts by ssh_config all the same.
func (c *cluster) inAnotherNetwork(spec string) {
	c.t.Helper()
	c.Internal = func(h *hosts.Host) string { return fmt.Sprintf("198.51.100.%d", 11+slices.Index(c.lab.Hosts, h)) }
	file := filepath.Join(c.Dir, "hosts", "ssh_config")
	text, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	known := string(text)
	for _, h := range c.lab.Hosts {
		if out, err := h.Exec(c.t.Context(), "ip", "address", "add", c.Internal(h)+"/24", "dev", "eth0"); err != nil {
			c.t.Fatalf("%v: %s", err, out)
		}
		known = strings.Replace(known, "Host "+h.Name+" ", "Host "+h.Name+" "+c.Internal(h)+" ", 1)
	}
	if err := os.WriteFile(file, []byte(known), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.write(spec)
}

// endpointIs wants workers to reach the API at this URL, and control plane hosts, which ask their own API server, and people, who may not
// know the name, by its port; nothing listens on the port that is the default.
func (c *cluster) endpointIs(want string) {
	c.t.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, of := range config.Clusters {
		c.t.Logf("people reach the API at %s", of.Server)
		if !strings.HasSuffix(of.Server, ":7443") {
			c.t.Errorf("people reach the API at %s, want port 7443", of.Server)
		}
	}
	for i, h := range c.lab.Hosts {
		kubelet, err := h.Exec(c.t.Context(), "grep", "-o", "https://.*", "/etc/kubernetes/kubelet.conf")
		if err != nil || !strings.HasSuffix(kubelet, ":7443") || i > 0 && kubelet != want {
			c.t.Errorf("the kubelet of %s asks %s, want %s: %v", h.Name, kubelet, want, err)
		}
		if out, err := h.Exec(c.t.Context(), "ss", "-Hltn", "sport = :6443"); err != nil || out != "" {
			c.t.Errorf("something on %s listens on port 6443: %s (%v)", h.Name, out, err)
		}
	}
}

// routesByHosts wants each host to send what is for other Nodes' pods to these Nodes themselves, with nothing wrapped around it.
func (c *cluster) routesByHosts() {
	c.t.Helper()
	nodes, err := c.api(10*time.Second).CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, h := range c.lab.Hosts {
		out, err := h.Exec(c.t.Context(), "ip", "-4", "route")
		if err != nil {
			c.t.Fatal(err)
		}
		routes := strings.Split(out, "\n")
		for _, n := range nodes.Items {
			if n.Name == h.Name {
				continue
			}
			at := slices.IndexFunc(c.lab.Hosts, func(o *hosts.Host) bool { return o.Name == n.Name })
			want := fmt.Sprintf("%s via %s dev eth0", n.Spec.PodCIDR, c.Internal(c.lab.Hosts[at]))
			if !strings.HasSuffix(n.Spec.PodCIDR, "/26") ||
				!slices.ContainsFunc(routes, func(r string) bool { return strings.HasPrefix(r, want) }) {
				c.t.Errorf("%s has no route %q:\n%s", h.Name, want, out)
			}
		}
		if links, err := h.Exec(c.t.Context(), "ip", "-brief", "link"); err != nil || strings.Contains(links, "flannel") {
			c.t.Errorf("%s has a link of flannel's: %v\n%s", h.Name, err, links)
		}
	}
	c.podsHaveMTU(1400)
}

// podsHaveMTU wants the interfaces of pods, of which there are some (CoreDNS is on one of the hosts at least), to have it.
func (c *cluster) podsHaveMTU(want int) {
	c.t.Helper()
	pods := 0
	for _, h := range c.lab.Hosts {
		out, err := h.Exec(c.t.Context(), "ip", "-o", "link", "show", "master", "cni0")
		if err != nil {
			continue // no pod was on it
		}
		for link := range strings.Lines(out) {
			if pods++; !strings.Contains(link, fmt.Sprintf(" mtu %d ", want)) {
				c.t.Errorf("a pod on %s has another MTU than %d: %s", h.Name, want, link)
			}
		}
	}
	if pods == 0 {
		c.t.Error("no host has a pod's interface")
	}
}
