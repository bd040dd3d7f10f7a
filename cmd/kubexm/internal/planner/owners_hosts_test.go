// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package planner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gossh "golang.org/x/crypto/ssh"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/access"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/clusterdir"
	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/planner"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec/config"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// fleet is two real hosts with one host key, as clones of one image have it.
type fleet struct {
	*hosts.Pool

	pin string
}

func startClones(ctx context.Context, t *testing.T) *fleet {
	t.Helper()
	pool, err := hosts.Start(ctx, hosts.Options{Name: fmt.Sprintf("owners-%d", os.Getpid()), Count: 2, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	const key = "/etc/ssh/ssh_host_ed25519_key"
	private, err := pool.Hosts[0].Exec(ctx, "cat", key)
	if err != nil {
		t.Fatal(err)
	}
	copying := pool.Hosts[1].Command(ctx, "sh", "-c", "cat >"+key+" && ssh-keygen -y -f "+key+" >"+key+".pub && systemctl restart ssh")
	copying.Stdin = strings.NewReader(strings.TrimSpace(private) + "\n")
	if out, err := copying.CombinedOutput(); err != nil {
		t.Fatalf("give both hosts one key: %v: %s", err, out)
	}
	return &fleet{Pool: pool, pin: gossh.FingerprintSHA256(pool.Hosts[0].HostKey)}
}

// tools work for a cluster whose config says at which of the fleet's addresses its hosts are: addresses by the hosts' names.
func (f *fleet) tools(
	t *testing.T, dir clusterdir.Dir, addresses map[string]int, roles map[string]spec.Role, adopt map[string]string,
) planner.Tools {
	t.Helper()
	var declared []config.Host
	for name, at := range addresses {
		h := f.Hosts[at]
		declared = append(declared, config.Host{
			Name: name, Address: h.Address, Port: int32(h.Port), User: hosts.Ops, PrivateKeyPath: h.KeyPath, HostKey: f.pin,
		})
	}
	reached, err := access.New(declared, access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return planner.Tools{Hosts: reached, Owners: planner.Owners{Cluster: dir.Cluster, Authority: dir.Authority, Roles: roles, Adopt: adopt}}
}

// newState is the state of a cluster that has its authorities.
func newState(t *testing.T, name string) clusterdir.Dir {
	t.Helper()
	dir, err := clusterdir.Of(filepath.Join(t.TempDir(), "kubexm"), name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.EnsureAuthorities(pki.CARequest{}, false); err != nil {
		t.Fatal(err)
	}
	return dir
}

// marks plans a file of the cluster's on each of the hosts.
func marks(t *testing.T, cluster string, names ...string) *plan.Plan {
	t.Helper()
	b := plan.New("Mark", cluster)
	for _, name := range names {
		b.Host(name, plan.Module{Name: "os", Tasks: []plan.Task{{Name: "system", Steps: []step.Step{
			step.File{Path: "/etc/kubexm-mark", Mode: 0o644, Content: step.Literal(cluster + " " + name + "\n")},
		}}}})
	}
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// refused asserts that each host was refused because of its owner, and that the remedy is said.
func refused(t *testing.T, what string, err error, names ...string) {
	t.Helper()
	var failed *engine.Error
	if !errors.As(err, &failed) || len(failed.Failures) != len(names) {
		t.Fatalf("%s: %v", what, err)
	}
	for _, f := range failed.Failures {
		if host.KindOf(f.Err) != host.KindForeign || !strings.Contains(f.Remedy, "adopt") {
			t.Errorf("%s, host %s: %v (remedy %q)", what, f.Host, f.Err, f.Remedy)
		}
	}
}

// TestOwnersOfHosts: what a cluster has is not another's, and one of its hosts is not another one, whatever addresses and
// host keys say.
func TestOwnersOfHosts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	f := startClones(ctx, t)
	read := func(at int) string {
		t.Helper()
		out, err := f.Hosts[at].Exec(ctx, "sh", "-c", "cat /etc/kubexm-mark /var/lib/kubexm/owner /var/lib/kubexm/journal /var/lib/kubexm/undo.log 2>/dev/null; true")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	clean := make([]hosts.Snapshot, 2)
	for i, h := range f.Hosts {
		var err error
		if clean[i], err = h.Snapshot(ctx); err != nil {
			t.Fatal(err)
		}
	}
	roles := map[string]spec.Role{"cp-1": spec.RoleControlPlane, "lb-1": spec.RoleLoadBalancer}
	first, second := newState(t, "first"), newState(t, "second")
	mine := f.tools(t, first, map[string]int{"cp-1": 0, "lb-1": 1}, roles, nil)
	work := marks(t, "first", "cp-1", "lb-1")
	if r, err := mine.Engine().Run(ctx, work); err != nil || r.Total().Changed != 2 {
		t.Fatalf("%+v, %v", r.Total(), err)
	}
	before := []string{read(0), read(1)}
	if !strings.HasPrefix(before[0], "first cp-1\n") || !strings.Contains(before[0], `"cluster":"first"`) {
		t.Fatalf("the first host has %s", before[0])
	}
	same := func(what string) {
		t.Helper()
		for i := range f.Hosts {
			if after := read(i); after != before[i] {
				t.Errorf("%s changed host %d from\n%s to\n%s", what, i, before[i], after)
			}
		}
	}

	// A second cluster names a live host of the first.
	theirs := f.tools(t, second, map[string]int{"w-1": 0}, map[string]spec.Role{"w-1": spec.RoleWorker}, nil)
	r, err := theirs.Engine().Run(ctx, marks(t, "second", "w-1"))
	refused(t, "another cluster's run", err, "w-1")
	if r.Total().Changed != 0 {
		t.Errorf("another cluster's run made %d changes", r.Total().Changed)
	}
	worker := spec.Target{ClusterName: "second", Host: spec.Host{Name: "w-1", Role: spec.RoleWorker}}
	worker.Default()
	_, err = theirs.Observe(ctx, []spec.Target{worker})
	refused(t, "another cluster's preflight", err, "w-1")
	undo := engine.Undo{Intent: "ResetNode"}
	undo.Hosts = []string{"w-1"}
	_, err = theirs.Engine().Undo(ctx, undo)
	refused(t, "another cluster's delete", err, "w-1")
	same("the second cluster")

	// The hosts' addresses have moved, and their one host key does not tell.
	moved := f.tools(t, first, map[string]int{"cp-1": 1, "lb-1": 0}, roles, nil)
	_, err = moved.Engine().Run(ctx, work)
	refused(t, "a run after the addresses moved", err, "cp-1", "lb-1")
	undo.Hosts = []string{"lb-1"}
	_, err = moved.Engine().Undo(ctx, undo)
	refused(t, "the reset of the load balancer, at the control plane's address", err, "lb-1")
	undo.Hosts = []string{"cp-1", "lb-1"}
	_, err = moved.Engine().Undo(ctx, undo)
	refused(t, "a delete after the addresses moved", err, "cp-1", "lb-1")
	same("a run and a delete after the addresses moved")

	// What the owner is asked costs nothing.
	if r, err := mine.Engine().Run(ctx, work); err != nil || r.Hosts[0].Exchanges != 1 || !r.Converged() {
		t.Errorf("a converged host: %d exchanges, %+v, %v", r.Hosts[0].Exchanges, r.Total(), err)
	}

	// By its owner's name a host is taken over, and reset to what it was before the first cluster.
	adopting := f.tools(t, second, map[string]int{"w-1": 0}, map[string]spec.Role{"w-1": spec.RoleWorker}, map[string]string{"w-1": "first"})
	if r, err := adopting.Engine().Run(ctx, marks(t, "second", "w-1")); err != nil || r.Hosts[0].Adopted == nil {
		t.Errorf("the adoption: %v", err)
	}
	undo.Hosts = []string{"cp-1"}
	_, err = mine.Engine().Undo(ctx, undo)
	refused(t, "the former owner's reset", err, "cp-1")
	undo.Hosts = []string{"w-1"}
	if _, err := theirs.Engine().Undo(ctx, undo); err != nil {
		t.Error(err)
	}
	undo.Hosts = []string{"lb-1"}
	if _, err := mine.Engine().Undo(ctx, undo); err != nil {
		t.Error(err)
	}
	for i, h := range f.Hosts {
		after, err := h.Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := hosts.Diff(clean[i], after); len(diff) > 0 {
			t.Errorf("host %d differs after the resets:\n%s", i, strings.Join(diff, "\n"))
		}
	}
}
