// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"errors"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	klabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/host"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// longest bounds a condition's message: what hosts say can be long, and an API object not.
const longest = 16 << 10

// describe writes the status. It may be called more than once.
func (s *scope) describe() {
	o, own := s.Object, s.Own()
	o.Status.Selector = klabels.Set{
		clusterv1.ClusterNameLabel: s.Cluster.Name, clusterv1.MachineControlPlaneLabel: "",
	}.String()
	o.Status.Replicas = ptr.To(int32(len(own)))
	o.Status.ReadyReplicas = ptr.To(snapshot.Count(own, clusterv1.MachineReadyCondition))
	o.Status.AvailableReplicas = ptr.To(snapshot.Count(own, clusterv1.MachineAvailableCondition))
	o.Status.UpToDateReplicas = ptr.To(snapshot.Count(own, clusterv1.MachineUpToDateCondition))
	if versions := snapshot.Versions(own); len(versions) > 0 {
		o.Status.Versions, o.Status.Version = versions, versions[0].Version
	}
	if w := s.ControlPlane.Workload; w != nil && w.Initialized {
		o.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	}
	s.setDeleting()
	if o.DeletionTimestamp.IsZero() {
		s.setCertificates()
		s.setInitialized()
		s.setHealth()
	}
	s.setAvailable()
	s.setScaling(own)
	s.setMachines(own)
	s.setRollingOut(own)
	s.setDisruptionAllowed()
	s.setPreflight()
	s.setOtherWorkers()
	s.setRemediating(own)
}

