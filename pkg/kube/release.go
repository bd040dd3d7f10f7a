// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

const (
	// abandonedAfter is when an unfinished release that others began counts as left behind by a process that died. Nothing
	// is waited for during a release, so a living one takes seconds.
	abandonedAfter = 2 * time.Minute
	// attemptLabel is a release's label with the attempt of ours that made the revision. Helm hands it on to revisions that
	// others make.
	attemptLabel = "kubexm.cluster.x-k8s.io/attempt"
	// releaseTimeout bounds one release's hooks where the context has no deadline.
	releaseTimeout = 5 * time.Minute
	// afterwards is how long a release may take to put its failure on record after the context has ended.
	afterwards = 5 * time.Second
	// keptRevisions is how many old revisions of a release are kept.
	keptRevisions = 5
	// shownValues is how many differing values are told of.
	shownValues = 5
)

// ReleaseDiffers says how the Helm release differs from being deployed with exactly this chart and these values; "" if
// it does not. Of values it names the paths alone: they may hold secrets.
func (c *Cluster) ReleaseDiffers(ctx context.Context, r step.HelmRelease) (string, error) {
	want, err := read(r)
	if err != nil {
		return "", err
	}
	config, err := c.helm(ctx, r.Namespace)
	if err != nil {
		return "", c.fail(err, "%s", want)
	}
	is, err := bounded(ctx, func() (*release.Release, error) { return lastRevision(config, r.Name) })
	if err != nil {
		return "", c.fail(err, "%s", want)
	}
	why := want.differs(is)
	if why != "" || !r.Addon {
		return why, nil
	}
	objects, err := want.definitions()
	if err != nil {
		return "", c.fail(err, "%s", want)
	}
	rest, err := parse([]byte(is.Manifest))
	if err != nil {
		return "", c.fail(err, "%s", want)
	}
	changed, err := c.differing(ctx, append(objects, rest...), r.Namespace)
	if err != nil || len(changed) == 0 {
		return "", err
	}
	return "objects in the cluster differ: " + strings.Join(changed, ", "), nil
}

// InstallRelease makes the Helm release deployed with exactly this chart and these values: it installs or upgrades, and
// does not wait for what is in it to become ready. What a process that died has left unfinished is taken over, at once
// where it was one of ours; a release that another client is at work on is waited for.
func (c *Cluster) InstallRelease(ctx context.Context, r step.HelmRelease) error {
	want, err := read(r)
	if err != nil {
		return err
	}
	err = c.alone(ctx, want, func(ctx context.Context, attempt string) error {
		config, err := c.helm(ctx, r.Namespace)
		if err != nil {
			return err
		}
		return want.install(ctx, config, c, attempt)
	})
	if err != nil {
		return c.fail(err, "%s", want)
	}
	return nil
}

// desired is a release as it is to be.
type desired struct {
	name, namespace string
	chart           *chart.Chart
	// load reads the chart anew: Helm changes the one that it installs.
	load   func() (*chart.Chart, error)
	values map[string]any
	// description is kept with the revision: it tells one chart from another of the same version. Labels would not do,
	// because they are inherited by revisions that others make.
	description string
	addon       bool
}

// labels are those of the release's next revision.
func (d *desired) labels(attempt string) map[string]string {
	labels := map[string]string{attemptLabel: attempt}
	if d.addon {
		labels[addonLabel] = "true"
	}
	return labels
}

