// Copyright 2026 The cluster-api-provider-kubexm Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/mensylisir/cluster-api-provider-kubexm/pkg/spec"
)

// KubexmHostSpec is where a host is and how it is reached.
type KubexmHostSpec struct {
	// address is the address, of IPv4 or IPv6, at which the host is reached over SSH. Where it is not of the first family of the host's
	// cluster, internalAddresses has one that is.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	Address string `json:"address,omitempty"`

	// internalAddresses are the addresses at which other hosts reach this one, the Node's first. In a dual stack cluster the
	// first of each family are the Node's; those of a family that the cluster lacks are not used. If unset, address.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=45
	InternalAddresses []string `json:"internalAddresses,omitempty"`

	// access is how the host is reached. User, credentials and hostKeys are required.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.user) && has(self.credentials) && has(self.hostKeys)",message="a host of the pool needs user, credentials and hostKeys: no bootstrap data brings them"
	Access spec.Access `json:"access,omitempty,omitzero"`

	// bmc is the machine's management controller. Where there is one, a host that does not answer can be rebooted too: its machine is reset
	// once it has been silent for two minutes, or was asked to reboot and does not for as long.
	// +optional
	BMC spec.BMC `json:"bmc,omitempty,omitzero"`

	// failureDomain is what may fail as a whole and takes this host with it, such as a rack. Machines of one cluster are
	// spread over failure domains.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// arch is the host's processor architecture. If unset, what the host itself says.
	// +optional
	Arch spec.Arch `json:"arch,omitempty"`

	// capacity is how much the host has, for Machines that require so much. What is unset is what the host said itself when it was last
	// connected to (status.facts); of a host that nobody has connected to, nothing is known.
	// +optional
	Capacity HostCapacity `json:"capacity,omitempty,omitzero"`

	// claimRef is who has the host. It is set and removed by the infrastructure provider; nobody else should.
	// It is here and not in the status because a status can be lost, and two Machines must never have one host.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name && self.clusterName == oldSelf.clusterName && (has(self.kind) ? self.kind : 'KubexmMachine') == (has(oldSelf.kind) ? oldSelf.kind : 'KubexmMachine')",message="another object has this host: delete its Machine, and the host is reset and released"
	ClaimRef MachineReference `json:"claimRef,omitempty,omitzero"`

	// quarantine keeps the host from being handed out. It is set together with the end of a claim when the host was not reset; who has
	// cleaned the host ends it by removing this. Anybody may set it, for a reason of their own.
	// It is here and not in the status because a status can be lost, and a host with remains of a cluster must never go to another.
	// +optional
	Quarantine Quarantine `json:"quarantine,omitempty,omitzero"`

	// maintenance keeps the host from being handed out, and whoever has it from running anything on it: what goes on is cancelled, and
	// resumed when this is removed. The Node, if it is one, stays as it is: drain it before, if it is to be down. A host that is to be
	// reset waits. The condition Available says so, and HostReachable of the KubexmConfig.
	// +optional
	Maintenance Maintenance `json:"maintenance,omitempty,omitzero"`
}

// HostCapacity is how much of something a host has, or must have.
//
// +kubebuilder:validation:MinProperties=1
type HostCapacity struct {
	// cpus is how many processors.
	// +optional
	// +kubebuilder:validation:Minimum=1
	CPUs int32 `json:"cpus,omitempty"`

	// memory is how much memory, such as 32Gi.
	// +optional
	Memory resource.Quantity `json:"memory,omitempty,omitzero"`
}

// IsZero reports whether nothing is said.
func (c HostCapacity) IsZero() bool { return c.CPUs == 0 && c.Memory.IsZero() }

// CapacityOf is how much a host has, as far as that is known.
func (h *KubexmHost) CapacityOf() HostCapacity {
	c := h.Spec.Capacity
	if c.CPUs == 0 {
		c.CPUs = h.Status.Facts.CPUs
	}
	if c.Memory.IsZero() && h.Status.Facts.MemoryBytes > 0 {
		c.Memory = *resource.NewQuantity(h.Status.Facts.MemoryBytes, resource.BinarySI)
	}
	return c
}

