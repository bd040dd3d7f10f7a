// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
)

// Prober is a step on the controller: what it compares is not on a host, so it looks for itself.
type Prober interface {
	Step
	// Probe looks and says what differs. It changes nothing.
	Probe(ctx context.Context, rt *Runtime) (Diff, error)
}

// NotYet is what the Run of a gate, or of a step that waits for its host, returns while its condition does not hold: the engine tells
// of it and asks again until the step's timeout.
type NotYet struct{ Reason string }

// Error returns the reason.
func (n *NotYet) Error() string { return n.Reason }

// onController is what all steps on the controller share.
type onController struct{}

func (onController) Observe() host.Query                      { return host.Query{} }
func (onController) Rollback(context.Context, *Runtime) error { return nil }

// Precheck cannot decide without looking; Probe does.
func (onController) Precheck(View) (Diff, error) { return nil, ErrUnknown }

// Await is a gate: it waits until something holds of the cluster, and makes Output when it does, so that others can come
// after it.
type Await struct {
	onController
	// For is "api", "node", "version", "registered", "network" or "rollout".
	For string `json:"for"`
	// Name of the Node, Node/version of its kubelet (of version and registered), or namespace/name/Node of the network's DaemonSet, or
	// namespace/name of a Deployment.
	Name string `json:"name,omitempty"`
	// Output is made when the condition holds; its value is empty. May be "".
	Output string `json:"output,omitempty"`
}

// Meta makes Output.
func (a Await) Meta() Meta {
	m := Meta{Name: "await"}
	if a.Output != "" {
		m.Makes = []string{a.Output}
	}
	return m
}

// Probe asks the cluster once.
func (a Await) Probe(ctx context.Context, rt *Runtime) (Diff, error) {
	var err error
	switch a.For {
	case "api":
		err = rt.Cluster.Healthy(ctx)
	case "node":
		err = rt.Cluster.NodeReady(ctx, a.Name)
	case "version":
		node, version, _ := strings.Cut(a.Name, "/")
		err = rt.Cluster.NodeVersion(ctx, node, version)
	case "registered":
		node, version, _ := strings.Cut(a.Name, "/")
		err = rt.Cluster.NodeRegistered(ctx, node, version)
	case "network":
		ns, rest, _ := strings.Cut(a.Name, "/")
		name, node, _ := strings.Cut(rest, "/")
		err = rt.Cluster.NetworkReady(ctx, ns, name, node)
	case "rollout":
		ns, name, _ := strings.Cut(a.Name, "/")
		err = rt.Cluster.DeploymentRolledOut(ctx, ns, name)
	default:
		return nil, fmt.Errorf("nothing is known of awaiting %q", a.For)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return Diff{{strings.TrimSpace(a.For + " " + a.Name), err.Error(), "ready"}}, nil
	}
	if a.Output != "" {
		rt.Make(a.Output, nil)
	}
	return nil, nil
}

// Run returns NotYet while the condition does not hold.
func (a Await) Run(ctx context.Context, rt *Runtime) error {
	d, err := a.Probe(ctx, rt)
	if err != nil {
		return err
	}
	if len(d) > 0 {
		return &NotYet{Reason: d[0].Subject + ": " + d[0].From}
	}
	return nil
}

// Token makes a bootstrap token available as an output.
type Token struct {
	onController
	Output graph.Output[string] `json:"output"`
	TTL    Duration             `json:"ttl"`
	// After are outputs that must be there first (the API answers).
	After []string `json:"after,omitempty"`
}

// Meta takes After and makes Output.
func (t Token) Meta() Meta {
	return Meta{Name: "token", Takes: t.After, Makes: []string{t.Output.Name}}
}

// Probe always finds a difference: a run that needs a token makes or finds one.
func (t Token) Probe(context.Context, *Runtime) (Diff, error) {
	return Diff{{"bootstrap token", "unknown", "valid for " + time.Duration(t.TTL).String()}}, nil
}

// Run finds or makes the token.
func (t Token) Run(ctx context.Context, rt *Runtime) error {
	v, err := rt.Cluster.Token(ctx, time.Duration(t.TTL))
	if err != nil {
		return err
	}
	rt.Make(t.Output.Name, v.Reveal())
	return nil
}

// Apply is a set of objects in the cluster, applied server-side.
type Apply struct {
	onController
	// Title names the set for people.
	Title    string `json:"title"`
	Manifest Text   `json:"manifest"`
	// After are outputs that must be there first.
	After []string `json:"after,omitempty"`
}

