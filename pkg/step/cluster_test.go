// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/secret"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// cluster is an API in memory: what is not ready says why, and what is applied is there.
type cluster struct {
	missing  map[string]string // "api", "node n", "workload kind/namespace/name" → why not
	objects  []string
	held     []string // Nodes in maintenance
	labels   map[string]map[string]string
	releases map[string]step.HelmRelease
}

func (c *cluster) ready(what string) error {
	if why, ok := c.missing[what]; ok {
		return errors.New(why)
	}
	return nil
}

func (c *cluster) Healthy(context.Context) error                  { return c.ready("api") }
func (c *cluster) NodeReady(_ context.Context, name string) error { return c.ready("node " + name) }
func (c *cluster) NetworkReady(_ context.Context, namespace, daemonSet, node string) error {
	return c.ready("network " + namespace + "/" + daemonSet + "/" + node)
}

func (c *cluster) NodeRegistered(_ context.Context, name, version string) error {
	return c.NodeVersion(context.Background(), name, version)
}

func (c *cluster) NodeVersion(_ context.Context, name, version string) error {
	return c.ready("node " + name + " of " + version)
}

func (c *cluster) DrainNode(_ context.Context, name string) error {
	c.held = append(c.held, name)
	return c.ready("drain " + name)
}

func (c *cluster) TakeTurn(_ context.Context, _ string, want, _ step.Turn) (step.Turn, error) {
	return want, nil
}

func (c *cluster) HasTurn(context.Context, string, string) (bool, error) { return false, nil }

func (c *cluster) EndTurn(context.Context, string, string) error { return nil }

func (c *cluster) NodeInMaintenance(_ context.Context, name string) (bool, error) {
	return slices.Contains(c.held, name), c.ready("node " + name)
}

func (c *cluster) EndMaintenance(_ context.Context, name string, daemonSets []string) error {
	for _, ds := range daemonSets {
		if why, ok := c.missing["daemon set "+ds]; ok {
			return &step.NotYet{Reason: why}
		}
	}
	c.held = slices.DeleteFunc(c.held, func(n string) bool { return n == name })
	return nil
}

func (c *cluster) NodeMetadataDiffers(_ context.Context, name string, labels map[string]string, taints []corev1.Taint) (step.Diff, error) {
	if maps.Equal(c.labels[name], labels) {
		return nil, nil
	}
	return step.Diff{{Subject: "labels of " + name, From: "others", To: "as declared"}}, c.ready("node " + name)
}

func (c *cluster) SetNodeMetadata(_ context.Context, name string, labels map[string]string, _ []corev1.Taint) error {
	c.labels[name] = labels
	return c.ready("node " + name)
}

func (c *cluster) Differs(_ context.Context, manifest []byte) ([]string, error) {
	if slices.Contains(c.objects, string(manifest)) {
		return nil, nil
	}
	return []string{"ConfigMap a/b"}, nil
}

func (c *cluster) Apply(_ context.Context, manifest []byte) error {
	c.objects = append(c.objects, string(manifest))
	return nil
}

func (c *cluster) Token(_ context.Context, ttl time.Duration) (secret.Value, error) {
	return secret.New([]byte("token for " + ttl.String())), nil
}

func (c *cluster) ReleaseDiffers(_ context.Context, r step.HelmRelease) (string, error) {
	have, ok := c.releases[r.Namespace+"/"+r.Name]
	switch {
	case !ok:
		return "not installed", nil
	case string(have.Chart) != string(r.Chart) || string(have.Values) != string(r.Values):
		return "other values", nil
	}
	return "", nil
}

func (c *cluster) DeploymentRolledOut(_ context.Context, namespace, name string) error {
	return c.ready("rollout " + namespace + "/" + name)
}

func (c *cluster) AddonsBeside(_ context.Context, keep []string) ([]string, error) {
	var beside []string
	for _, name := range slices.Sorted(maps.Keys(c.releases)) {
		if c.releases[name].Addon && !slices.Contains(keep, name) {
			beside = append(beside, name)
		}
	}
	return beside, nil
}

