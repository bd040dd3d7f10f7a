// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"slices"
	"time"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/component"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/plan"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/step/renewal"
)

// Certificates are those on the host that can be renewed.
func Certificates(in component.Inputs) []component.Certificate {
	var all []component.Certificate
	for _, c := range renewal.Certificates(in.Target.Host.Name, certificateSteps(in)) {
		all = append(all, component.Certificate{Name: c.Name, Path: c.Path})
	}
	return append(all, in.Kubernetes.OtherCertificates(in)...)
}

// RenewCertificates makes those with these names anew, once for each time at which it is asked for. Where there are none of
// them, nothing is done. The host's output component.Renewed is made when what uses them is well.
func RenewCertificates(in component.Inputs, names []string, asked time.Time, after ...string) plan.Task {
	host := in.Target.Host.Name
	steps := slices.Concat(
		renewal.Steps(host, certificateSteps(in), names, asked, after...),
		in.Kubernetes.Renew(in, names, asked, after...),
	)
	if len(steps) > 0 {
		steps = append(steps, in.Kubernetes.Renewed(in, component.Renewed(host)))
	}
	return plan.Task{Name: "certificates", Steps: steps}
}

// certificateSteps are the steps that make the host's certificates.
func certificateSteps(in component.Inputs) []step.Step {
	steps := slices.Concat(in.Etcd.Certificates(in), in.Kubernetes.Certificates(in))
	if address := in.Internal.VirtualAddress; in.IsControlPlane() && address != nil {
		steps = append(steps, address.Certificates(in)...)
	}
	return steps
}
