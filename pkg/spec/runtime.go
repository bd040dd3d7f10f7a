// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ContainerRuntimeType is what runs containers.
//
// +kubebuilder:validation:Enum=Containerd;CRIO
type ContainerRuntimeType string

const (
	// ContainerRuntimeContainerd is containerd with runc.
	ContainerRuntimeContainerd ContainerRuntimeType = "Containerd"
	// ContainerRuntimeCRIO is CRI-O with conmon and runc.
	ContainerRuntimeCRIO ContainerRuntimeType = "CRIO"
)

// ContainerRuntime is what runs containers on each host, and where it gets images.
//
// +kubebuilder:validation:MinProperties=1
type ContainerRuntime struct {
	// type is what runs containers. If unset, Containerd. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	Type ContainerRuntimeType `json:"type,omitempty"`

	// registries is where images are pulled from, whatever the runtime.
	// +optional
	Registries Registries `json:"registries,omitempty,omitzero"`

	// dataDir is the absolute path of the runtime's images and containers on each host.
	// If unset, /var/lib/containerd, or /var/lib/containers with CRI-O. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed once the cluster exists: set it back, or create another cluster"
	DataDir string `json:"dataDir,omitempty"`
}

// Registries is where images are pulled from.
//
// +kubebuilder:validation:MinProperties=1
type Registries struct {
	// mirrors are asked instead of a registry, before it.
	// +optional
	// +listType=map
	// +listMapKey=registry
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Mirrors []Mirror `json:"mirrors,omitempty"`

	// insecure are registries and mirrors, as host or host:port, whose certificates are not verified.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=259
	Insecure []string `json:"insecure,omitempty"`
}

// Mirror names the mirrors of one registry.
type Mirror struct {
	// registry is the registry as image names have it, as host or host:port, such as docker.io.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=259
	Registry string `json:"registry,omitempty"`

	// endpoints are the mirrors' URLs (https:// or http://), asked in this order, then the registry itself.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Endpoints []string `json:"endpoints,omitempty"`
}

func (r *ContainerRuntime) setDefaults() {
	defaultTo(&r.Type, defaultRuntime)
	runtimes.setDefaults(r.Type, r)
}

// dataDirIn are the defaults of a runtime that has its data there.
func dataDirIn(dir string) func(*ContainerRuntime) {
	return func(r *ContainerRuntime) { defaultTo(&r.DataDir, dir) }
}

func (r *ContainerRuntime) validate(path *field.Path) field.ErrorList {
	errs := r.Registries.validate(path.Child("registries"))
	errs = append(errs, runtimes.validate(r.Type, r, path)...)
	if r.DataDir == "" { // of a type that there is not, which the schema refuses
		return errs
	}
	return append(errs, validateDataDir(path.Child("dataDir"), r.DataDir)...)
}

func (r *Registries) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	const form = "use a registry's host or host:port without a scheme, such as docker.io or registry.prod.example:5000"
	mirrors, insecure := path.Child("mirrors"), path.Child("insecure")
	for i, mirror := range r.Mirrors {
		at := mirrors.Index(i)
		if !isHostPort(mirror.Registry) {
			errs = append(errs, field.Invalid(at.Child("registry"), mirror.Registry, form))
		}
		if len(mirror.Endpoints) == 0 {
			errs = append(errs, field.Required(at.Child("endpoints"), "give the URL of at least one mirror, such as https://registry.prod.example"))
		}
		for j, endpoint := range mirror.Endpoints {
			errs = append(errs, validateURL(at.Child("endpoints").Index(j), endpoint)...)
		}
		errs = append(errs, unique(at.Child("endpoints"), mirror.Endpoints, itself)...)
	}
	errs = append(errs, unique(mirrors, r.Mirrors, func(m Mirror) string { return m.Registry })...)
	for i, host := range r.Insecure {
		if !isHostPort(host) {
			errs = append(errs, field.Invalid(insecure.Index(i), host, form))
		}
	}
	return append(errs, unique(insecure, r.Insecure, itself)...)
}

// validateForCRIO refuses mirrors that CRI-O cannot ask: it puts /v2/ before the path of a mirror, where containerd puts it behind.
func (r *ContainerRuntime) validateForCRIO(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, m := range r.Registries.Mirrors {
		for j, endpoint := range m.Endpoints {
			if u, err := url.Parse(endpoint); err == nil && strings.Trim(u.Path, "/") != "" && !strings.HasPrefix(u.Path, "/v2/") {
				errs = append(errs, field.Invalid(path.Child("registries", "mirrors").Index(i).Child("endpoints").Index(j), endpoint,
					"with CRI-O the path of a mirror is below /v2, as https://registry.prod.example/v2/proxy: add /v2, or use containerd"))
			}
		}
	}
	return errs
}

// validateRuntime refuses what the runtime cannot do for other parts of a cluster.
func (c *Cluster) validateRuntime(path *field.Path) field.ErrorList {
	runtime, network := c.ContainerRuntime.Type, c.Network.Plugin
	if !c.Network.IsDualStack() || !networks[network].templates || runtimes[runtime].templates {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("network", "podCIDRs"), fmt.Sprintf(
		"two networks with %s %s and %s are not supported: use one network, or %s", path.Child("containerRuntime", "type"), runtime,
		strings.ToLower(string(network)), strings.Join(runtimes.those(func(r component[ContainerRuntime]) bool { return r.templates }), " or ")))}
}