func read(r step.HelmRelease) (*desired, error) {
	d := &desired{name: r.Name, namespace: r.Namespace, addon: r.Addon}
	content := r.Chart
	d.load = func() (*chart.Chart, error) {
		c, err := loader.LoadArchive(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("its chart is not readable: %w", err)
		}
		return c, nil
	}
	if len(r.Manifest) > 0 {
		content = r.Manifest
		d.load = func() (*chart.Chart, error) { return chartOf(r.Name, content) }
	}
	var err error
	if d.chart, err = d.load(); err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	if d.chart.Metadata.Type == "library" {
		return nil, fmt.Errorf("%s: chart %s is a library, which cannot be installed", d, d.chart.Name())
	}
	if err := action.CheckDependencies(d.chart, d.chart.Metadata.Dependencies); err != nil {
		return nil, fmt.Errorf("%s: chart %s: %w", d, d.chart.Name(), err)
	}
	if err := yaml.UnmarshalStrict(r.Values, &d.values); err != nil {
		return nil, fmt.Errorf("%s: its values are not a YAML mapping", d) // the parser's error may quote one
	}
	sum := sha256.Sum256(content)
	d.description = "Deployed by kubexm, chart sha256:" + hex.EncodeToString(sum[:])
	return d, nil
}

// chartOf makes a chart of a manifest. Definitions of kinds are not among what Helm removes: they come first, and stay.
func chartOf(name string, manifest []byte) (*chart.Chart, error) {
	objects, err := parse(manifest)
	if err != nil {
		return nil, err
	}
	c := &chart.Chart{
		Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: name, Version: "0.0.0"},
		// Not a template of its own: what looks like one in it is text.
		Templates: []*chart.File{{Name: "templates/objects.yaml", Data: []byte(`{{ .Files.Get "objects.yaml" }}`)}},
	}
	var rest bytes.Buffer
	for i, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, err
		}
		if rank(o) == 1 {
			c.Files = append(c.Files, &chart.File{Name: fmt.Sprintf("crds/%d.yaml", i), Data: text})
			continue
		}
		rest.WriteString("---\n")
		rest.Write(text)
	}
	c.Files = append(c.Files, &chart.File{Name: "objects.yaml", Data: rest.Bytes()})
	return c, nil
}

// String names the release for people.
func (d *desired) String() string { return "Helm release " + d.namespace + "/" + d.name }

// lastRevision returns a release's newest revision, nil if there is none.
func lastRevision(config *action.Configuration, name string) (*release.Release, error) {
	r, err := config.Releases.Last(name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	return r, err
}

// differs says how a release, nil if there is none, differs from d.
func (d *desired) differs(is *release.Release) string {
	if is == nil {
		return "not installed"
	}
	was, now := is.Chart.Metadata, d.chart.Metadata
	switch {
	case is.Info.Status != release.StatusDeployed:
		return fmt.Sprintf("%s: %s", is.Info.Status, is.Info.Description)
	case was.Name != now.Name || was.Version != now.Version:
		return fmt.Sprintf("deployed with chart %s %s, not %s %s", was.Name, was.Version, now.Name, now.Version)
	case is.Info.Description != d.description:
		return fmt.Sprintf("deployed with other content of chart %s %s, or by somebody else: %s", now.Name, now.Version, is.Info.Description)
	}
	paths := differingPaths(plain(is.Config), plain(d.values), "")
	if len(paths) > shownValues {
		paths = append(paths[:shownValues], fmt.Sprintf("%d more", len(paths)-shownValues))
	}
	if len(paths) > 0 {
		return "deployed with other values: " + strings.Join(paths, ", ")
	}
	return ""
}

// plain returns values as JSON has them, so that those read from YAML compare with those read from a record.
func plain(values map[string]any) map[string]any {
	out := map[string]any{}
	raw, err := json.Marshal(values)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return values
	}
	return out
}

// differingPaths returns the paths, .a.b, of the values that are not the same in both.
func differingPaths(a, b map[string]any, at string) []string {
	keys := map[string]any{}
	maps.Copy(keys, a)
	maps.Copy(keys, b)
	var paths []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		x, inA := a[key]
		y, inB := b[key]
		xs, xIsMap := x.(map[string]any)
		ys, yIsMap := y.(map[string]any)
		switch {
		case xIsMap && yIsMap:
			paths = append(paths, differingPaths(xs, ys, at+"."+key)...)
		case inA != inB || !reflect.DeepEqual(x, y):
			paths = append(paths, at+"."+key)
		}
	}
	return paths
}

