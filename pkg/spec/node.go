// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Node is what is one host's own. Where it and the Cluster speak of the same thing, it counts.
// It may be empty: it is the body of KubexmConfig's spec, and a host need not have anything of its own.
type Node struct {
	// kubelet is this host's kubelet.
	// +optional
	Kubelet Kubelet `json:"kubelet,omitempty,omitzero"`

	// nodeLabels are labels that the Node is registered with and keeps. A label that is taken off the list is taken off the Node. The
	// kubelet may set none in the kubernetes.io and k8s.io domains, except those in kubelet.kubernetes.io and node.kubernetes.io and a
	// few like topology.kubernetes.io/zone.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`

	// nodeTaints are taints that the Node is registered with and keeps, beside that of the control plane. A taint that is taken off the
	// list is taken off the Node.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	NodeTaints []corev1.Taint `json:"nodeTaints,omitempty"`

	// system is what this host's operating system is made to be.
	// +optional
	System System `json:"system,omitempty,omitzero"`

	// files are written before anything is installed.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	Files []File `json:"files,omitempty"`

	// preCommands are shell lines that root runs in this order, once, after files are written and before anything is installed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=10240
	PreCommands []string `json:"preCommands,omitempty"`

	// postCommands are shell lines that root runs in this order, once, after the host has become a Node, or, where it becomes none,
	// does what it is for.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=10240
	PostCommands []string `json:"postCommands,omitempty"`

	// hooks are scripts that run before or after a task on this host, beside the Cluster's.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Hooks []Hook `json:"hooks,omitempty"`

	// limits are how long steps may take, how often they are tried and on how many hosts at once they are made, where this host's are
	// not the Cluster's.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Limits []Limit `json:"limits,omitempty"`

	// disruption is what an act that disrupts this host waits for while it is in use. If unset, what the Cluster says.
	// +optional
	Disruption Disruption `json:"disruption,omitempty,omitzero"`

	// driftPolicy is Repair, where a difference that is found on a host is repaired at once, or Report, where it is shown by the
	// KubexmConfig's condition HostConverged until somebody asks for the repair (annotation bootstrap.cluster.x-k8s.io/converge) or
	// declares something else. If unset, what the Cluster says.
	// +optional
	DriftPolicy DriftPolicy `json:"driftPolicy,omitempty"`

	// onFailure is what becomes of what a run has changed on a host when a step fails: Stop leaves it, and the next run begins there;
	// UndoTask restores what was changed for the task that failed; UndoRun restores all that the run has changed. If unset, what the
	// Cluster says.
	// +optional
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// reset is what becomes of a host when its Machine is deleted. If unset, what the Cluster says.
	// +optional
	Reset Reset `json:"reset,omitempty,omitzero"`
}

// Default fills what was left out. What is the Cluster's to say is left empty: see Target.Kubelet and Target.System.
func (n *Node) Default() {
	for i := range n.Files {
		n.Files[i].setDefaults()
	}
}

// Validate checks a node that has its defaults.
func (n *Node) Validate(path *field.Path) field.ErrorList {
	return withBounds("Node", n, path, n.ValidateRules(path))
}

// ValidateRules checks what the schema cannot say. It is enough for a node that an API server has validated by the schema.
func (n *Node) ValidateRules(path *field.Path) field.ErrorList {
	errs := n.Kubelet.validate(path.Child("kubelet"))
	errs = append(errs, ValidateNodeLabels(n.NodeLabels, path.Child("nodeLabels"))...)
	errs = append(errs, validateTaints(path.Child("nodeTaints"), n.NodeTaints)...)
	errs = append(errs, n.System.validate(path.Child("system"))...)
	for i := range n.Files {
		errs = append(errs, n.Files[i].validate(path.Child("files").Index(i))...)
	}
	errs = append(errs, unique(path.Child("files"), n.Files, func(f File) string { return f.Path })...)
	errs = append(errs, validateCommands(path.Child("preCommands"), n.PreCommands)...)
	errs = append(errs, validateCommands(path.Child("postCommands"), n.PostCommands)...)
	errs = append(errs, validateHooks(path.Child("hooks"), n.Hooks)...)
	errs = append(errs, validateLimits(path.Child("limits"), n.Limits, n.Hooks)...)
	return append(errs, n.Disruption.validate(path.Child("disruption"))...)
}