// Meta takes After.
func (a Apply) Meta() Meta { return Meta{Name: "apply", Takes: union(a.Manifest.Takes(), a.After)} }

// Probe asks the server what an apply would change.
func (a Apply) Probe(ctx context.Context, rt *Runtime) (Diff, error) {
	m, err := a.Manifest.Resolve(rt.Values)
	if err != nil {
		return nil, err
	}
	objects, err := rt.Cluster.Differs(ctx, m.Reveal())
	if err != nil {
		return nil, err
	}
	var d Diff
	for _, o := range objects {
		d = append(d, Delta{o, "differs", "applied"})
	}
	return d, nil
}

// Run applies the objects.
func (a Apply) Run(ctx context.Context, rt *Runtime) error {
	m, err := a.Manifest.Resolve(rt.Values)
	if err != nil {
		return err
	}
	return rt.Cluster.Apply(ctx, m.Reveal())
}

// Release is a Helm release of a chart in the bundle, or of objects.
type Release struct {
	onController
	Name      string   `json:"name"`
	Namespace string   `json:"namespace"`
	Chart     Artifact `json:"chart,omitzero"`
	// Values in YAML.
	Values Text `json:"values,omitempty"`
	// Manifest is what the release is made of where there is no chart: objects in YAML.
	Manifest Text `json:"manifest,omitempty"`
	// Addon says that it is one: it is uninstalled when it is no longer wanted (PruneAddons), and its objects in the cluster are
	// compared, too.
	Addon bool `json:"addon,omitempty"`
	// After are outputs that must be there first.
	After []string `json:"after,omitempty"`
}

// Meta takes After.
func (r Release) Meta() Meta {
	return Meta{Name: "release", Takes: union(union(r.Values.Takes(), r.Manifest.Takes()), r.After)}
}

// Probe compares the deployed release's chart and values.
func (r Release) Probe(ctx context.Context, rt *Runtime) (Diff, error) {
	hr, err := r.release(ctx, rt)
	if err != nil {
		return nil, err
	}
	why, err := rt.Cluster.ReleaseDiffers(ctx, hr)
	if err != nil || why == "" {
		return nil, err
	}
	return Diff{{"helm release " + r.Namespace + "/" + r.Name, why, "deployed"}}, nil
}

// Run installs or upgrades the release.
func (r Release) Run(ctx context.Context, rt *Runtime) error {
	hr, err := r.release(ctx, rt)
	if err != nil {
		return err
	}
	return rt.Cluster.InstallRelease(ctx, hr)
}

func (r Release) release(ctx context.Context, rt *Runtime) (HelmRelease, error) {
	values, err := r.Values.Resolve(rt.Values)
	if err != nil {
		return HelmRelease{}, err
	}
	hr := HelmRelease{Name: r.Name, Namespace: r.Namespace, Values: values.Reveal(), Addon: r.Addon}
	if len(r.Manifest) > 0 {
		manifest, err := r.Manifest.Resolve(rt.Values)
		if err != nil {
			return HelmRelease{}, err
		}
		hr.Manifest = manifest.Reveal()
		return hr, nil
	}
	f, err := rt.Artifacts.Open(ctx, r.Chart)
	if err != nil {
		return HelmRelease{}, fmt.Errorf("chart %s: %w", r.Chart.Path, err)
	}
	defer f.Close()
	if hr.Chart, err = io.ReadAll(f); err != nil {
		return HelmRelease{}, fmt.Errorf("chart %s: %w", r.Chart.Path, err)
	}
	return hr, nil
}

// PruneAddons uninstalls Helm releases that were installed as addons and are no longer wanted.
type PruneAddons struct {
	onController
	// Keep are those that are wanted, as namespace/name.
	Keep []string `json:"keep,omitempty"`
	// After are outputs that must be there first.
	After []string `json:"after,omitempty"`
}

// Meta takes After.
func (p PruneAddons) Meta() Meta { return Meta{Name: "prune-addons", Takes: p.After} }

// Probe lists them.
func (p PruneAddons) Probe(ctx context.Context, rt *Runtime) (Diff, error) {
	found, err := rt.Cluster.AddonsBeside(ctx, p.Keep)
	if err != nil {
		return nil, err
	}
	var d Diff
	for _, name := range found {
		d = append(d, Delta{"helm release " + name, "installed", "absent"})
	}
	return d, nil
}

// Run uninstalls them.
func (p PruneAddons) Run(ctx context.Context, rt *Runtime) error {
	return rt.Cluster.UninstallAddons(ctx, p.Keep)
}
