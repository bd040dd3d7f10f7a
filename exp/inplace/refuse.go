// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/decision"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// refuses is why what is asked for is not possible, and what to do; nil if it is possible.
func (r *Rollout) refuses(version string) *decision.Blocker {
	annotation := field.NewPath("metadata", "annotations").Key(VersionAnnotation)
	if errs := spec.ValidateVersion(version, annotation); len(errs) > 0 {
		return decision.Block(InvalidReason, "%s", errs.ToAggregate())
	}
	md := r.Deployment
	if _, owned := md.Labels[clusterv1.ClusterTopologyOwnedLabel]; owned {
		return decision.Block(InvalidReason, "%s: the MachineDeployment is managed by a ClusterClass, which would revert its version: change the Cluster's spec.topology.version", annotation)
	}
	if kind := md.Spec.Template.Spec.Bootstrap.ConfigRef.GroupKind(); kind != bootstrapv1.GroupVersion.WithKind("KubexmConfigTemplate").GroupKind() {
		return decision.Block(InvalidReason, "%s: only hosts with KubexmConfigs can be updated in place: change spec.template.spec.version", annotation)
	}
	for i := range r.Machines {
		if c := r.configOf(&r.Machines[i]); c != nil && c.IsClosed() {
			return decision.Block(InvalidReason, "%s: the access to the host of the Machine %s is closed (spec.accessPolicy of its KubexmConfig), so nobody can "+
				"update it in place: change spec.template.spec.version, which has Machines replaced", annotation, r.Machines[i].Name)
		}
	}
	if errs := validateVersion(append([]string{md.Spec.Template.Spec.Version}, r.versions()...), version, annotation); len(errs) > 0 {
		return decision.Block(InvalidReason, "%s", errs.ToAggregate())
	}
	if name := md.Annotations[CanaryAnnotation]; name != "" && len(r.Machines) > 0 {
		all := r.hosts(version)
		if r.canary(all) == nil {
			var names []string
			for _, h := range all {
				names = append(names, h.name)
			}
			return decision.Block(InvalidReason, "metadata.annotations[%s]: there is no host %s: give one of %s", CanaryAnnotation, name, strings.Join(names, ", "))
		}
	}
	return nil
}

// ValidateVersion refuses a version to which the hosts of Machines that were made of a template cannot follow: whatever it is that
// the template says, and that each of them has.
func ValidateVersion(template string, machines []clusterv1.Machine, version string, path *field.Path) field.ErrorList {
	has := []string{template}
	for i := range machines {
		has = append(has, machines[i].Spec.Version)
	}
	return validateVersion(has, version, path)
}

// versions are those that the hosts of the Machines have, or may have come to. What a Machine asks for, and its host never came to, may
// be taken back.
func (r *Rollout) versions() []string {
	var all []string
	for i := range r.Machines {
		m := &r.Machines[i]
		c, node := r.configOf(m), m.Status.NodeInfo
		if c == nil || node == nil || slices.Contains([]string{"", m.Spec.Version}, c.Status.KubernetesVersion) ||
			slices.Contains([]string{"", m.Spec.Version}, node.KubeletVersion) {
			all = append(all, m.Spec.Version)
			continue
		}
		all = append(all, c.Status.KubernetesVersion, node.KubeletVersion)
	}
	return all
}

// validateVersion refuses a version to which not all hosts that have these can follow.
func validateVersion(has []string, version string, path *field.Path) field.ErrorList {
	if errs := spec.ValidateVersion(version, path); len(errs) > 0 {
		return errs
	}
	slices.Sort(has)
	for _, from := range slices.Compact(has) {
		if len(spec.ValidateVersion(from, nil)) > 0 {
			continue // without a version of its own, it follows the control plane's
		}
		if errs := spec.ValidateUpgrade(from, version, path); len(errs) > 0 {
			return errs
		}
	}
	return nil
}

// older reports whether version a comes before b. What is no version is not older than anything.
func older(a, b string) bool {
	first, err := version.ParseSemantic(a)
	if err != nil {
		return false
	}
	second, err := version.ParseSemantic(b)
	return err == nil && first.LessThan(second)
}
