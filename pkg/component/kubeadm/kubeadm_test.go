// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeadm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/containerd"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component/kubeadm"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/kubelet"
)

// values knows every secret and output.
type values struct{}

func (values) Secret(step.SecretRef) ([]byte, error) { return []byte("secret"), nil }
func (values) Output(string) ([]byte, error)         { return []byte("abcdef.0123456789abcdef"), nil }

// commands are the titles of the commands that s runs, given the paths that exist and whether it was finished; nil when
// nothing differs.
func commands(t *testing.T, s step.Step, finished bool, paths ...string) []string {
	t.Helper()
	f := &host.Facts{Paths: map[string]host.Path{}, Journal: map[string]host.JournalEntry{}}
	for _, p := range paths {
		f.Paths[p] = host.Path{Exists: true}
	}
	if finished {
		f.Journal["node"] = host.JournalEntry{Digest: "other input"}
	}
	v := step.View{Facts: f, Values: values{}, Node: "node", Digest: "input"}
	d, err := s.Precheck(v)
	if err != nil {
		t.Fatal(err)
	}
	if len(d) == 0 {
		return nil
	}
	e, err := s.(step.Actor).Effect(v)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for _, c := range e.Changes {
		// That it is recorded what kubeadm has made belongs to whatever runs.
		if c, ok := c.(host.Command); ok && c.Title != "record what kubeadm has made" {
			all = append(all, c.Title)
		}
	}
	return all
}

func target(role spec.Role) *spec.Target {
	t := &spec.Target{ClusterName: "prod", KubernetesVersion: "v1.36.3", Host: spec.Host{Name: "n1", Role: role, Address: "10.0.0.1"}}
	t.Cluster.ControlPlaneEndpoint.Address = "10.0.0.1"
	t.Default()
	return t
}

func TestJoinIsCut(t *testing.T) {
	target := target(spec.RoleWorker)
	join := kubeadm.Join(kubeadm.Cluster{Name: "prod", Spec: target.Cluster}, kubelet.NodeOf(target, containerd.Runtime{}.Endpoint(), ""),
		graph.Output[string]{Name: "token"}, graph.Output[string]{Name: "joined"})
	const conf, cert = "/etc/kubernetes/kubelet.conf", "/var/lib/kubelet/pki/kubelet-client-current.pem"
	const bootstrap = "/etc/kubernetes/bootstrap-kubelet.conf"
	for _, tt := range []struct {
		name     string
		finished bool
		paths    []string
		want     []string
	}{
		{"nothing is there", false, nil, []string{"kubeadm join"}},
		{"cut before the kubelet had its certificate", false, []string{bootstrap, conf}, []string{"kubeadm join"}},
		{"cut after that: kubeadm would refuse, for the Node is Ready", false, []string{bootstrap, conf, cert}, []string{}},
		{"finished", true, []string{conf, cert}, nil},
		{"finished, and its certificate was removed", true, []string{conf}, []string{"kubeadm join"}},
	} {
		if got := commands(t, join, tt.finished, tt.paths...); !slices.Equal(got, tt.want) || (got == nil) != (tt.want == nil) {
			t.Errorf("%s: runs %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestInitIsCut(t *testing.T) {
	target := target(spec.RoleControlPlane)
	c, n, done := kubeadm.Cluster{Name: "prod", Spec: target.Cluster}, kubelet.NodeOf(target, containerd.Runtime{}.Endpoint(), ""),
		graph.Output[string]{Name: "done"}
	begin, join := kubeadm.Init(c, n, done), kubeadm.JoinControlPlane(c, n, graph.Output[string]{Name: "token"}, done)
	if begin.Meta().Name != join.Meta().Name {
		t.Errorf("%s and %s: once it is through, nobody is to know which it was", begin.Meta().Name, join.Meta().Name)
	}
	const conf, admin = "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/admin.conf"
	for _, tt := range []struct {
		name     string
		step     step.Step
		finished bool
		paths    []string
		want     []string
	}{
		{"nothing is there", begin, false, nil, []string{"kubeadm init"}},
		{"cut on the way", begin, false, []string{conf, admin}, []string{"kubeadm init"}},
		{"finished, with another configuration", begin, true, []string{conf, admin}, nil},
		{"finished, and somebody keeps admin.conf elsewhere", begin, true, []string{conf}, nil},
		{"finished, and the host was wiped", begin, true, nil, []string{"kubeadm init"}},
		{"joining, nothing is there", join, false, nil, []string{"kubeadm join"}},
		{"joining, cut on the way", join, false, []string{conf, admin}, []string{"kubeadm join"}},
		{"joined", join, true, []string{conf}, nil},
	} {
		if got := commands(t, tt.step, tt.finished, tt.paths...); !slices.Equal(got, tt.want) || (got == nil) != (tt.want == nil) {
			t.Errorf("%s: runs %q, want %q", tt.name, got, tt.want)
		}
	}
}

// What a command prints stands in errors and events, and what it is called with in the list of processes.
func TestNoTokenIsPrinted(t *testing.T) {
	target := target(spec.RoleControlPlane)
	c, n := kubeadm.Cluster{Name: "prod", Spec: target.Cluster}, kubelet.NodeOf(target, containerd.Runtime{}.Endpoint(), "")
	token := graph.Output[string]{Name: "token"}
	raw, err := step.Marshal(kubeadm.Init(c, n, token))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), `"--skip-token-print"`) || !strings.Contains(string(raw), "show-join-command") {
		t.Errorf("kubeadm init prints its token: %s", raw)
	}
	for _, p := range kubeadm.Join(c, n, token, token).(step.Sequence).Parts {
		if c, ok := p.(step.Command); ok && strings.Contains(strings.Join(c.Argv, " "), "token") {
			t.Errorf("%q", c.Argv)
		}
	}
}
