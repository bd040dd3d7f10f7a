// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build faults

package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
)

// settleTime is how long hosts may take to come to rest: pods to start, processes and control groups to end.
const settleTime = 90 * time.Second

// trial is one test's cluster and its hosts, from a snapshot before to one after.
type trial struct {
	*testing.T
	cluster *cluster
	hosts   []*hosts.Host
	before  []hosts.Snapshot
}

// newTrial begins a test, and sees to it that the next one finds hosts that were reset, and that anyone who sees it
// fail can repeat it.
func newTrial(t *testing.T) *trial {
	t.Helper()
	return newTrialOf(t, subject)
}

// newTrialOf is newTrial with another cluster than the one that most tests make.
func newTrialOf(t *testing.T, c *cluster) *trial {
	t.Helper()
	tr := &trial{T: t, cluster: c, hosts: pool.Hosts[:len(c.hosts)]}
	began := time.Now()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("to repeat: FAULTS_SEED=%d go test -tags faults -count=1 -timeout 60m -run '%s' ./test/faults/", chosen.seed, pattern(t.Name()))
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			if _, err := c.reset(ctx, nil); err != nil {
				t.Errorf("the hosts are not as before for the tests that follow: %v", err)
			}
		}
		t.Logf("took %s", time.Since(began).Round(time.Second))
	})
	for _, h := range tr.hosts {
		s, err := h.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tr.before = append(tr.before, s)
	}
	return tr
}

// pattern selects one test by its name.
func pattern(name string) string { return "^" + strings.ReplaceAll(name, "/", "$/^") + "$" }

// plan plans the creation of the first hosts.
func (tr *trial) plan(count int) *plan.Plan {
	tr.Helper()
	p, err := tr.cluster.plan(tr.Context(), count)
	if err != nil {
		tr.Fatal(err)
	}
	return p
}

// demandConverged fails the test unless all is as the plan says, with nothing half made beside it.
func (tr *trial) demandConverged(p *plan.Plan) {
	tr.Helper()
	e := engine.New(tr.cluster.options(nil))
	seen, err := e.Check(tr.Context(), p)
	if err != nil {
		tr.Fatalf("check: %v", err)
	}
	for _, c := range seen.Checks {
		tr.Errorf("not so: %s: %v %s", c.Node, c.Diff, c.Unknown)
	}
	again, err := e.Run(tr.Context(), p)
	if err != nil {
		tr.Fatalf("a further run: %v", err)
	}
	if !again.Converged() {
		tr.Errorf("a further run changed %d steps of %d", again.Total().Changed, again.Total().Total)
	}
	for _, h := range tr.hosts {
		tr.demandTidy(h)
	}
	tr.demandCluster(tr.cluster.becomeNodes(p.Hosts))
}

// leftOvers prints what an act that was cut may leave behind and the next must take away.
const leftOvers = `find /etc /usr /opt /var/lib -xdev -name '.*.kubexm' 2>/dev/null
find /var/lib/kubexm/staging /var/lib/kubexm/undo -name '*.part' 2>/dev/null
find /var/lib/kubexm/staging -type f 2>/dev/null
true`

func (tr *trial) demandTidy(h *hosts.Host) {
	tr.Helper()
	out, err := h.Exec(tr.Context(), "sh", "-c", leftOvers)
	if err != nil {
		tr.Fatal(err)
	}
	if out != "" {
		tr.Errorf("host %s has left-overs:\n%s", h.Name, out)
	}
}

// demandCluster fails the test unless these Nodes, and no others, are Ready, and what runs in the cluster is.
func (tr *trial) demandCluster(names []string) {
	tr.Helper()
	api, err := tr.cluster.api()
	if err != nil {
		tr.Fatal(err)
	}
	nodes, err := api.Nodes(tr.Context())
	if err != nil {
		tr.Fatal(err)
	}
	if len(nodes) != len(names) {
		tr.Errorf("there are %d Nodes, not %d", len(nodes), len(names))
	}
	for _, name := range names {
		tr.eventually(func() error { return api.NodeReady(tr.Context(), name) })
	}
	for _, w := range []struct{ kind, namespace, name string }{
		{"DaemonSet", "kube-flannel", "kube-flannel-ds"}, {"DaemonSet", "kube-system", "kube-proxy"}, {"Deployment", "kube-system", "coredns"},
	} {
		if w.name == "kube-proxy" && tr.cluster.isBinary() {
			continue // there it is a unit
		}
		tr.eventually(func() error { return api.WorkloadReady(tr.Context(), w.kind, w.namespace, w.name) })
	}
}

// demandReset fails the test unless every host equals its snapshot from before.
func (tr *trial) demandReset() {
	tr.Helper()
	for i := range tr.hosts {
		tr.demandAsBefore(i)
	}
}

// demandAsBefore fails the test unless the host with this index equals its snapshot from before.
func (tr *trial) demandAsBefore(i int) {
	tr.Helper()
	tr.eventually(func() error {
		now, err := tr.hosts[i].Snapshot(tr.Context())
		if err != nil {
			return err
		}
		if different := hosts.Diff(tr.before[i], now); len(different) > 0 {
			return fmt.Errorf("host %s is not as before:\n%s", tr.hosts[i].Name, strings.Join(different, "\n"))
		}
		return nil
	})
}

// reset gives the hosts back and demands that they are as before.
func (tr *trial) reset(reader event.Reader) {
	tr.Helper()
	if _, err := tr.cluster.reset(tr.Context(), reader); err != nil {
		tr.Fatalf("reset: %v", err)
	}
	tr.demandReset()
}

// eventually waits for an error to go away.
func (tr *trial) eventually(is func() error) {
	tr.Helper()
	end := time.NewTimer(settleTime)
	defer end.Stop()
	for {
		err := is()
		if err == nil {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-end.C:
			tr.Error(err)
			return
		case <-tr.Context().Done():
			tr.Fatal(err)
		}
	}
}

// errReached stops a run that has come to where a test wanted it.
var errReached = errors.New("came as far as the test wanted it to")

// runUntil runs p until a node is as it should be, and no further. The node is named without its host: the first host's it is.
func (tr *trial) runUntil(o engine.Options, p *plan.Plan, node string) {
	tr.Helper()
	tr.runUntilOn(tr.hosts[0], o, p, node)
}

// runUntilOn is runUntil with a node of any host.
func (tr *trial) runUntilOn(h *hosts.Host, o engine.Options, p *plan.Plan, node string) {
	tr.Helper()
	node = h.Name + "/" + node
	ctx, stop := context.WithCancelCause(tr.Context())
	defer stop(nil)
	told := o.Reader
	o.Reader = event.ReaderFunc(func(ev event.Event) {
		if told != nil {
			told.Read(ev)
		}
		if ev.Node == node && (ev.Type == event.Changed || ev.Type == event.Skipped) {
			stop(errReached)
		}
	})
	if _, err := engine.New(o).Run(ctx, p); !errors.Is(err, errReached) {
		tr.Fatalf("did not come to %s: %v", node, err)
	}
}
