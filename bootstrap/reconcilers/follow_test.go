// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/fake"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// TestHostsKeepUpWhileTheyWait: while a flag of an API server waits for somebody's approval, a control plane host leaves. A host that
// stays removes its etcd member and takes it out of its load balancer, and leaves the API server alone.
func TestHostsKeepUpWhileTheyWait(t *testing.T) {
	m := fake.New("cp1")
	m.System.Addresses, m.System.HostnameAddresses = []string{"10.1.0.1/24"}, []string{"10.1.0.1"}
	members := "cp1 cp2"
	m.OnCommand = func(_ *fake.Machine, c host.Command) host.Result {
		switch line := strings.Join(c.Argv, " "); {
		case strings.HasPrefix(line, "list"):
			if members != "cp1" {
				return host.Result{ExitCode: 1}
			}
		case strings.HasPrefix(line, "remove"):
			members = "cp1"
		}
		return host.Result{}
	}
	content := func(path string) string {
		connection := m.Connect()
		defer connection.Close()
		facts, err := connection.Observe(t.Context(), host.Query{Paths: []host.PathQuery{{Path: path, Content: true}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(facts.Paths[path].Content)
	}
	file := func(about step.Meta, path, text string) step.Step {
		return step.New(about, step.File{Path: path, Mode: 0o644, Content: step.Literal(text)})
	}
	// planner is what the pipeline is: what the host must be with a flag and with servers of the load balancer.
	planner := func(flag, servers string) Planner {
		return func(pipeline.Node, *artifact.Bundle) (*plan.Plan, error) {
			b := plan.New("CreateControlPlane", "prod")
			b.Host("cp1", plan.Module{Name: "m", Tasks: []plan.Task{{Name: "t", Steps: []step.Step{
				file(step.Meta{Name: "kubernetes/apiserver", Disrupts: "restarts kube-apiserver"}, "/etc/apiserver", flag),
				file(step.Meta{Name: "haproxy/config", Disrupts: "reloads haproxy", Follows: step.FollowsAlways}, "/etc/haproxy", servers),
				step.New(step.Meta{Name: "etcd/members", Follows: step.FollowsUnlessDisruptive}, step.Command{
					Title: "remove members", Argv: []string{"remove"}, Done: step.Done{Check: []string{"list"}},
				}),
			}}}})
			return b.Plan()
		}
	}
	jobOf := func(p Planner) *job {
		return &job{
			input: "a", planner: p, bundle: func(context.Context) (*artifact.Bundle, error) { return &artifact.Bundle{}, nil },
			target: spec.Target{
				ClusterName: "prod", KubernetesVersion: "v1.36.3", Host: spec.Host{Name: "cp1", Role: spec.RoleControlPlane, Address: "10.1.0.1"},
			},
			remembered: &m.System,
			options: engine.Options{
				Dial:   func(context.Context, string) (host.Host, error) { return m.Connect(), nil },
				Holder: "test", Reader: event.ReaderFunc(func(event.Event) {}),
			},
		}
	}
	silent := event.ReaderFunc(func(event.Event) {})
	members = "cp1"
	if out := jobOf(planner("old", "cp1 cp2")).converge(t.Context(), silent); out.err != nil {
		t.Fatal(out.err)
	}
	members = "cp1 cp2" // whose second is to leave now

	j := jobOf(planner("new", "cp1"))
	found := j.look(t.Context(), silent)
	if found.err != nil {
		t.Fatal(found.err)
	}
	w := weigh(&found, time.Now())
	if !w.follows || len(w.acts) != 1 || w.acts[0].Step != "kubernetes/apiserver" {
		t.Fatalf("what waits is %+v", w)
	}
	out := j.follow(t.Context(), silent)
	if out.err != nil {
		t.Fatal(out.err)
	}
	if got := content("/etc/haproxy"); got != "cp1" {
		t.Errorf("the load balancer has %q", got)
	}
	if members != "cp1" {
		t.Errorf("etcd has %q", members)
	}
	if got := content("/etc/apiserver"); got != "old" {
		t.Errorf("the API server has the flag %q, which nobody has approved", got)
	}

	again := j.look(t.Context(), silent)
	if again.err != nil {
		t.Fatal(again.err)
	}
	if w := weigh(&again, time.Now()); w.follows || len(w.acts) != 1 {
		t.Errorf("afterwards, what waits is %+v", w)
	}
}
