// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mensylisir/cluster-api-provider-kubexm/cmd/kubexm/internal/objects"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	infrav1 "github.com/mensylisir/cluster-api-provider-kubexm/exp/infrastructure/api/v1alpha1"
	"github.com/mensylisir/cluster-api-provider-kubexm/internal/hosthealth"
)

// Snapshot is what a management plane has of one cluster.
type Snapshot struct {
	// Cluster and ControlPlane are nil where there is none.
	Cluster       *clusterv1.Cluster
	ControlPlane  *controlplanev1.KubexmControlPlane
	Deployments   []clusterv1.MachineDeployment
	Machines      []clusterv1.Machine
	Configs       []bootstrapv1.KubexmConfig
	InfraMachines []infrav1.KubexmMachine
	Hosts         []infrav1.KubexmHost
}

// Read reads the objects of a cluster.
func Read(ctx context.Context, c client.Client, key client.ObjectKey) (*Snapshot, error) {
	s := &Snapshot{Cluster: &clusterv1.Cluster{}, ControlPlane: &controlplanev1.KubexmControlPlane{}}
	if err := c.Get(ctx, key, s.Cluster); apierrors.IsNotFound(err) {
		s.Cluster = nil
	} else if err != nil {
		return nil, err
	}
	if err := c.Get(ctx, key, s.ControlPlane); apierrors.IsNotFound(err) {
		s.ControlPlane = nil
	} else if err != nil {
		return nil, err
	}
	deployments, machines, configs := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineList{}, &bootstrapv1.KubexmConfigList{}
	infraMachines, hosts := &infrav1.KubexmMachineList{}, &infrav1.KubexmHostList{}
	for _, l := range []struct {
		list  client.ObjectList
		label string
	}{
		{deployments, clusterv1.ClusterNameLabel}, {machines, clusterv1.ClusterNameLabel}, {configs, clusterv1.ClusterNameLabel},
		{infraMachines, clusterv1.ClusterNameLabel}, {hosts, objects.ClusterLabel},
	} {
		if err := c.List(ctx, l.list, client.InNamespace(key.Namespace), client.MatchingLabels{l.label: key.Name}); err != nil {
			return nil, err
		}
	}
	s.Deployments, s.Machines, s.Configs = deployments.Items, machines.Items, configs.Items
	s.InfraMachines, s.Hosts = infraMachines.Items, hosts.Items
	return s, nil
}

// Wait is something that a cluster waits for.
type Wait struct {
	// On is the host, or "control plane", or "cluster".
	On string
	// Reason is the condition's, in one word; Message says what is missing, for a person.
	Reason, Message string
}

// Waits is what is missing until the cluster is ready, hosts first. None means that all objects say so. There are to be as
// many Nodes, and as many hosts that do not become Nodes.
func (s *Snapshot) Waits(nodes, others int) []Wait {
	var waits []Wait
	for i := range s.Configs {
		if w, waiting := waitOfHost(&s.Configs[i]); waiting {
			waits = append(waits, w)
		}
	}
	slices.SortFunc(waits, func(a, b Wait) int { return cmp.Compare(a.On, b.On) })
	if s.Cluster == nil || s.ControlPlane == nil {
		return append(waits, Wait{On: "cluster", Reason: "NotFound", Message: "its objects are not there"})
	}
	if w, waiting := waitOf("control plane", s.ControlPlane.Generation, s.ControlPlane.Status.Conditions, controlplanev1.AvailableCondition); waiting {
		waits = append(waits, w)
	}
	for _, kind := range []string{controlplanev1.ControlPlaneComponentsHealthyCondition, controlplanev1.EtcdClusterHealthyCondition} {
		if c := meta.FindStatusCondition(s.ControlPlane.Status.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			waits = append(waits, Wait{On: "control plane", Reason: c.Reason, Message: c.Message}) // it is available all the same, perhaps
		}
	}
	apart := s.apart()
	if len(s.Machines) != nodes || len(s.Configs)-apart != nodes {
		waits = append(waits, Wait{On: "cluster", Reason: "Scaling", Message: fmt.Sprintf("%d of %d Machines are there", len(s.Machines), nodes)})
	}
	if apart != others {
		waits = append(waits, Wait{On: "cluster", Reason: "Scaling",
			Message: fmt.Sprintf("%d of %d hosts of etcd and of load balancers are in the cluster", apart, others)})
	}
	for i := range s.Machines {
		m := &s.Machines[i]
		if !m.DeletionTimestamp.IsZero() {
			waits = append(waits, Wait{On: "cluster", Reason: "Deleting", Message: "Machine " + m.Name + " is being deleted"})
		} else if !m.Status.NodeRef.IsDefined() {
			waits = append(waits, Wait{On: "cluster", Reason: "WaitingForNode", Message: "Machine " + m.Name + " has no Node yet"})
		}
	}
	for i := range s.Deployments {
		d := &s.Deployments[i]
		if want, have := ptr.Deref(d.Spec.Replicas, 1), s.available(d); d.Status.ObservedGeneration < d.Generation || have != want {
			waits = append(waits, Wait{On: "cluster", Reason: "Scaling", Message: fmt.Sprintf("MachineDeployment %s has %d of %d Machines available", d.Name, have, want)})
		}
	}
	return waits
}

// available is how many Machines of a MachineDeployment are. Where users install the network, their Nodes are not Ready before: it is all
// that there are.
func (s *Snapshot) available(d *clusterv1.MachineDeployment) int32 {
	if s.ControlPlane != nil && s.ControlPlane.Spec.Cluster.Network.IsUsers() {
		return ptr.Deref(d.Status.Replicas, 0)
	}
	return ptr.Deref(d.Status.AvailableReplicas, 0)
}

// apart is how many hosts there are that do not become Nodes.
func (s *Snapshot) apart() int {
	n := 0
	for i := range s.Configs {
		if s.Configs[i].Spec.HostRef.Name != "" {
			n++
		}
	}
	return n
}

// waitOf is what a condition says is missing.
func waitOf(on string, generation int64, conditions []metav1.Condition, kind string) (Wait, bool) {
	c := meta.FindStatusCondition(conditions, kind)
	switch {
	case c == nil:
		return Wait{On: on, Reason: "NotStarted", Message: "not observed yet"}, true
	case c.Status != metav1.ConditionTrue:
		return Wait{On: on, Reason: c.Reason, Message: c.Message}, true
	case c.ObservedGeneration != 0 && c.ObservedGeneration < generation:
		return Wait{On: on, Reason: "Changed", Message: "not observed again yet"}, true
	}
	return Wait{}, false
}

// waitOfHost is what a host misses until it is ready.
func waitOfHost(c *bootstrapv1.KubexmConfig) (Wait, bool) {
	w, waiting := waitOf(nameOfHost(c), c.Generation, c.Status.Conditions, bootstrapv1.HostReadyCondition)
	if missing := hosthealth.Missing(c); waiting && missing != nil {
		w.Reason, w.Message = missing.Reason, missing.Message
	}
	return w, waiting
}

// nameOfHost is the host's name where it is known, else the Machine's.
func nameOfHost(c *bootstrapv1.KubexmConfig) string {
	return cmp.Or(c.Status.Host.Name, c.Spec.HostRef.Name, c.Name)
}