// install makes d so. It must be alone, by the name of attempt.
func (d *desired) install(ctx context.Context, config *action.Configuration, c *Cluster, attempt string) error {
	is, err := d.settle(ctx, config)
	if err != nil {
		return err
	}
	if is != nil && (is.Info.Status == release.StatusUninstalling || is.Info.Status == release.StatusUninstalled) {
		if err := d.uninstall(ctx, config); err != nil {
			return fmt.Errorf("finishing what is left of its uninstallation: %w", err)
		}
		is = nil
	}
	if err := d.define(ctx, c); err != nil {
		return err
	}
	if is == nil {
		install := action.NewInstall(config)
		install.ReleaseName, install.Namespace, install.CreateNamespace = d.name, d.namespace, true
		install.Description, install.Timeout = d.description, timeLeft(ctx)
		install.Labels = d.labels(attempt)
		install.SkipCRDs = true                 // they are defined already
		install.DisableOpenAPIValidation = true // the server validates; its schema is megabytes
		_, err := run(ctx, func() (*release.Release, error) { return install.Run(d.chart, d.values) })
		return err
	}
	upgrade := action.NewUpgrade(config)
	upgrade.Namespace, upgrade.ResetValues, upgrade.MaxHistory = d.namespace, true, keptRevisions
	upgrade.Description, upgrade.Timeout = d.description, timeLeft(ctx)
	upgrade.Labels = d.labels(attempt)
	upgrade.DisableOpenAPIValidation = true
	_, err = run(ctx, func() (*release.Release, error) { return upgrade.Run(d.name, d.chart, d.values) })
	return err
}

// settle returns the newest revision, nil if there is none, once nobody is at work on it. One that was abandoned is put
// on record as failed: an upgrade goes on from there, and keeps what runs.
func (d *desired) settle(ctx context.Context, config *action.Configuration) (*release.Release, error) {
	for {
		is, err := bounded(ctx, func() (*release.Release, error) { return lastRevision(config, d.name) })
		if err != nil || is == nil || !is.Info.Status.IsPending() {
			return is, err
		}
		abandoned, err := bounded(ctx, func() (bool, error) { return begunByUs(config, is) })
		if err != nil {
			return nil, err
		}
		left := abandonedAfter - time.Since(is.Info.LastDeployed.Time)
		if abandoned || left <= 0 {
			is.SetStatus(release.StatusFailed, fmt.Sprintf("Was %s when its client died; taken over by kubexm", is.Info.Status))
			return is, config.Releases.Update(is)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another client began a change of it at %s (%s); it counts as abandoned in %s",
				is.Info.LastDeployed.Format(time.RFC3339), is.Info.Status, left.Round(time.Second))
		case <-time.After(min(left, time.Second)):
		}
	}
}

// begunByUs reports whether it was an attempt of ours that began a pending revision: one whose name no other revision has,
// from which it could have been handed on. We are alone, so that attempt is over.
func begunByUs(config *action.Configuration, is *release.Release) (bool, error) {
	attempt := is.Labels[attemptLabel]
	if attempt == "" || is.Info.Status == release.StatusPendingRollback {
		return false, nil
	}
	revisions, err := config.Releases.History(is.Name)
	if err != nil {
		return false, err
	}
	// Old revisions go, but the one before the newest does not, and it is that one whose labels are handed on.
	before := is.Version == 1
	for _, r := range revisions {
		if r.Version != is.Version && r.Labels[attemptLabel] == attempt {
			return false, nil
		}
		before = before || r.Version == is.Version-1
	}
	return before, nil
}

// timeLeft is how long hooks may take.
func timeLeft(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(time.Until(deadline), releaseTimeout)
	}
	return releaseTimeout
}

// run runs one of Helm's actions. When ctx ends, the action's requests fail, and it is given a moment to put its failure
// on record. Helm's own RunWithContext would leave it blocked for good.
func run[T any](ctx context.Context, act func() (T, error)) (T, error) {
	grace, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(afterwards, func() { cancel(context.Cause(ctx)) })
	})
	defer stop()
	v, err := bounded(grace, act)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return v, err
}