func (s *scope) set(kind string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(s.Object, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
}

func (s *scope) setDeleting() {
	if s.Object.DeletionTimestamp.IsZero() {
		s.set(controlplanev1.DeletingCondition, metav1.ConditionFalse, controlplanev1.NotDeletingReason, "")
		return
	}
	if s.deleting != nil {
		s.set(controlplanev1.DeletingCondition, metav1.ConditionTrue, s.deleting.Reason, s.deleting.Message)
	}
}

func (s *scope) setCertificates() {
	if s.Certificates != nil {
		reason := controlplanev1.NotAvailableReason
		if lost := (*untrusted)(nil); errors.As(s.Certificates, &lost) {
			reason = lost.Reason
		}
		s.set(controlplanev1.CertificatesAvailableCondition, metav1.ConditionFalse, reason, s.Certificates.Error())
		return
	}
	s.set(controlplanev1.CertificatesAvailableCondition, metav1.ConditionTrue, controlplanev1.AvailableReason, "")
}

func (s *scope) setInitialized() {
	reason, message := controlplanev1.NotInitializedReason, ""
	switch w := s.ControlPlane.Workload; {
	case s.Initialized():
		s.set(controlplanev1.InitializedCondition, metav1.ConditionTrue, controlplanev1.InitializedReason, "")
		return
	case !s.InfrastructureProvisioned():
		reason = controlplanev1.WaitingForInfrastructureReason
	case !s.Endpoint().IsValid():
		reason, message = controlplanev1.WaitingForEndpointReason, "the Cluster's spec.controlPlaneEndpoint is not set yet"
	case w != nil && w.Err != nil:
		message = "the API server does not answer yet: " + w.Err.Error()
	}
	s.set(controlplanev1.InitializedCondition, metav1.ConditionFalse, reason, message)
}

// setHealth sums up the Machines' components.
func (s *scope) setHealth() {
	components := []string{snapshot.APIServerPodHealthy, snapshot.ControllerManagerPodHealthy, snapshot.SchedulerPodHealthy}
	for kind, of := range map[string][]string{
		controlplanev1.ControlPlaneComponentsHealthyCondition: components,
		controlplanev1.EtcdClusterHealthyCondition:            {snapshot.EtcdPodHealthy},
	} {
		if s.isPatient() && conditions.Has(s.Object, kind) {
			continue // what was seen last is likely to be so still
		}
		status, reason, message := s.health(of)
		if problems := s.EtcdProblems(); kind == controlplanev1.EtcdClusterHealthyCondition && len(problems) > 0 && s.isObserved() {
			status, reason, message = metav1.ConditionFalse, controlplanev1.NotHealthyReason,
				joined(append([]string{message}, problems...), "\n")
		}
		s.set(kind, status, reason, host.Text(message, longest))
	}
}

// isObserved reports whether the cluster has just been observed through its API.
func (s *scope) isObserved() bool {
	w := s.ControlPlane.Workload
	return w != nil && w.Err == nil && w.Initialized
}

func (s *scope) health(of []string) (metav1.ConditionStatus, string, string) {
	if down := s.connectionDown(); down != nil {
		return metav1.ConditionUnknown, down.Reason, down.Message
	}
	if !s.isObserved() {
		return metav1.ConditionUnknown, controlplanev1.HealthUnknownReason, ""
	}
	w := s.ControlPlane.Workload
	var problems, unknown []string
	known := 0
	for _, machine := range slices.Sorted(maps.Keys(w.Components)) {
		for _, c := range w.Components[machine] {
			if !slices.Contains(of, c.Condition) {
				continue
			}
			switch known++; {
			case c.Unknown:
				unknown = append(unknown, machine+": "+c.Problem)
			case c.Problem != "":
				problems = append(problems, machine+": "+c.Problem)
			}
		}
	}
	switch {
	case known == 0 && slices.Equal(of, []string{snapshot.EtcdPodHealthy}) && !s.Stacked():
		return s.etcdElsewhere()
	case known == 0:
		return metav1.ConditionUnknown, controlplanev1.HealthUnknownReason, "no control plane Machine has a Node yet"
	}
	return verdict(problems, unknown)
}

// verdict is the health of what has these problems, and of which this is not known.
func verdict(problems, unknown []string) (metav1.ConditionStatus, string, string) {
	message := strings.Join(slices.Concat(problems, unknown), "\n")
	switch {
	case len(problems) > 0:
		return metav1.ConditionFalse, controlplanev1.NotHealthyReason, message
	case len(unknown) > 0:
		return metav1.ConditionUnknown, controlplanev1.HealthUnknownReason, message
	}
	return metav1.ConditionTrue, controlplanev1.HealthyReason, ""
}

// etcdElsewhere is the health of an etcd that has no members on the control plane's hosts. It has quorum: the API server has
// just answered from it. Of its own hosts, the look at them tells; of those that others run, nothing does.
func (s *scope) etcdElsewhere() (metav1.ConditionStatus, string, string) {
	var problems, unknown []string
	for i := range s.Configs {
		config := &s.Configs[i]
		if config.Spec.HostRef.Role != spec.RoleEtcd || !s.Controls(config) {
			continue
		}
		switch problem := snapshot.ProblemOf(config); {
		case problem == nil:
		case snapshot.IsSilent(config):
			unknown = append(unknown, config.Spec.HostRef.Name+": "+problem.Message)
		default:
			problems = append(problems, config.Spec.HostRef.Name+": "+problem.Message)
		}
	}
	return verdict(problems, unknown)
}

// setMachines sums up the Machines' own conditions.
func (s *scope) setMachines(own []clusterv1.Machine) {
	for kind, of := range map[string]struct{ source, issues, unknown, info string }{
		controlplanev1.MachinesReadyCondition: {
			clusterv1.MachineReadyCondition, clusterv1.NotReadyReason, clusterv1.ReadyUnknownReason, clusterv1.ReadyReason,
		},
		controlplanev1.MachinesUpToDateCondition: {
			clusterv1.MachineUpToDateCondition, clusterv1.NotUpToDateReason, clusterv1.UpToDateUnknownReason, clusterv1.UpToDateReason,
		},
	} {
		if len(own) == 0 {
			s.set(kind, metav1.ConditionTrue, clusterv1.NoReplicasReason, "")
			continue
		}
		var machines []*clusterv1.Machine
		for i := range own {
			machines = append(machines, &own[i])
		}
		merge := conditions.CustomMergeStrategy{
			MergeStrategy: conditions.DefaultMergeStrategy(conditions.ComputeReasonFunc(
				conditions.GetDefaultComputeMergeReasonFunc(of.issues, of.unknown, of.info),
			)),
		}
		summed, err := conditions.NewAggregateCondition(machines, of.source, conditions.TargetConditionType(kind), merge)
		if err != nil {
			s.set(kind, metav1.ConditionUnknown, controlplanev1.InternalErrorReason, "see the manager's log")
			continue
		}
		conditions.Set(s.Object, *summed)
	}
}
