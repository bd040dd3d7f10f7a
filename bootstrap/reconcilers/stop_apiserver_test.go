// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"strings"
	"testing"
	"time"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// TestWithdraw ends the API server by what the cluster has it run as.
func TestWithdraw(t *testing.T) {
	for way, doing := range map[spec.KubernetesType]string{
		spec.KubernetesKubeadm: "rm -f \"$dir/manifests/kube-apiserver.yaml\"",
		spec.KubernetesKubexm:  "systemctl stop kube-apiserver.service",
	} {
		t.Run(string(way), func(t *testing.T) {
			m := fake.New("cp1")
			var ran []string
			m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
				line := strings.Join(c.Argv, " ")
				if (strings.Contains(line, `answers still"`) || strings.Contains(line, `"$1 runs"`)) && len(ran) == 0 {
					return host.Result{ExitCode: 1} // the check, before it has run
				}
				if strings.Contains(line, doing) {
					ran = append(ran, line)
				}
				return host.Result{}
			}
			target := spec.Target{
				ClusterName: "prod", KubernetesVersion: "v1.36.3",
				Host: spec.Host{Name: "cp1", Role: spec.RoleControlPlane, Address: "10.1.0.1"},
			}
			target.Cluster.Kubernetes.Type = way
			target.Default()
			out := withdraw(t.Context(), time.Minute, engine.Options{
				Dial:   func(context.Context, string) (host.Host, error) { return m.Connect(), nil },
				Holder: "test", Reader: event.ReaderFunc(func(event.Event) {}),
			}, target)
			if out.err != nil {
				t.Fatal(out.err)
			}
			if len(ran) != 1 {
				t.Errorf("it ran %q", ran)
			}
		})
	}
}

// TestHostsThatAreAwayKeepNobodyWaiting for as long as those that may answer do.
func TestHostsThatAreAwayKeepNobodyWaiting(t *testing.T) {
	c := &bootstrapv1.KubexmConfig{}
	if limit := limitOf(c); limit != 2*time.Minute {
		t.Errorf("a host of which nothing is known has %s", limit)
	}
	setFalse(c, bootstrapv1.HostReachableCondition, bootstrapv1.UnreachableReason, "")
	if limit := limitOf(c); limit != 20*time.Second {
		t.Errorf("a host that did not answer has %s", limit)
	}
}

// TestWithdrawIsGivenUp where the host takes too long: others wait for its etcd member to go.
func TestWithdrawIsGivenUp(t *testing.T) {
	target := spec.Target{
		ClusterName: "prod", KubernetesVersion: "v1.36.3",
		Host: spec.Host{Name: "cp1", Role: spec.RoleControlPlane, Address: "10.1.0.1"},
	}
	target.Default()
	out := withdraw(t.Context(), 10*time.Millisecond, engine.Options{
		Dial:   func(ctx context.Context, _ string) (host.Host, error) { <-ctx.Done(); return nil, ctx.Err() },
		Holder: "test", Reader: event.ReaderFunc(func(event.Event) {}),
	}, target)
	const want = "host cp1: its API server did not stop within 10ms: WithdrawAPIServer of prod was interrupted (context deadline exceeded)"
	if out.err == nil || !strings.HasPrefix(out.err.Error(), want) || interrupted(out.err) {
		t.Errorf("it says %v", out.err)
	}
}
