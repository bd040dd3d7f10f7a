// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/graph"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
)

// Addon is the slot of what runs in a cluster beside what makes it one. Any number fill it. An addon is a Helm release of the addon's
// name: Helm upgrades it, repairs its objects, and uninstalls it when it leaves the list.
type Addon interface {
	// Needs are what it takes from the bundle for a host.
	Needs(in Inputs) Needs
	// Release is its chart, with the values that are not the user's to say.
	Release(in Inputs) Chart
	// Deployments, as namespace/name, are rolled out before the addon counts as installed.
	Deployments() []string
}

// Chart is what a Helm release is made of.
type Chart struct {
	// Namespace is that of the release.
	Namespace string
	Archive   step.Artifact
	Values    map[string]any
}

// ClusterAddon is an addon of a cluster.
type ClusterAddon struct {
	spec.Addon
	// Component is nil where the user's manifest is all there is.
	Component Addon
}

// Addons are those of a cluster.
type Addons []ClusterAddon

// Needs are what they take from the bundle for a host.
func (a Addons) Needs(in Inputs) []Needs {
	var needs []Needs
	for _, addon := range a {
		if addon.Component != nil {
			needs = append(needs, addon.Component.Needs(in))
		}
	}
	return needs
}

// Check refuses values that are not the user's to say.
func (a Addons) Check(in Inputs) error {
	var refused []error
	for _, addon := range a {
		if addon.Component == nil {
			continue
		}
		if _, err := addon.values(addon.Component.Release(in).Values); err != nil {
			refused = append(refused, fmt.Errorf("cluster.addons[%s].values: %w", addon.Name, err))
		}
	}
	return errors.Join(refused...)
}

// values are the user's and those of the component.
func (a ClusterAddon) values(own map[string]any) (map[string]any, error) {
	values, err := a.ValueMap()
	if err != nil {
		return nil, err
	}
	return values, merge(values, own, "")
}

// merge adds own values, which must not be there.
func merge(values, own map[string]any, at string) error {
	for _, key := range slices.Sorted(maps.Keys(own)) {
		is, there := values[key]
		theirs, theirsIsMap := is.(map[string]any)
		ours, oursIsMap := own[key].(map[string]any)
		switch {
		case !there:
			values[key] = own[key]
		case theirsIsMap && oursIsMap:
			if err := merge(theirs, ours, at+key+"."); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s is set by kubexm: remove it", at+key)
		}
	}
	return nil
}

// Tasks install the cluster's addons when its API server answers (APIAnswers), wait for them, and uninstall what is no longer among
// them.
func (a Addons) Tasks(in Inputs) []plan.Task {
	keep := []string{}
	var tasks []plan.Task
	for _, addon := range a {
		release := addon.release(in)
		keep = append(keep, release.Namespace+"/"+release.Name)
		tasks = append(tasks, addon.task(release))
	}
	slices.Sort(keep)
	prune := step.New(step.Meta{
		Name: "addons/prune", Description: "uninstall addons that are no longer in the list", Timeout: step.Duration(5 * time.Minute),
		Retry: retry,
	}, step.PruneAddons{Keep: keep, After: []string{APIAnswers.Name}})
	return append([]plan.Task{{Name: "addons", Steps: []step.Step{prune}}}, tasks...)
}

var retry = step.Retry{Attempts: 3, Delay: step.Duration(3 * time.Second)}

// own is what the task of an addon with the user's manifest is called, before its name.
const own = "manifest-"

func (a ClusterAddon) release(in Inputs) step.Release {
	r := step.Release{Name: a.Name, Addon: true, After: []string{APIAnswers.Name}}
	if a.Component == nil {
		r.Namespace, r.Manifest = metav1.NamespaceDefault, step.Literal(a.Manifest)
		return r
	}
	c := a.Component.Release(in)
	values, _ := a.values(c.Values) // Check has refused what would be an error
	text, _ := yaml.Marshal(values) // of YAML or JSON, which always marshals
	r.Namespace, r.Chart, r.Values = c.Namespace, c.Archive, step.Literal(string(text))
	return r
}

func (a ClusterAddon) task(r step.Release) plan.Task {
	about := step.Meta{
		Name: "addons/manifest", Description: "apply the addon " + a.Name, Timeout: step.Duration(3 * time.Minute), Retry: retry,
	}
	if a.Component == nil {
		return plan.Task{Name: own + a.Name, Steps: []step.Step{step.New(about, r)}}
	}
	released := graph.Output[string]{Name: "addon-released/" + a.Name}
	about.Name, about.Description, about.Makes = a.Name+"/release", "install the addon "+a.Name, []string{released.Name}
	steps := []step.Step{step.New(about, r)}
	for _, d := range a.Component.Deployments() {
		_, name, _ := strings.Cut(d, "/")
		steps = append(steps, step.New(step.Meta{
			Name: a.Name + "/ready", Description: "wait until " + name + " is rolled out", Timeout: step.Duration(10 * time.Minute),
			Takes: []string{released.Name},
		}, step.Await{For: "rollout", Name: d}))
	}
	return plan.Task{Name: a.Name, Steps: steps}
}
