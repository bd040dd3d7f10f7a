// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Hosts chooses hosts of the inventory (KubexmHosts in the Cluster's namespace) that do not become Nodes, by their names
// or by their labels.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type Hosts struct {
	// names are the hosts' names.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=15
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Names []string `json:"names,omitempty"`

	// selector selects hosts by their labels: all that have them.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// IsZero reports whether no hosts are chosen.
func (h Hosts) IsZero() bool { return len(h.Names) == 0 && h.Selector == nil }

func (h *Hosts) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range h.Names {
		if len(validation.IsDNS1123Label(name)) > 0 {
			errs = append(errs, field.Invalid(path.Child("names").Index(i), name, "use the name of a host of the inventory, such as node1"))
		}
	}
	errs = append(errs, unique(path.Child("names"), h.Names, itself)...)
	if h.Selector == nil {
		return errs
	}
	if len(h.Names) > 0 {
		errs = append(errs, field.Forbidden(path.Child("selector"), fmt.Sprintf("%s choose the hosts already: remove one of both", path.Child("names"))))
	}
	if len(h.Selector.MatchLabels)+len(h.Selector.MatchExpressions) == 0 {
		errs = append(errs, field.Required(path.Child("selector", "matchLabels"), "an empty selector takes every host of the inventory: give the labels of those that are meant"))
	}
	return append(errs, metavalidation.ValidateLabelSelector(h.Selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
}

// BootstrapMode says whether a host begins what it is a part of (the control plane, or etcd on hosts of its own), or joins it.
//
// +kubebuilder:validation:Enum=Init;Join
type BootstrapMode string

const (
	// BootstrapInit begins it. There is one such host in the life of a cluster, unless that one failed before it had begun.
	BootstrapInit BootstrapMode = "Init"
	// BootstrapJoin joins.
	BootstrapJoin BootstrapMode = "Join"
)

// Member is one of the hosts that a cluster's control plane, etcd and load balancers consist of, as the others see it.
type Member struct {
	// name is the host's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// role is what the host is for.
	// +required
	Role Role `json:"role,omitempty"`

	// address is the address at which other hosts reach it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	Address string `json:"address,omitempty"`
}

// Arrange says of the hosts of a cluster that is made as a whole who begins, the first of each kind, and of which members it
// consists. What a target says already stays.
func Arrange(targets []*Target) {
	begun := make(map[Role]bool)
	var members []Member
	for _, t := range targets {
		if role := t.Host.Role; role != RoleWorker {
			members = append(members, Member{Name: t.Host.Name, Role: role, Address: t.Host.NodeAddress()})
			begun[role] = begun[role] || t.BootstrapMode == BootstrapInit
		}
	}
	for _, t := range targets {
		if role := t.Host.Role; t.BootstrapMode == "" && (role == RoleControlPlane || role == RoleEtcd) {
			t.BootstrapMode = BootstrapJoin
			if !begun[role] {
				t.BootstrapMode, begun[role] = BootstrapInit, true
			}
		}
		if len(t.Members) == 0 {
			t.Members = members
		}
	}
}