func (c *cluster) UninstallAddons(_ context.Context, keep []string) error {
	maps.DeleteFunc(c.releases, func(name string, r step.HelmRelease) bool { return r.Addon && !slices.Contains(keep, name) })
	return nil
}

func (c *cluster) InstallRelease(_ context.Context, r step.HelmRelease) error {
	c.releases[r.Namespace+"/"+r.Name] = r
	return nil
}

// runtime is what one attempt may use; its outputs go to made.
func runtime(c *cluster, made map[string]string) *step.Runtime {
	return &step.Runtime{
		View: step.View{Values: values{}}, Cluster: c, Artifacts: contents{sha("chart"): "chart"},
		Make: func(name string, value []byte) { made[name] = string(value) },
	}
}

func TestAwait(t *testing.T) {
	for _, tt := range []struct {
		step step.Await
		what string
	}{
		{step.Await{For: "api", Output: "done"}, "api"},
		{step.Await{For: "node", Name: "n1", Output: "done"}, "node n1"},
		{step.Await{For: "network", Name: "kube-flannel/kube-flannel-ds/n1", Output: "done"}, "network kube-flannel/kube-flannel-ds/n1"},
		{step.Await{For: "rollout", Name: "kube-system/metrics-server", Output: "done"}, "rollout kube-system/metrics-server"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			c, made := &cluster{missing: map[string]string{tt.what: "it is starting"}}, map[string]string{}
			rt := runtime(c, made)
			d, err := tt.step.Probe(t.Context(), rt)
			if err != nil || len(d) != 1 || d[0].Subject != tt.what || d[0].From != "it is starting" {
				t.Errorf("%v, %v", d, err)
			}
			var notYet *step.NotYet
			if err := tt.step.Run(t.Context(), rt); !errors.As(err, &notYet) || notYet.Reason != tt.what+": it is starting" {
				t.Errorf("it says %v, not that it is not yet so", err)
			}
			if len(made) > 0 {
				t.Errorf("it has made %v", made)
			}
			clear(c.missing)
			if err := tt.step.Run(t.Context(), rt); err != nil {
				t.Error(err)
			}
			if _, ok := made["done"]; !ok {
				t.Error("it has not made its output")
			}
		})
	}
	if err := (step.Await{For: "rain"}).Run(t.Context(), runtime(&cluster{}, nil)); err == nil || !strings.Contains(err.Error(), `"rain"`) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (step.Await{For: "api"}).Run(ctx,
		runtime(&cluster{missing: map[string]string{"api": "x"}}, nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled, it says %v", err)
	}
}

func TestToken(t *testing.T) {
	s, made := step.Token{Output: graph.Output[string]{Name: "token"}, TTL: step.Duration(time.Hour)}, map[string]string{}
	rt := runtime(&cluster{}, made)
	if d, err := s.Probe(t.Context(), rt); err != nil || len(d) != 1 || len(made) > 0 {
		t.Errorf("looking found %v, %v and made %v", d, err, made)
	}
	if err := s.Run(t.Context(), rt); err != nil || made["token"] != "token for 1h0m0s" {
		t.Errorf("%v, %v", made, err)
	}
}

func TestApply(t *testing.T) {
	s := step.New(step.Meta{Name: "a"},
		step.Apply{Title: "one", Manifest: step.Literal("one")},
		step.Apply{Title: "two", Manifest: step.Secret("app", "password")},
	)
	c := &cluster{objects: []string{"one"}}
	rt := runtime(c, nil)
	if d, err := s.Probe(t.Context(), rt); err != nil || len(d) != 1 || d[0].Subject != "ConfigMap a/b" {
		t.Errorf("%v, %v", d, err)
	}
	if err := s.Run(t.Context(), rt); err != nil {
		t.Error(err)
	}
	if want := []string{"one", "hunter2"}; !slices.Equal(c.objects, want) {
		t.Errorf("%q was applied, want %q, each once", c.objects, want)
	}
	if d, err := s.Probe(t.Context(), rt); err != nil || len(d) != 0 {
		t.Errorf("afterwards: %v, %v", d, err)
	}
}

