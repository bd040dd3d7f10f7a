// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateAdoption refuses a cluster that cannot be adopted, as somebody else has made it. The details are remedies.
func ValidateAdoption(c *Cluster, path *field.Path) field.ErrorList {
	errs := kubernetes.validateAdoption(c.Kubernetes.Type, path.Child("kubernetes", "type"), "only what %s has made can be adopted: set %[1]s")
	errs = append(errs, etcds.validateAdoption(c.Etcd.Type, path.Child("etcd", "type"),
		"only a cluster with such an etcd can be adopted: set %s")...)
	errs = append(errs, runtimes.validateAdoption(c.ContainerRuntime.Type, path.Child("containerRuntime", "type"),
		"only a cluster with %s can be adopted: set %[1]s")...)
	return append(errs, networks.validateAdoption(c.Network.Plugin, path.Child("network", "plugin"),
		"only a cluster whose network is left alone, or one of those that can be adopted: set %s; with none, the network stays as it is and yours")...)
}

// validateAdoption refuses what cannot be adopted. The remedy takes the names of what can.
func (t components[K, S]) validateAdoption(chosen K, path *field.Path, remedy string) field.ErrorList {
	if t[chosen].adopted {
		return nil
	}
	can := strings.ToLower(strings.Join(t.those(func(c component[S]) bool { return c.adopted }), " or "))
	return field.ErrorList{field.Invalid(path, chosen, fmt.Sprintf(remedy, can))}
}
