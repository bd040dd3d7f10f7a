// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// AddonMetricsServer answers how much processor time and memory Nodes and Pods use (kubectl top, autoscaling).
const AddonMetricsServer = "metrics-server"

// Addon is installed into the cluster by Helm when its API answers, and uninstalled when it leaves the list.
type Addon struct {
	// name is that of an addon which comes with kubexm (metrics-server), or one of your choice where manifest is set. It is the name of
	// the Helm release.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// values of the addon's chart, as YAML. Those that kubexm sets itself, such as images, are refused. Plans and objects show them:
	// they are no place for secrets.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	Values string `json:"values,omitempty"`

	// manifest is your own addon: Kubernetes objects as YAML documents, applied as they are. An object without a namespace is in
	// default. Definitions of kinds (CustomResourceDefinition) stay when the addon leaves the list, as all objects of these kinds would go
	// with them. Secrets are refused, because plans show it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=131072
	Manifest string `json:"manifest,omitempty"`
}

// maxAddons is how many a cluster may have.
const maxAddons = 32

func validateAddons(path *field.Path, addons []Addon) field.ErrorList {
	var errs field.ErrorList
	if len(addons) > maxAddons {
		errs = append(errs, field.TooMany(path, len(addons), maxAddons))
	}
	names := map[string]bool{}
	for i := range addons {
		a, at := &addons[i], path.Index(i)
		if names[a.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), a.Name))
		}
		names[a.Name] = true
		errs = append(errs, a.validate(at)...)
	}
	return errs
}

func (a *Addon) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	name := path.Child("name")
	if a.Name == "" {
		return field.ErrorList{field.Required(name, "name the addon")}
	}
	for _, problem := range validation.IsDNS1123Label(a.Name) {
		errs = append(errs, field.Invalid(name, a.Name, problem))
	}
	if len(a.Name) > 53 {
		errs = append(errs, field.TooLong(name, a.Name, 53))
	}
	own := a.IsOwn()
	switch known := slices.Contains(addonNames, a.Name); {
	case known && own:
		errs = append(errs, field.Invalid(name, a.Name, "is an addon that comes with kubexm: give the one with a manifest another name"))
	case !known && !own && len(errs) == 0:
		errs = append(errs, field.Invalid(name, a.Name, fmt.Sprintf(
			"no addon of this name comes with kubexm, only %s: use one of these, or set manifest", strings.Join(addonNames, ", "))))
	}
	if own && a.Values != "" {
		errs = append(errs, field.Forbidden(path.Child("values"), "has no effect on a manifest: remove it"))
	}
	if _, err := a.ValueMap(); err != nil {
		errs = append(errs, field.Invalid(path.Child("values"), "", err.Error()))
	}
	if err := checkManifest(a.Manifest); own && err != nil {
		errs = append(errs, field.Invalid(path.Child("manifest"), "", err.Error()))
	}
	return errs
}

// IsOwn reports whether the addon is the user's own.
func (a *Addon) IsOwn() bool { return a.Manifest != "" }

// ValueMap are the values.
func (a *Addon) ValueMap() (map[string]any, error) {
	values := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(a.Values), &values); err != nil {
		return nil, fmt.Errorf("is not a YAML mapping: %w", err)
	}
	return values, nil
}

// checkManifest refuses what cannot be applied, and what must not be in a plan.
func checkManifest(manifest string) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	objects := 0
	for n := 1; ; n++ {
		raw, err := documents.Read()
		switch {
		case errors.Is(err, io.EOF) && objects == 0:
			return errors.New("there is no object in it")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("document %d: %w", n, err)
		}
		var content map[string]any
		if err := yaml.UnmarshalStrict(raw, &content); err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
		if len(content) == 0 {
			continue
		}
		var o metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(raw, &o); err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
		switch {
		case o.APIVersion == "" || o.Kind == "" || o.Name == "":
			return fmt.Errorf("document %d: apiVersion, kind and metadata.name are needed", n)
		case strings.HasSuffix(o.Kind, "List"):
			return fmt.Errorf("document %d: it is a list: write each object as a document of its own", n)
		case o.Kind == "Secret" && o.APIVersion == "v1":
			return fmt.Errorf("document %d: it is a Secret, which plans would show: create the Secret %s by other means", n, o.Name)
		}
		objects++
	}
}
