// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package pipeline_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestHooksOnHost makes a host a member of etcd, with hooks that look for etcd: before the task there is none, after it etcd
// answers. One fails at first, for a reason of the user's and for one of time, and the next run begins there.
func TestHooksOnHost(t *testing.T) {
	b, err := artifact.Open(t.Context(), cmp.Or(os.Getenv("KUBEXM_BUNDLE"), filepath.Join("..", "..", "build", "bundle")), nil)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := pki.NewCA(pki.CARequest{CommonName: "etcd", Key: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("hooks-%d", os.Getpid()), Count: 1})
	h := pool.Hosts[0]
	e := engine.New(engine.Options{
		Dial: func(ctx context.Context, _ string) (host.Host, error) {
			return ssh.Dial(ctx, lab.SSH(h))
		},
		Secrets: func(ref step.SecretRef) ([]byte, error) {
			if ref.Key == "tls.key" {
				return ca.Key.Reveal(), nil
			}
			return ca.Cert, nil
		},
		Artifacts: step.FromBundle(b), Holder: "hooks",
	})
	facts, err := e.Look(ctx, []string{h.Name}, func(string) host.Query { return host.Query{} })
	if err != nil {
		t.Fatal(err)
	}

	const health = "cd /etc/kubexm/etcd/ssl && etcdctl --cacert=ca.pem --cert=admin-$(hostname).pem --key=admin-$(hostname)-key.pem endpoint health"
	hooks := []spec.Hook{
		{Name: "early", Task: "etcd", When: spec.HookBefore, Commands: []string{"! systemctl is-active etcd", "date +%s.%N >>/root/early"}},
		{Name: "late", Task: "etcd", When: spec.HookAfter, Commands: []string{health, "date +%s.%N >>/root/late; cat /root/go"}},
	}
	var limits []spec.Limit
	run := func() (engine.Report, error) {
		t.Helper()
		target := spec.Target{
			ClusterName: "prod", KubernetesVersion: b.Version("kubernetes"), Host: spec.Host{Name: h.Name, Role: spec.RoleEtcd, Address: h.Address},
		}
		target.Cluster.Etcd = spec.Etcd{Type: spec.EtcdKubexm, Hosts: spec.Hosts{Names: []string{h.Name}}}
		target.Cluster.ControlPlaneEndpoint.Address = h.Address
		target.Cluster.Hooks, target.Cluster.Limits = hooks, limits
		p, err := pipeline.EtcdMember(pipeline.Node{Target: target, System: facts[h.Name].System}, b)
		if err != nil {
			t.Fatal(err)
		}
		return e.Run(t.Context(), p)
	}
	refused := func(want string) {
		t.Helper()
		_, err := run()
		var failed *engine.Error
		if !errors.As(err, &failed) || len(failed.Failures) != 1 ||
			failed.Failures[0].Step != "hook/late" || !strings.Contains(fmt.Sprintf("%+v", failed), want) {
			t.Fatalf("got %+v, want %s of the step hook/late", err, want)
		}
	}
	converged := func(changed int) {
		t.Helper()
		report, err := run()
		if err != nil {
			t.Fatalf("%+v", err)
		}
		if changed >= 0 && report.Total().Changed != changed {
			t.Errorf("%d steps were changed, want %d", report.Total().Changed, changed)
		}
	}
	lines := func(name string) int {
		t.Helper()
		out, err := h.Exec(t.Context(), "cat", "/root/"+name)
		if err != nil {
			t.Fatal(err)
		}
		return len(strings.Fields(out))
	}

	refused("/root/go: No such file or directory")
	if _, err := h.Exec(t.Context(), "mkfifo", "/root/go"); err != nil {
		t.Fatal(err)
	}
	limits = []spec.Limit{{Step: "hook/late", TimeoutSeconds: 2}}
	refused("took longer than its timeout") // nobody writes to it
	limits = []spec.Limit{{Step: "hook/late", TimeoutSeconds: 60}}
	if _, err := h.Exec(t.Context(), "sh", "-c", "rm /root/go && touch /root/go"); err != nil {
		t.Fatal(err)
	}
	converged(-1)
	converged(0)
	if early, late := lines("early"), lines("late"); early != 1 || late != 3 {
		t.Errorf("the hook before was run %d times and the one after %d times, want 1 and 3", early, late)
	}
	hooks[1].Commands = []string{health, "date +%s.%N >>/root/late"}
	converged(1)
	if late := lines("late"); late != 4 {
		t.Errorf("changed, the hook was run %d times in all, want 4", late)
	}
}
