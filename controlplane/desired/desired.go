// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

// Package desired builds the objects that a control plane Machine consists of. Nothing here connects to anything.
package desired

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/mensylisir/cluster-api-provider-kubexm/bootstrap/api/v1beta1"
	controlplanev1 "github.com/mensylisir/cluster-api-provider-kubexm/controlplane/api/v1beta1"
	"github.com/mensylisir/cluster-api-provider-kubexm/controlplane/snapshot"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/pki"
	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// Machine is a new Machine. Its KubexmConfig and its infrastructure machine have its name.
func Machine(c *snapshot.ControlPlane, name string, infrastructure clusterv1.ContractVersionedObjectReference) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Object.Namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{Owner(c.Object)},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: c.Cluster.Name,
			Version:     c.Object.Spec.Version,
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubexmConfig", Name: name,
			}},
			InfrastructureRef: infrastructure,
			FailureDomain:     c.NextFailureDomain(),
		},
	}
	Propagate(c, m)
	return m
}

// nodeDeletionTimeout is what Cluster API's webhook sets, in seconds, where a Machine says nothing: were it left to that, each
// reconcile would take it away again.
const nodeDeletionTimeout int32 = 10

// Propagate brings what may be changed in place from the control plane to a Machine. Its version is not among that: when a host
// follows another one is decided of each.
func Propagate(c *snapshot.ControlPlane, m *clusterv1.Machine) {
	PropagateMetadata(c, m)
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	if m.DeletionTimestamp.IsZero() { // a move may have left a deletion behind that had released it
		m.Annotations[controlplanev1.EtcdMemberRemovalHook] = ""
	}
	if ends, known := c.CertificatesEnd(m); known {
		m.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation] = ends.UTC().Format(time.RFC3339)
	}
	t := c.Object.Spec.MachineTemplate.Spec
	m.Spec.ReadinessGates = gates(c)
	m.Spec.Taints = t.Taints
	m.Spec.Deletion = clusterv1.MachineDeletionSpec{
		NodeDrainTimeoutSeconds:        t.Deletion.NodeDrainTimeoutSeconds,
		NodeVolumeDetachTimeoutSeconds: t.Deletion.NodeVolumeDetachTimeoutSeconds,
		NodeDeletionTimeoutSeconds:     cmp.Or(t.Deletion.NodeDeletionTimeoutSeconds, ptr.To(nodeDeletionTimeout)),
	}
}

// gates are what a Machine needs beside its Node to be Ready: what is ours, then what the user says, each once. A Machine that had one
// twice would be refused.
func gates(c *snapshot.ControlPlane) []clusterv1.MachineReadinessGate {
	gates := []clusterv1.MachineReadinessGate{
		{ConditionType: snapshot.APIServerPodHealthy},
		{ConditionType: snapshot.ControllerManagerPodHealthy},
		{ConditionType: snapshot.SchedulerPodHealthy},
	}
	if c.Stacked() {
		gates = append(gates, clusterv1.MachineReadinessGate{ConditionType: snapshot.EtcdPodHealthy},
			clusterv1.MachineReadinessGate{ConditionType: snapshot.EtcdMemberHealthy})
	}
	for _, g := range c.Object.Spec.MachineTemplate.Spec.ReadinessGates {
		if !slices.ContainsFunc(gates, func(has clusterv1.MachineReadinessGate) bool { return has.ConditionType == g.ConditionType }) {
			gates = append(gates, g)
		}
	}
	return gates
}

// Config is a new KubexmConfig. Its owner is the control plane until Cluster API makes it the Machine.
func Config(c *snapshot.ControlPlane, name string, mode spec.BootstrapMode) *bootstrapv1.KubexmConfig {
	owner := Owner(c.Object)
	owner.Controller, owner.BlockOwnerDeletion = nil, nil
	config := &bootstrapv1.KubexmConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.Object.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{owner},
	}}
	config.Spec.BootstrapMode, config.Spec.Format = mode, c.Object.Spec.Node.Format
	PropagateConfig(c, config)
	return config
}

// InventoryConfig is a new KubexmConfig for a host of the inventory that does not become a Node. The control plane owns it. One of
// etcd's hosts begins the cluster, the first that is made as long as none has begun or is to.
func InventoryConfig(c *snapshot.ControlPlane, ref bootstrapv1.HostReference) *bootstrapv1.KubexmConfig {
	config := &bootstrapv1.KubexmConfig{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Object.Namespace, Name: c.Cluster.Name + "-" + ref.Name,
			Labels:          map[string]string{clusterv1.ClusterNameLabel: c.Cluster.Name},
			OwnerReferences: []metav1.OwnerReference{Owner(c.Object)},
		},
		Spec: bootstrapv1.KubexmConfigSpec{HostRef: ref},
	}
	PropagateWatchLabel(c, config)
	if ref.Role == spec.RoleEtcd {
		config.Annotations = map[string]string{controlplanev1.EtcdMemberRemovalHook: ""}
		config.Spec.BootstrapMode = spec.BootstrapInit
		if c.HasEtcd() {
			config.Spec.BootstrapMode = spec.BootstrapJoin
		}
	}
	return config
}