// kubeletLabels are labels in reserved domains that a kubelet may set on its own Node and that are not its own to find out.
var kubeletLabels = []string{
	corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable,
	corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion, corev1.LabelInstanceType,
}

// ValidateNodeLabels refuses labels that the API server would refuse, and those that a kubelet refuses to register with:
// the NodeRestriction admission plugin keeps them for others.
func ValidateNodeLabels(labels map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		at := path.Key(key)
		domain, _, hasDomain := strings.Cut(key, "/")
		reserved := isSubdomain(domain, "kubernetes.io") || isSubdomain(domain, "k8s.io")
		allowed := isSubdomain(domain, "kubelet.kubernetes.io") || isSubdomain(domain, "node.kubernetes.io") || slices.Contains(kubeletLabels, key)
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			errs = append(errs, field.Invalid(at, key, "use a label's key, such as disk or example.com/disk: "+strings.Join(problems, "; ")))
		} else if hasDomain && reserved && !allowed {
			errs = append(errs, field.Forbidden(at, "a kubelet may not set labels in the domains kubernetes.io and k8s.io: "+
				"use a domain of your own, node.kubernetes.io, or set it by the API after the Node has joined"))
		}
		if problems := validation.IsValidLabelValue(labels[key]); len(problems) > 0 {
			errs = append(errs, field.Invalid(at, labels[key], "use a label's value: "+strings.Join(problems, "; ")))
		}
	}
	return errs
}

// ownTaints are set by the host's role or by Kubernetes and Cluster API themselves.
var ownTaints = []string{"node-role.kubernetes.io/control-plane", "node.cluster.x-k8s.io/uninitialized", "node.cloudprovider.kubernetes.io/uninitialized"}

// DeclaredTaints are the taints that the Node must keep: all but those that come and go with the host's state, which it only registers
// with.
func (n *Node) DeclaredTaints() []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(n.NodeTaints), func(t corev1.Taint) bool { return slices.Contains(ownTaints, t.Key) })
}

func validateTaints(path *field.Path, taints []corev1.Taint) field.ErrorList {
	var errs field.ErrorList
	for i, taint := range taints {
		at := path.Index(i)
		if problems := validation.IsQualifiedName(taint.Key); len(problems) > 0 {
			errs = append(errs, field.Invalid(at.Child("key"), taint.Key, "use a taint's key, such as dedicated or example.com/dedicated: "+strings.Join(problems, "; ")))
		} else if slices.Contains(ownTaints, taint.Key) {
			errs = append(errs, field.Forbidden(at.Child("key"), "this taint comes and goes with the host's role and state: remove it"))
		}
		if problems := validation.IsValidLabelValue(taint.Value); len(problems) > 0 {
			errs = append(errs, field.Invalid(at.Child("value"), taint.Value, "use a taint's value: "+strings.Join(problems, "; ")))
		}
		errs = append(errs, oneOf(at.Child("effect"), taint.Effect,
			corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
		if taint.TimeAdded != nil {
			errs = append(errs, field.Forbidden(at.Child("timeAdded"), "Kubernetes sets it: remove it"))
		}
	}
	return append(errs, unique(path, taints, func(t corev1.Taint) string { return fmt.Sprintf("%s:%s", t.Key, t.Effect) })...)
}

func validateCommands(path *field.Path, lines []string) field.ErrorList {
	var errs field.ErrorList
	for i, line := range lines {
		if strings.TrimSpace(line) == "" || strings.ContainsRune(line, 0) {
			errs = append(errs, field.Invalid(path.Index(i), line, "use a shell line without NUL characters, or remove it"))
		}
	}
	return errs
}