func TestRelease(t *testing.T) {
	s := step.Release{
		Name: "flannel", Namespace: "kube-flannel", Chart: step.Artifact{Path: "helm/flannel.tgz", Digest: sha("chart")}, Values: step.Literal("a: 1\n"),
	}
	c := &cluster{releases: map[string]step.HelmRelease{}}
	rt := runtime(c, nil)
	d, err := s.Probe(t.Context(), rt)
	if err != nil || len(d) != 1 || d[0] != (step.Delta{Subject: "helm release kube-flannel/flannel", From: "not installed", To: "deployed"}) {
		t.Errorf("%v, %v", d, err)
	}
	if err := s.Run(t.Context(), rt); err != nil {
		t.Fatal(err)
	}
	if got := c.releases["kube-flannel/flannel"]; string(got.Chart) != "chart" || string(got.Values) != "a: 1\n" {
		t.Errorf("installed %+v", got)
	}
	if d, err := s.Probe(t.Context(), rt); err != nil || len(d) != 0 {
		t.Errorf("afterwards: %v, %v", d, err)
	}
	s.Chart.Digest = sha("another")
	if _, err := s.Probe(t.Context(), rt); err == nil || !strings.Contains(err.Error(), "chart helm/flannel.tgz") {
		t.Errorf("%v", err)
	}
}

// TestPruneAddons: what is no longer wanted is uninstalled once, and what others have installed stays.
func TestPruneAddons(t *testing.T) {
	c := &cluster{releases: map[string]step.HelmRelease{
		"kube-system/metrics-server": {Addon: true}, "default/old": {Addon: true}, "default/theirs": {},
	}}
	rt := runtime(c, nil)
	s := step.PruneAddons{Keep: []string{"kube-system/metrics-server"}}
	d, err := s.Probe(t.Context(), rt)
	if err != nil || len(d) != 1 || d[0] != (step.Delta{Subject: "helm release default/old", From: "installed", To: "absent"}) {
		t.Errorf("%v, %v", d, err)
	}
	if err := s.Run(t.Context(), rt); err != nil {
		t.Fatal(err)
	}
	if d, err := s.Probe(t.Context(), rt); err != nil || len(d) != 0 {
		t.Errorf("afterwards: %v, %v", d, err)
	}
	if left := slices.Sorted(maps.Keys(c.releases)); !slices.Equal(left, []string{"default/theirs", "kube-system/metrics-server"}) {
		t.Errorf("there are %v", left)
	}
}

// TestReleaseOfManifest: objects are what the release is made of, and no chart is opened.
func TestReleaseOfManifest(t *testing.T) {
	c := &cluster{releases: map[string]step.HelmRelease{}}
	s := step.Release{Name: "own", Namespace: "default", Manifest: step.Literal("kind: ConfigMap\n"), Addon: true}
	if err := s.Run(t.Context(), runtime(c, nil)); err != nil {
		t.Fatal(err)
	}
	if got := c.releases["default/own"]; string(got.Manifest) != "kind: ConfigMap\n" || !got.Addon || got.Chart != nil {
		t.Errorf("installed %+v", got)
	}
}

// What is declared for a Node is set once, and then is so.
func TestNodeMetadata(t *testing.T) {
	c := &cluster{labels: map[string]map[string]string{}}
	s := step.NodeMetadata{Node: "n1", Labels: map[string]string{"disk": "ssd"}}
	rt := runtime(c, map[string]string{})
	if d, err := s.Probe(t.Context(), rt); err != nil || len(d) != 1 {
		t.Fatalf("before: %v, %v", d, err)
	}
	if err := s.Run(t.Context(), rt); err != nil {
		t.Fatal(err)
	}
	if d, err := s.Probe(t.Context(), rt); err != nil || len(d) != 0 {
		t.Fatalf("after: %v, %v", d, err)
	}
}
