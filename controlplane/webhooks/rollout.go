// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// fewestToDeleteFirst are the replicas of which one may go before another comes: two of three are still a quorum.
const fewestToDeleteFirst = 3

// validateRollout checks when and how Machines are replaced. replicas is nil where it is not known, in templates.
func validateRollout(r *controlplanev1.Rollout, replicas *int32, cluster *spec.Cluster, path *field.Path) field.ErrorList {
	cluster = cluster.DeepCopy()
	cluster.Default()
	var errs field.ErrorList
	switch r.Strategy.Type {
	case "", controlplanev1.RollingUpdateStrategy, controlplanev1.InPlaceStrategy:
	default:
		errs = append(errs, field.NotSupported(path.Child("strategy", "type"), r.Strategy.Type,
			[]controlplanev1.RolloutStrategyType{controlplanev1.RollingUpdateStrategy, controlplanev1.InPlaceStrategy}))
	}
	errs = append(errs, validateCanary(&r.Strategy, path.Child("strategy", "inPlace", "canary"))...)
	at := path.Child("strategy", "rollingUpdate", "maxSurge")
	switch surge := ptr.Deref(r.Strategy.RollingUpdate.MaxSurge, 1); {
	case surge != 0 && surge != 1:
		errs = append(errs, field.Invalid(at, surge, "use 1, to make a Machine before one goes, or 0, to let one go first"))
	case surge == 0 && replicas != nil && *replicas < fewestToDeleteFirst:
		errs = append(errs, field.Invalid(at, surge, fmt.Sprintf(
			"of %d Machines none can go before another comes: use 1, or at least %d replicas", *replicas, fewestToDeleteFirst)))
	}
	at = path.Child("before", "certificatesExpiryDays")
	switch days := r.Before.CertificatesExpiryDays; {
	case days == 0:
	case days < 7:
		errs = append(errs, field.Invalid(at, days, "leave time to replace all Machines: use at least 7"))
	case days >= cluster.Certificates.ValidityDays:
		errs = append(errs, field.Invalid(at, days, fmt.Sprintf(
			"certificates are made for %d days, and Machines would be replaced for ever: use a smaller number", cluster.Certificates.ValidityDays)))
	}
	if replicas == nil || cluster.LoadBalancer.IsPresent() {
		return errs
	}
	const why = "replaces the one host at which the API server is reached, as there is no load balancer: remove it, " +
		"or set cluster.loadBalancer"
	if !r.After.IsZero() {
		errs = append(errs, field.Forbidden(path.Child("after"), why))
	}
	if r.Before.CertificatesExpiryDays != 0 {
		errs = append(errs, field.Forbidden(path.Child("before"), why))
	}
	return errs
}

// validateCanary checks what hosts wait for when the first has followed another version.
func validateCanary(s *controlplanev1.RolloutStrategy, path *field.Path) field.ErrorList {
	canary := s.InPlace.Canary
	if canary == (controlplanev1.Canary{}) {
		return nil
	}
	var errs field.ErrorList
	if s.Type != controlplanev1.InPlaceStrategy {
		errs = append(errs, field.Forbidden(path, "only for in-place updates: set strategy.type to InPlace, or remove it"))
	}
	switch canary.Approval {
	case "", spec.ApprovalNone, spec.ApprovalRequired:
	default:
		errs = append(errs, field.NotSupported(path.Child("approval"), canary.Approval, []spec.Approval{spec.ApprovalNone, spec.ApprovalRequired}))
	}
	if seconds := canary.SettleSeconds; seconds < 0 || seconds > 7*24*60*60 {
		errs = append(errs, field.Invalid(path.Child("settleSeconds"), seconds, "use a time of at most a week, 1 to 604800"))
	}
	return errs
}

// validateReplaceable refuses changes that would replace the one host at which the API server is reached.
func validateReplaceable(old, updated *controlplanev1.KubexmControlPlane, path *field.Path) field.ErrorList {
	cluster := updated.Spec.Cluster.DeepCopy()
	cluster.Default()
	if cluster.LoadBalancer.IsPresent() {
		return nil
	}
	var errs field.ErrorList
	if is := updated.Spec.Version; is != old.Spec.Version && updated.Spec.Rollout.Strategy.Type != controlplanev1.InPlaceStrategy {
		errs = append(errs, field.Invalid(path.Child("version"), is, "a rolling update replaces the one host at which the API server is reached, "+
			"as there is no load balancer: set rollout.strategy.type to InPlace"))
	}
	if was, is := old.Spec.MachineTemplate.Spec.InfrastructureRef, updated.Spec.MachineTemplate.Spec.InfrastructureRef; was != is {
		errs = append(errs, field.Forbidden(path.Child("machineTemplate", "spec", "infrastructureRef"), fmt.Sprintf(
			"replaces the one host at which the API server is reached, as there is no load balancer: set it back to the %s %s", was.Kind, was.Name)))
	}
	return errs
}

// validateVersionChange refuses versions that the cluster cannot go to from where it is. Of has, the versions that Machines have,
// the first is the oldest and the last the newest; it is empty if none is known. An upgrade that no Machine has got to may be taken
// back, and no minor version is skipped by the last of them.
func validateVersionChange(was, is string, has []clusterv1.StatusVersion, path *field.Path) field.ErrorList {
	if was == is || len(spec.ValidateVersion(was, path)) > 0 || len(spec.ValidateVersion(is, path)) > 0 {
		return nil // what is no version is refused as such
	}
	oldest, reached := was, was
	if len(has) > 0 {
		oldest, reached = has[0].Version, older(was, has[len(has)-1].Version)
	}
	if errs := spec.ValidateUpgrade(reached, is, path); len(errs) > 0 {
		return errs
	}
	return spec.ValidateUpgrade(oldest, is, path)
}

// older is the older one of two versions, a if b is none.
func older(a, b string) string {
	first, err := version.ParseSemantic(a)
	if err != nil {
		return a
	}
	if second, err := version.ParseSemantic(b); err == nil && second.LessThan(first) {
		return b
	}
	return a
}

// validateNaming checks that all names that are made are different, and are names.
func validateNaming(n controlplanev1.MachineNaming, path *field.Path) field.ErrorList {
	if n.Template == "" {
		return nil
	}
	path = path.Child("template")
	one, err := n.Name("cluster", "control-plane", "aaaaa")
	if err != nil {
		return field.ErrorList{field.Invalid(path, n.Template, err.Error())}
	}
	other, err := n.Name("cluster", "control-plane", "bbbbb")
	if err != nil {
		return field.ErrorList{field.Invalid(path, n.Template, err.Error())}
	}
	if one == other {
		return field.ErrorList{field.Invalid(path, n.Template, "all Machines would have the same name: use {{ .random }} in it")}
	}
	if problems := validation.IsDNS1123Subdomain(one); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, n.Template, fmt.Sprintf("makes names such as %q: %s", one, strings.Join(problems, "; ")))}
	}
	return nil
}
