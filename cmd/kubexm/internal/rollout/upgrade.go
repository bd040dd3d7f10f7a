// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/exp/inplace"
)

// Versions are the versions of Kubernetes that the cluster's Machines and its control plane are to have, each once, in the
// order of their texts. A cluster that is not on its way from one to another has one.
func (s *Snapshot) Versions() []string {
	var all []string
	if s.ControlPlane != nil {
		all = append(all, s.ControlPlane.Spec.Version)
	}
	for i := range s.Deployments {
		all = append(all, s.Deployments[i].Spec.Template.Spec.Version)
	}
	for i := range s.Machines {
		all = append(all, s.Machines[i].Spec.Version)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(v string) bool { return v == "" })
}

// ControlPlaneWaits is what is missing until the control plane, with etcd and the load balancers, has a version. The first says
// most.
func (s *Snapshot) ControlPlaneWaits(version string) []Wait {
	if s.ControlPlane == nil {
		return []Wait{{On: "cluster", Reason: "NotFound", Message: "its objects are not there"}}
	}
	var waits []Wait
	for i := range s.Configs {
		c := &s.Configs[i]
		m := s.machineOf(c)
		if c.Spec.HostRef.Name == "" && (m == nil || !isControlPlane(m)) {
			continue
		}
		waits = append(waits, hostWaits(m, c, version)...)
	}
	slices.SortFunc(waits, func(a, b Wait) int { return cmp.Compare(a.On, b.On) })
	if c := meta.FindStatusCondition(s.ControlPlane.Status.Conditions, controlplanev1.RollingOutCondition); c != nil &&
		c.Status == metav1.ConditionTrue {
		waits = append([]Wait{{On: "control plane", Reason: c.Reason, Message: c.Message}}, waits...)
	}
	if w, waiting := waitOf("control plane", s.ControlPlane.Generation, s.ControlPlane.Status.Conditions, controlplanev1.AvailableCondition); waiting {
		waits = append(waits, w)
	}
	for _, has := range s.ControlPlane.Status.Versions {
		if has.Version != version {
			waits = append(waits, Wait{On: "control plane", Reason: "Upgrading", Message: fmt.Sprintf("%d of its Machines have %s", has.Replicas, has.Version)})
		}
	}
	return waits
}

// hostWaits is what is missing until a host has a version. Of hosts that do not become Nodes there is no Machine.
func hostWaits(m *clusterv1.Machine, c *bootstrapv1.KubexmConfig, version string) []Wait {
	if w, waiting := waitOfHost(c); waiting {
		return []Wait{w}
	}
	switch on, has := nameOfHost(c), c.Status.KubernetesVersion; {
	case has != version:
		return []Wait{{On: on, Reason: "Upgrading", Message: fmt.Sprintf("has %s", cmp.Or(has, "an unknown version"))}}
	case m != nil && m.Spec.Version != version:
		return []Wait{{On: on, Reason: "Upgrading", Message: fmt.Sprintf("its Machine is to have %s", m.Spec.Version)}}
	}
	return nil
}

// WorkerWaits is what is missing until a MachineDeployment has a version, and all of its Machines. The first says most.
func (s *Snapshot) WorkerWaits(deployment, version string) []Wait {
	at := slices.IndexFunc(s.Deployments, func(d clusterv1.MachineDeployment) bool { return d.Name == deployment })
	if at < 0 {
		return []Wait{{On: "cluster", Reason: "NotFound", Message: "there is no MachineDeployment " + deployment}}
	}
	d := &s.Deployments[at]
	var waits []Wait
	if c := meta.FindStatusCondition(d.Status.Conditions, inplace.UpgradingCondition); c != nil &&
		(c.Status == metav1.ConditionTrue || c.Reason == inplace.InvalidReason) {
		waits = append(waits, Wait{On: deployment, Reason: c.Reason, Message: c.Message})
	}
	for i := range s.Configs {
		if m := s.machineOf(&s.Configs[i]); m != nil && m.Labels[clusterv1.MachineDeploymentNameLabel] == deployment {
			waits = append(waits, hostWaits(m, &s.Configs[i], version)...)
		}
	}
	if has := d.Spec.Template.Spec.Version; has != version || d.Annotations[inplace.VersionAnnotation] != "" {
		waits = append(waits, Wait{On: deployment, Reason: "Upgrading", Message: "its Machines are made with " + has})
	}
	if want, have := ptr.Deref(d.Spec.Replicas, 1), s.available(d); d.Status.ObservedGeneration < d.Generation || have != want {
		waits = append(waits, Wait{On: deployment, Reason: "Scaling", Message: fmt.Sprintf("%d of %d Machines are available", have, want)})
	}
	return waits
}

// machineOf is the Machine that a KubexmConfig belongs to, nil if there is none.
func (s *Snapshot) machineOf(c *bootstrapv1.KubexmConfig) *clusterv1.Machine {
	at := slices.IndexFunc(s.Machines, func(m clusterv1.Machine) bool { return m.Spec.Bootstrap.ConfigRef.Name == c.Name })
	if at < 0 {
		return nil
	}
	return &s.Machines[at]
}

func isControlPlane(m *clusterv1.Machine) bool {
	_, yes := m.Labels[clusterv1.MachineControlPlaneLabel]
	return yes
}

// Workers is how a MachineDeployment comes to another version.
type Workers struct {
	Deployment, Version string
	// Replace has Machines replaced, in place of hosts following where they are.
	Replace bool
	// Unavailable is how many may be unavailable at once.
	Unavailable int32
	// Canary is the host that goes first, alone, "" for none. It is for hosts that follow.
	Canary string
}

// Begin begins the upgrade of a MachineDeployment, or goes on with it: what it is asked for already is not asked again, so
// that one that is being completed at this moment stays as it is.
func (s *Snapshot) Begin(ctx context.Context, c client.Client, w Workers) error {
	at := slices.IndexFunc(s.Deployments, func(d clusterv1.MachineDeployment) bool { return d.Name == w.Deployment })
	if at < 0 {
		return fmt.Errorf("there is no MachineDeployment %s", w.Deployment)
	}
	d := &s.Deployments[at]
	before := d.DeepCopy()
	d.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(w.Unavailable))
	switch {
	case d.Spec.Template.Spec.Version == w.Version:
	case w.Replace:
		d.Spec.Template.Spec.Version = w.Version
	default:
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, inplace.VersionAnnotation, w.Version)
		delete(d.Annotations, inplace.CanaryAnnotation)
		if w.Canary != "" {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, inplace.CanaryAnnotation, w.Canary)
		}
	}
	if err := c.Patch(ctx, d, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("MachineDeployment %s: %w", d.Name, err)
	}
	return nil
}
