// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/live"
)

// KubexmMachineTemplateReconciler says of each KubexmMachineTemplate what its Machines' hosts have at least.
type KubexmMachineTemplateReconciler struct{ Options }

// Reconcile writes the status of one KubexmMachineTemplate.
func (r *KubexmMachineTemplateReconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, reterr error) {
	template := &infrav1.KubexmMachineTemplate{}
	written, err := live.Get(ctx, r.Client, r.Reader, request.NamespacedName, template)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.isOthers(template) || !template.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	hosts := &infrav1.KubexmHostList{}
	if err := r.Client.List(ctx, hosts, client.InNamespace(template.Namespace)); err != nil {
		return ctrl.Result{}, err
	}
	template.Status = offer(&template.Spec.Template.Spec, hosts.Items)
	template.Status.ObservedGeneration = template.Generation
	written.Close(ctx, &result, &reterr)
	return result, reterr
}

// offer is what a machine gets at least, whichever of the hosts that it may have it gets. Who has them now does not count: they are for
// those who come when they are free.
func offer(m *infrav1.KubexmMachineSpec, hosts []infrav1.KubexmHost) infrav1.KubexmMachineTemplateStatus {
	selector, err := selectorOf(m)
	if err != nil {
		return infrav1.KubexmMachineTemplateStatus{} // HostClaimed of the Machines says so
	}
	status, least := infrav1.KubexmMachineTemplateStatus{}, infrav1.HostCapacity{}
	for i := range hosts {
		h := &hosts[i]
		if m.HostName != "" && m.HostName != h.Name || !selector.Matches(labels.Set(h.Labels)) || lacks(h, m.Requirements) != "" {
			continue
		}
		has := h.CapacityOf()
		if least.CPUs == 0 || has.CPUs > 0 && has.CPUs < least.CPUs {
			least.CPUs = has.CPUs
		}
		if least.Memory.IsZero() || !has.Memory.IsZero() && has.Memory.Cmp(least.Memory) < 0 {
			least.Memory = has.Memory
		}
		arch := h.Spec.Arch
		if arch == "" {
			arch = h.Status.Facts.Arch
		}
		if status.NodeInfo.OperatingSystem == "" {
			status.NodeInfo = infrav1.NodeInfo{Architecture: arch, OperatingSystem: "linux"}
		} else if status.NodeInfo.Architecture != arch {
			status.NodeInfo.Architecture = ""
		}
	}
	if least.CPUs > 0 && !least.Memory.IsZero() {
		status.Capacity = corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewQuantity(int64(least.CPUs), resource.DecimalSI), corev1.ResourceMemory: least.Memory,
		}
	}
	return status
}