// PropagateWatchLabel has the managers that watch the control plane watch the KubexmConfig of a host of the inventory, too. That of a
// Machine's host has its labels from the machineTemplate.
func PropagateWatchLabel(c *snapshot.ControlPlane, config *bootstrapv1.KubexmConfig) {
	if value := c.Object.Labels[clusterv1.WatchLabel]; value != "" {
		metav1.SetMetaDataLabel(&config.ObjectMeta, clusterv1.WatchLabel, value)
	}
}

// ClusterConfig is what the hosts of the control plane's Cluster share. was is what it says now, nil if there is none.
func ClusterConfig(
	c *snapshot.ControlPlane, was *bootstrapv1.KubexmClusterConfig, members []bootstrapv1.ClusterMember,
) *bootstrapv1.KubexmClusterConfig {
	before := ""
	if was != nil {
		before = was.Spec.APIServerVersion
	}
	declared := &c.Object.Spec
	return &bootstrapv1.KubexmClusterConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: bootstrapv1.GroupVersion.String(), Kind: "KubexmClusterConfig"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Cluster.Namespace, Name: c.Cluster.Name,
			Labels: map[string]string{clusterv1.ClusterNameLabel: c.Cluster.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: c.Cluster.Name, UID: c.Cluster.UID,
			}},
		},
		Spec: bootstrapv1.KubexmClusterConfigSpec{
			Version: declared.Version, APIServerVersion: c.APIServerVersion(members, before),
			ControlPlaneEndpoint:             c.Endpoint(),
			Cluster:                          bootstrapv1.WithCluster(&declared.Cluster, c.Cluster),
			ControlPlaneRebootTimeoutSeconds: declared.Remediation.RebootTimeoutSeconds,
			Authorities:                      authorities(c),
			Members:                          members,
		},
	}
}

// authorities are the fingerprints that are recorded on the control plane, in the order of their names. What cannot be read is none:
// the reconcile does not come that far then.
func authorities(c *snapshot.ControlPlane) []bootstrapv1.AuthorityFingerprint {
	recorded, err := pki.ParseFingerprints(c.Object.Annotations[controlplanev1.AuthoritiesAnnotation])
	if err != nil {
		return nil
	}
	var all []bootstrapv1.AuthorityFingerprint
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		all = append(all, bootstrapv1.AuthorityFingerprint{Name: name, Fingerprint: recorded[name]})
	}
	return all
}

// PropagateConfig brings the control plane's own part of its hosts to a KubexmConfig: the host follows. Bootstrap data is read once, so
// that another format is for Machines that are made from then on.
func PropagateConfig(c *snapshot.ControlPlane, config *bootstrapv1.KubexmConfig) {
	PropagateMetadata(c, config)
	own := c.Object.Spec.Node.DeepCopy()
	config.Spec.Node, config.Spec.Access = own.Node, own.Access
}

// Owner is the reference to the control plane that its Machines have.
func Owner(object *controlplanev1.KubexmControlPlane) metav1.OwnerReference {
	return *metav1.NewControllerRef(object, controlplanev1.GroupVersion.WithKind("KubexmControlPlane"))
}

// Labels of all objects that a Machine consists of. Those of the contract come before the user's.
func Labels(c *snapshot.ControlPlane) map[string]string {
	return merged(c.Object.Spec.MachineTemplate.ObjectMeta.Labels, map[string]string{
		clusterv1.ClusterNameLabel:             c.Cluster.Name,
		clusterv1.MachineControlPlaneLabel:     "",
		clusterv1.MachineControlPlaneNameLabel: labelValue(c.Object.Name),
	})
}

// Annotations of all objects that a Machine consists of.
func Annotations(c *snapshot.ControlPlane) map[string]string {
	return maps.Clone(c.Object.Spec.MachineTemplate.ObjectMeta.Annotations)
}

// labelValue is the name, or its digest where it is too long for a label.
func labelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "hash-" + hex.EncodeToString(sum[:8])
}

func merged(a, b map[string]string) map[string]string {
	all := make(map[string]string, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}
