// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
)

// reservedTaints are kept by Cluster API itself, or mean nothing to Kubernetes any more.
var reservedTaints = []string{clusterv1.NodeUninitializedTaint.Key, clusterv1.NodeOutdatedRevisionTaint.Key, "node-role.kubernetes.io/master"}

// reservedTaintDomains are kept by the node lifecycle controller and by cloud providers.
var reservedTaintDomains = []string{"node.kubernetes.io", "node.cloudprovider.kubernetes.io"}

// validateTaints refuses what Cluster API would refuse of Machines, before there are any.
func validateTaints(taints []clusterv1.MachineTaint, path *field.Path) field.ErrorList {
	if len(taints) > 0 && !feature.Gates.Enabled(feature.MachineTaintPropagation) {
		return field.ErrorList{field.Forbidden(path, "needs Cluster API's feature gate MachineTaintPropagation: turn it on, or set taints in node.nodeTaints")}
	}
	var errs field.ErrorList
	for i, taint := range taints {
		at := path.Index(i).Child("key")
		domain, _, _ := strings.Cut(taint.Key, "/")
		outOfService := taint.Key == "node.kubernetes.io/out-of-service"
		if slices.Contains(reservedTaints, taint.Key) || slices.Contains(reservedTaintDomains, domain) && !outOfService {
			errs = append(errs, field.Forbidden(at, "this taint is Kubernetes' own: use a domain of yours"))
		}
		if problems := validation.IsQualifiedName(taint.Key); len(problems) > 0 {
			errs = append(errs, field.Invalid(at, taint.Key, "use a taint's key, such as dedicated or example.com/dedicated: "+strings.Join(problems, "; ")))
		}
	}
	return errs
}
