// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// EtcdType is who runs etcd.
//
// +kubebuilder:validation:Enum=kubeadm
type EtcdType string

// EtcdKubeadm runs etcd as a static pod on each control plane host.
const EtcdKubeadm EtcdType = "kubeadm"

// Etcd is how etcd is installed and set.
//
// +kubebuilder:validation:MinProperties=1
type Etcd struct {
	// type is who runs etcd. If unset, kubeadm. It cannot be changed later.
	// +optional
	Type EtcdType `json:"type,omitempty"`

	// dataDir is the absolute path of etcd's data on its hosts. If unset, /var/lib/etcd. It cannot be changed later.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=512
	DataDir string `json:"dataDir,omitempty"`

	// extraArgs are further command line flags of etcd.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=value
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ExtraArgs []Arg `json:"extraArgs,omitempty"`
}

func (e *Etcd) setDefaults() {
	defaultTo(&e.Type, EtcdKubeadm)
	defaultTo(&e.DataDir, "/var/lib/etcd")
}

func (e *Etcd) validate(path *field.Path) field.ErrorList {
	errs := oneOf(path.Child("type"), e.Type, EtcdKubeadm)
	errs = append(errs, validateDataDir(path.Child("dataDir"), e.DataDir)...)
	return append(errs, validateArgs(path.Child("extraArgs"), e.ExtraArgs, etcdFlags)...)
}
