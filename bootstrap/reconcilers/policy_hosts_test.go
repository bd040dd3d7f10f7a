// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build hosts

package reconcilers

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/hostrun"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/artifact"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/engine"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/event"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host/ssh"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pipeline"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/hosts"
	"github.com/mensylisir/cluster-api-provider-kubexm/test/lab"
)

// TestPoliciesOnHost: what a run has changed on a host when a step fails is left or restored as is declared, and what somebody changes
// there later is reported and left.
func TestPoliciesOnHost(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	pool := lab.Pool(t, hosts.Options{Name: fmt.Sprintf("policy-%d", os.Getpid()), Count: 1})
	h := pool.Hosts[0]
	// The first task succeeds; the second writes a file, and then fails if it is to.
	planner := func(fails bool) Planner {
		argv := []string{"/bin/true"}
		if fails {
			argv = []string{"/bin/false"}
		}
		file := func(name string) step.Step {
			return step.New(step.Meta{Name: "test/" + name}, step.File{Path: "/etc/kubexm-" + name, Mode: 0o644, Content: step.Literal(name + "\n")})
		}
		return func(pipeline.Node, *artifact.Bundle) (*plan.Plan, error) {
			b := plan.New("Test", "prod")
			b.Host(h.Name, plan.Module{Name: "m", Tasks: []plan.Task{
				{Name: "first", Steps: []step.Step{file("a")}},
				{Name: "second", Steps: []step.Step{file("b"), step.New(step.Meta{Name: "test/command"}, step.Command{
					Title: "succeed or fail", Argv: argv, Done: step.Done{Journaled: true, SameInput: true},
				})}},
			}})
			return b.Plan()
		}
	}
	silent := event.ReaderFunc(func(event.Event) {})
	s := &scope{config: &bootstrapv1.KubexmConfig{}, clusterConfig: &bootstrapv1.KubexmClusterConfig{}}
	jobOf := func(p Planner) *job {
		return &job{
			input: "a", planner: p, bundle: func(context.Context) (*artifact.Bundle, error) { return &artifact.Bundle{}, nil },
			target: spec.Target{
				ClusterName: "prod", KubernetesVersion: "v1.36.3", Host: spec.Host{Name: h.Name, Role: spec.RoleWorker, Address: h.Address},
			},
			remembered: &host.System{},
			options: engine.Options{
				Holder: "test", Reader: silent, Policy: s.failurePolicy(),
				Dial: func(ctx context.Context, _ string) (host.Host, error) {
					return ssh.Dial(ctx, lab.SSH(h))
				},
			},
		}
	}
	there := func() string {
		out, err := h.Exec(ctx, "sh", "-c", "cd /etc && cat kubexm-a kubexm-b 2>/dev/null; true")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out), " ")
	}
	for _, tc := range []struct {
		policy spec.FailurePolicy
		left   string
	}{
		{spec.FailureUndoRun, ""},
		{spec.FailureUndoTask, "a"},
		{"", "a b"},
	} {
		s.config.Spec.OnFailure = tc.policy
		if out := jobOf(planner(true)).converge(ctx, silent); out.err == nil {
			t.Fatalf("%q: the run did not fail", tc.policy)
		}
		if got := there(); got != tc.left {
			t.Errorf("%q: on the host is %q, want %q", tc.policy, got, tc.left)
		}
	}

	if out := jobOf(planner(false)).converge(ctx, silent); out.err != nil {
		t.Fatal(out.err)
	}
	if _, err := h.Exec(ctx, "sh", "-c", "echo changed >/etc/kubexm-a"); err != nil {
		t.Fatal(err)
	}
	out := jobOf(planner(false)).look(ctx, silent)
	if out.err != nil {
		t.Fatal(out.err)
	}
	if same, _, err := showDriftCheck(s.config, &hostrun.State[outcome]{What: looking, Result: out}, spec.DriftReport); err != nil || same {
		t.Fatalf("the host is as planned, it is said (%v)", err)
	}
	message := conditions.GetMessage(s.config, bootstrapv1.HostConvergedCondition)
	if !strings.Contains(message, "/m/first/test/a: file /etc/kubexm-a: found ") || strings.Contains(message, "test/b") {
		t.Errorf("it says %q", message)
	}
	if got := there(); got != "changed b" {
		t.Errorf("on the host is %q", got)
	}
}