// Maintenance is why nobody touches a host.
type Maintenance struct {
	// message is for people: who does what with the host, until when.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// Quarantine is why a host is not handed out.
type Quarantine struct {
	// reason is a word for programs, such as NotReset or ResetFailed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
	Reason string `json:"reason,omitempty"`

	// message is for people: whose the host was, and what is left on it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`

	// time is when it began.
	// +optional
	Time metav1.Time `json:"time,omitempty,omitzero"`
}

// Kinds of objects that claim a KubexmHost.
const (
	// ClaimedByMachine is a KubexmMachine, whose host becomes a Node.
	ClaimedByMachine = "KubexmMachine"
	// ClaimedByConfig is a KubexmConfig that names its host itself, whose host does not become a Node.
	ClaimedByConfig = "KubexmConfig"
)

// MachineReference names who has a host, in the namespace of the object that names it.
type MachineReference struct {
	// kind is KubexmMachine, or KubexmConfig where no Machine stands behind it. If unset, KubexmMachine.
	// +optional
	// +kubebuilder:validation:Enum=KubexmMachine;KubexmConfig
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Kind string `json:"kind,omitempty"`

	// name is the object's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// clusterName is the name of its Cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ClusterName string `json:"clusterName,omitempty"`

	// uid is the object's, so that another one of its name does not have the host. It is written anew for an object of the name that says
	// itself that it has the host (a KubexmMachine by its providerID, a KubexmConfig by its hostRef), as one does after clusterctl move.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`
}

// String is who has the host, for messages. Where somebody has removed the claim by hand, that is not known.
func (r MachineReference) String() string {
	if r == (MachineReference{}) {
		return "somebody"
	}
	return fmt.Sprintf("the %s %s of the Cluster %s", r.KindOrDefault(), r.Name, r.ClusterName)
}

// Names reports whether the claim is of this object, or of one of its name before it: all but the UID is the same.
func (r MachineReference) Names(other MachineReference) bool {
	other.UID = r.UID
	return r == other
}

// IsOf reports whether a KubexmMachine has the host: the claim is its own, or names it, and it says itself that it has the host.
func (h *KubexmHost) IsOf(m *KubexmMachine) bool {
	return h.IsNamedBy(m) && (h.Spec.ClaimRef.UID == string(m.UID) || m.Spec.ProviderID == ProviderID(h))
}

// IsNamedBy reports whether the claim is of a KubexmMachine of this name, be it this one or one before it.
func (h *KubexmHost) IsNamedBy(m *KubexmMachine) bool {
	return h.Spec.ClaimRef.KindOrDefault() == ClaimedByMachine && h.Spec.ClaimRef.Name == m.Name
}

// Claim gives the host to an object, and keeps it from being deleted meanwhile.
func (h *KubexmHost) Claim(by MachineReference) {
	h.Spec.ClaimRef = by
	controllerutil.AddFinalizer(h, HostFinalizer)
}

// MarkInUse says that who has the host is about to touch it: it is not handed out again without a reset.
func (h *KubexmHost) MarkInUse() {
	h.setUnclean(InUseReason, "uses the host")
	conditions.Delete(h, ReachableCondition) // whether it answers is known of who had it before
	h.Status.LastHeartbeatTime = metav1.Time{}
}

// MarkNotReset says that who has the host is gone, and has left it as it was.
func (h *KubexmHost) MarkNotReset() {
	h.setUnclean(NotResetReason, "released the host without a reset")
}

// setUnclean says why the host is not clean: what became of who has it.
func (h *KubexmHost) setUnclean(reason, what string) {
	conditions.Set(h, metav1.Condition{
		Type: CleanCondition, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf("%s %s", h.Spec.ClaimRef, what),
	})
}

// longestMessage is how long the message of a quarantine may be, in bytes.
const longestMessage = 4096

// Release gives the claim on a host up, and puts the host into quarantine unless it is known to have been reset: what is not known of
// it, after a status was lost for one, is not taken for clean.
func (h *KubexmHost) Release(now metav1.Time) {
	claim := h.Spec.ClaimRef
	h.Spec.ClaimRef = MachineReference{}
	controllerutil.RemoveFinalizer(h, HostFinalizer)
	clean := conditions.Get(h, CleanCondition)
	if clean != nil && clean.Status == metav1.ConditionTrue {
		if h.Spec.Quarantine.Reason == NotResetReason || h.Spec.Quarantine.Reason == ResetFailedReason {
			h.Spec.Quarantine = Quarantine{} // it has been reset since
		}
		return
	}
	q := Quarantine{Reason: NotResetReason, Time: now, Message: fmt.Sprintf("%s had the host, and it was not reset after that", claim)}
	if clean != nil && clean.Reason == ResetFailedReason {
		q.Reason, q.Message = ResetFailedReason, q.Message+": "+clean.Message
	}
	if len(q.Message) > longestMessage {
		q.Message = strings.ToValidUTF8(q.Message[:longestMessage-len("…")], "") + "…"
	}
	h.Spec.Quarantine = q
}

// IsInMaintenance reports whether nobody is to touch the host.
func (h *KubexmHost) IsInMaintenance() bool { return h.Spec.Maintenance != (Maintenance{}) }

// IsQuarantined reports whether the host is kept from being handed out.
func (h *KubexmHost) IsQuarantined() bool { return h.Spec.Quarantine != (Quarantine{}) }

// KindOrDefault is the kind of who has the host.
func (r MachineReference) KindOrDefault() string {
	if r.Kind == "" {
		return ClaimedByMachine
	}
	return r.Kind
}

// KubexmHostStatus is what is known of a host.
//
// +kubebuilder:validation:MinProperties=1
type KubexmHostStatus struct {
	// conditions are Available (whether a Machine may have the host), Unique (whether no other KubexmHost is the same
	// machine), Reachable and Clean (both said by the bootstrap provider, which alone opens connections to the host) and Paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of this object that the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// facts are what the host said of itself when it was last reached.
	// +optional
	Facts HostFacts `json:"facts,omitempty,omitzero"`

	// lastHeartbeatTime is when the bootstrap provider last dialled the host, which nobody has, to see whether it can be used; Reachable
	// says what came of it. It is unset while somebody has the host, whose own runs say so, and where there are no heartbeats.
	// +optional
	LastHeartbeatTime metav1.Time `json:"lastHeartbeatTime,omitempty,omitzero"`
}

// HostFacts are what a host said of itself. They are written by the bootstrap provider.
//
// +kubebuilder:validation:MinProperties=1
type HostFacts struct {
	// observedTime is when the host said so.
	// +optional
	ObservedTime metav1.Time `json:"observedTime,omitempty,omitzero"`

	// machineID is the host's /etc/machine-id. No two hosts have the same, unless one was cloned from the other.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	MachineID string `json:"machineID,omitempty"`

	// os is the operating system's name and version, such as Debian GNU/Linux 12.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	OS string `json:"os,omitempty"`

	// kernel is the kernel's release.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Kernel string `json:"kernel,omitempty"`

	// arch is the processor architecture.
	// +optional
	Arch spec.Arch `json:"arch,omitempty"`

	// cpus is how many processors there are.
	// +optional
	// +kubebuilder:validation:Minimum=1
	CPUs int32 `json:"cpus,omitempty"`

	// memoryBytes is how much memory there is.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubexmhosts,shortName=kxh,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta2=v1alpha1","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name != 'localhost'",message="metadata.name becomes the host's and its Node's name: use at most 63 characters, and not localhost"
// +kubebuilder:printcolumn:name="Address",type="string",JSONPath=".spec.address",description="Where the host is reached"
// +kubebuilder:printcolumn:name="Domain",type="string",JSONPath=".spec.failureDomain",description="The failure domain"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Whether a Machine may have the host"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Available")].reason`,description="Why, or why not"
// +kubebuilder:printcolumn:name="Machine",type="string",JSONPath=".spec.claimRef.name",description="The KubexmMachine that has the host"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".spec.claimRef.clusterName",description="The Cluster that has the host"
// +kubebuilder:printcolumn:name="Reachable",type="string",JSONPath=`.status.conditions[?(@.type=="Reachable")].status`,description="Whether the host answered when it was last dialled",priority=10
// +kubebuilder:printcolumn:name="OS",type="string",JSONPath=".status.facts.os",description="The operating system",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"

// KubexmHost is one host of the inventory. Its name is the host's and its Node's name.
type KubexmHost struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata. KubexmMachines select hosts by its labels.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is where the host is and how it is reached.
	// +required
	Spec KubexmHostSpec `json:"spec,omitempty,omitzero"`

	// status is what is known of the host.
	// +optional
	Status KubexmHostStatus `json:"status,omitempty,omitzero"`
}

// GetConditions is for Cluster API's conditions package.
func (h *KubexmHost) GetConditions() []metav1.Condition { return h.Status.Conditions }

// SetConditions is for Cluster API's conditions package.
func (h *KubexmHost) SetConditions(conditions []metav1.Condition) { h.Status.Conditions = conditions }

// +kubebuilder:object:root=true

// KubexmHostList is a list of KubexmHosts.
type KubexmHostList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the KubexmHosts.
	// +required
	Items []KubexmHost `json:"items"`
}
