// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build ha

package ha

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// TestKubeVIP has the control plane's hosts hold the address themselves, by an election in the API that is reached at this address.
func TestKubeVIP(t *testing.T) {
	bundle, err := filepath.Abs(cmp.Or(os.Getenv("KUBEXM_BUNDLE_KUBE_VIP"), filepath.Join("..", "..", "build", "bundle-kube-vip")))
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"kubeadm", "kubexm"} {
		t.Run(way, func(t *testing.T) {
			c := start(t, "hav", 4, `  roleGroups: {master: [$1, $2, $3], worker: [$4]}
  kubernetes: {version: v1.36.3, type: `+way+`}
  etcd: {type: `+way+`}
  controlPlaneEndpoint: {internalLoadbalancer: kube-vip, lb_address: $VIP}
`)
			c.Bundle = bundle
			masters, worker := c.lab.Hosts[:3], c.lab.Hosts[3]
			c.create()
			c.works()
			c.staysAsItIs()
			c.answersAtAddress(t, worker)

			writes := c.written()
			holder := c.holder(t, masters)
			t.Logf("the address has moved %d times while the cluster was made and used", c.moves(t))
			if err := holder.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
			away := c.untilAnswered(t)
			t.Logf("%s is killed, which had the address: the API answered again after %.1f s", holder.Name, away.Seconds())
			if away > answersAgain {
				t.Errorf("the API was away for %s, longer than %s", away, answersAgain)
			}
			c.answersAtAddress(t, worker)
			if next := c.holder(t, others(masters, holder)); next == holder {
				t.Errorf("%s has the address still", holder.Name)
			}
			c.awaitNode(t, holder.Name, corev1.ConditionUnknown)
			if err := holder.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.awaitNode(t, holder.Name, corev1.ConditionTrue)
			if way == "kubeadm" {
				c.awaitWhole(t, holder.Name)
			}
			c.stopped(writes)
			c.holder(t, masters)

			c.renewsClient(t, masters)
			c.answersAtAddress(t, worker)
			c.staysAsItIs()
			c.isReset()
		})
	}
}

func others(all []*hosts.Host, without *hosts.Host) []*hosts.Host {
	var rest []*hosts.Host
	for _, h := range all {
		if h != without {
			rest = append(rest, h)
		}
	}
	return rest
}

// holder is the one host among them that has the virtual address. For a moment nobody may have it.
func (c *cluster) holder(t *testing.T, among []*hosts.Host) *hosts.Host {
	t.Helper()
	var have []*hosts.Host
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		have = nil
		for _, h := range among {
			out, err := h.Exec(ctx, "ip", "-brief", "address")
			if err != nil {
				return false, err
			}
			if strings.Contains(out, c.VIP()+"/32") {
				have = append(have, h)
			}
		}
		return len(have) == 1, nil
	})
	if err != nil {
		t.Fatalf("%d hosts have the virtual address, and not one: %v", len(have), err)
	}
	return have[0]
}

// moves is how often the address has got another holder.
func (c *cluster) moves(t *testing.T) int32 {
	t.Helper()
	lease, err := c.api(5*time.Second).CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), "plndr-cp-lock", metav1.GetOptions{})
	if err != nil || lease.Spec.LeaseTransitions == nil {
		t.Fatalf("the Lease of the address: %+v, %v", lease.Spec, err)
	}
	return *lease.Spec.LeaseTransitions
}

// answersAtAddress wants the API at the virtual address to be ready, as another host sees it.
func (c *cluster) answersAtAddress(t *testing.T, from *hosts.Host) {
	t.Helper()
	url := fmt.Sprintf("https://%s:6443/readyz", c.VIP())
	out, err := from.Exec(t.Context(), "curl", "--silent", "--show-error", "--insecure", "--retry", "3", "--retry-all-errors", "--max-time", "5", url)
	if err != nil || out != "ok" {
		t.Errorf("%s asks %s: %q, %v", from.Name, url, out, err)
	}
}

// renewsClient makes the certificates of kube-vip's clients anew.
func (c *cluster) renewsClient(t *testing.T, masters []*hosts.Host) {
	t.Helper()
	before := c.certificates()
	c.kubexm("certs", "renew", "kube-vip", "-f", c.Config(), "--known-hosts", c.KnownHosts, "--yes")
	after := c.certificates()
	for _, h := range masters {
		name := h.Name + " /etc/kubernetes/pki/kube-vip/kube-vip.crt"
		if before[name].IsZero() || !after[name].After(before[name]) {
			t.Errorf("%s ended %s, and ends %s", name, before[name], after[name])
		}
	}
}
